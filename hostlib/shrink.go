package hostlib

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/agree"
)

// Shrink makes a communicator of the members that live, in the order of their ranks: after a
// member's death or a Revoke has ended this one, or at any time before. It is collective among them, and they
// may call it at different times. They agree on who has died, so all get the same members, or an
// error; when more die meanwhile, the others go on without them. Who has closed its host, or has
// called Abort, counts as dead.
//
// Without options the new communicator has those of this one; otherwise all give the same. It has
// a tree of switches of its own. If ctx ends first, the error names the members that are waited
// for, as far as is known. Shrink may then be called again, and is to be before Agree: the others, if
// they have agreed meanwhile, wait for this member to form theirs, until it does, closes its host or
// calls Abort, and it would wait for them in Agree. An error that wraps ErrEnded says that this member
// can take no part: others hold it dead, it has called Abort, or the communicator was left
// or formed again. Where a network is cut in two, either side may hold the other dead.
func (c *Communicator) Shrink(ctx context.Context, options ...GroupOption) (*Communicator, error) {
	smaller, err := c.shrink(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("hostlib: shrinking %q: %w", c.name, err)
	}
	return smaller, nil
}

func (c *Communicator) shrink(ctx context.Context, options []GroupOption) (*Communicator, error) {
	if i := slices.IndexFunc(options, func(o GroupOption) bool { return o == nil }); i >= 0 {
		return nil, fmt.Errorf("%w: option %d is nil", ErrArgument, i)
	}
	if err := c.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer c.endTurn()
	if err := c.startRecovery(); err != nil {
		return nil, err
	}
	for {
		d, err := c.settleMembers(ctx)
		if err != nil {
			return nil, err
		}
		if smaller := c.takeFormed(d, len(c.members)-len(d.Failed)); smaller != nil {
			return smaller, nil
		}
		err = c.formWatched(ctx, func(ctx context.Context) (*Communicator, error) { return c.survivors(ctx, d, options) })
		if err != nil && (ctx.Err() != nil || !errors.Is(err, ErrFormation)) { // else others have died, or have given up
			return nil, err
		}
	}
}

// takeTurn waits until no other call of this member agrees on anything.
func (c *Communicator) takeTurn(ctx context.Context) error {
	turn := c.recovery.turn
	select {
	case turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: another call of Shrink, Grow or Agree goes on", context.Cause(ctx))
	}
}

func (c *Communicator) endTurn() { <-c.recovery.turn }

// settleMembers agrees on the members that live, and on whether they have formed their
// communicator by the decision before: then Flags is 1.
func (c *Communicator) settleMembers(ctx context.Context) (agree.Decision, error) {
	flags := uint64(0)
	if c.recovery.formed != nil {
		flags = 1
	}
	d, err := c.decide(ctx, isShrink, flags)
	if err != nil {
		c.dropFormed()
		return d, err
	}
	c.host.cfg.Log.Info("agreed on the dead", slog.String("communicator", c.name), slog.Any("failed", d.Failed))
	return d, nil
}

// formWatched forms a communicator, to be agreed upon, unless a member dies or gives up meanwhile.
func (c *Communicator) formWatched(ctx context.Context, form func(context.Context) (*Communicator, error)) error {
	v := &c.recovery
	forming, cancel := context.WithCancel(ctx)
	defer cancel()
	c.agrees(agree.Input{Kind: agree.Open}) // so that this member finds out who dies meanwhile
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		isOver := c.awaitRecovery(forming, false, func() bool { return v.disturbed })
		if isOver == nil || forming.Err() == nil {
			cancel()
		}
	}()
	formed, err := form(forming)
	isDisturbed := forming.Err() != nil
	if err != nil && isDisturbed && ctx.Err() == nil {
		err = fmt.Errorf("a member has died, or has given up: %w", err)
	}
	cancel()
	<-watched
	if err == nil && isDisturbed {
		formed.Abort("members have died, or have given up, while it was formed")
		err = ErrFormation
	}
	if err == nil {
		v.formed = formed
		return nil
	}
	v.mu.Lock()
	c.giveLocked(isShrink, 0) // which has all others go on
	c.unlockRecovery()
	return err
}

// survivors forms the communicator.
func (c *Communicator) survivors(ctx context.Context, d agree.Decision, options []GroupOption) (*Communicator, error) {
	var members []Member
	for rank, m := range c.members {
		if !slices.Contains(d.Failed, uint32(rank)) {
			members = append(members, m)
		}
	}
	if len(options) == 0 {
		same := c.options
		options = []GroupOption{func(t *groupOptions) { *t = same }}
	}
	return c.host.Communicator(ctx, shrunkName(c.name, d.Number), members, options...)
}

// shrunkName returns the name of the communicator that is made by an agreement of another's
// members.
func shrunkName(name string, number uint32) string {
	return shortened(fmt.Sprintf("%s~%d", name, number))
}

// shortened returns a name that leaves room for suffixes: one that is too long is cut, and has a
// digest.
func shortened(name string) string {
	const most = maxName - maxSuffix
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%.*s~%x", most/2, name, sum[:16])
}

// takeFormed returns the communicator that this member has formed, if by a decision all have, and it
// has so many members. Otherwise it drops it, and returns nil.
func (c *Communicator) takeFormed(d agree.Decision, members int) *Communicator {
	formed := c.recovery.formed
	if formed == nil || d.Flags&1 == 0 || len(formed.members) != members {
		c.dropFormed()
		return nil
	}
	c.recovery.formed = nil
	c.succeeded(formed)
	return formed
}

// dropFormed ends a communicator that not all survivors have.
func (c *Communicator) dropFormed() {
	if s := c.recovery.formed; s != nil {
		c.recovery.formed = nil
		s.Abort("not all members have formed it")
	}
}

// succeeded notes that all members that live have one that was made of this one's. By then nobody misses a decision of the
// communicator that this one was made of.
func (c *Communicator) succeeded(s *Communicator) {
	s.shrunkFrom = c
	if before := c.shrunkFrom; before != nil {
		c.shrunkFrom = nil
		c.host.endRecoveries(func(o *Communicator) bool { return o == before })
	}
}
