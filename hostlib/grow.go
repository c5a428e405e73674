package hostlib

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync"
)

// Grow makes a communicator of this one's members and, behind them in rank, of spares: hosts that call
// Host.AwaitInvitation, which need not know anything of the group. It is collective among the
// members, which all give the same spares and options, between operations; this communicator goes
// on until it is left. The new one has a tree of switches of its own, and without options those of
// this one. The lowest rank invites the spares.
//
// The members agree on whether all have become members of the new one, so either all get it, or an
// error. If a spare does not await an invitation until ctx ends at some member, the error wraps
// ErrFormation and names those who are missing; this communicator is not harmed. If a member dies,
// or revokes it, meanwhile, the error is the one that ends this communicator: Shrink it, and let
// the result grow. Lists or options that differ, or that cannot be, one with a member in it, say,
// are an ErrArgument at all members.
func (c *Communicator) Grow(ctx context.Context, spares []Member, options ...GroupOption) (*Communicator, error) {
	larger, err := c.grow(ctx, spares, options)
	if err != nil {
		return nil, fmt.Errorf("hostlib: growing %q: %w", c.name, err)
	}
	return larger, nil
}

func (c *Communicator) grow(ctx context.Context, spares []Member, options []GroupOption) (*Communicator, error) {
	name, err := c.successor()
	if err != nil {
		return nil, err
	}
	name = shortened(name)
	chosen, invalid := c.checkGrowth(spares, options)
	wanted := digest{} // which no list has
	if invalid == nil {
		wanted = digestOf(name, spares, 0, 0, chosen)
	}
	if err := c.takeTurn(ctx); err != nil {
		return nil, cmp.Or(invalid, err)
	}
	defer c.endTurn()
	if err := c.startRecovery(); err != nil {
		return nil, cmp.Or(invalid, err)
	}
	if err := c.compareGrowth(ctx, wanted); invalid != nil || err != nil {
		return nil, cmp.Or(invalid, err)
	}
	in := invitation{Kind: joins, Name: name, Members: slices.Concat(c.members, spares), Options: chosen.sent()}
	until, cancel := c.untilEnd(ctx)
	defer cancel()
	forming, fail := context.WithCancelCause(until)
	defer fail(nil)
	var g *guests
	if c.rank == 0 {
		if g, err = c.inviteAll(spares, &in, fail); err != nil {
			fail(err)
		}
	}
	whyNot := c.formWatched(forming, func(ctx context.Context) (*Communicator, error) {
		return c.host.Communicator(ctx, name, in.Members, in.Options.option())
	})
	if whyNot != nil && ctx.Err() == nil && context.Cause(forming) != nil {
		whyNot = fmt.Errorf("%w: %w", whyNot, context.Cause(forming))
	}
	var larger *Communicator
	if whyNot != nil {
		if _, err := c.settleMembers(until); err != nil { // else who has died is known to all that live
			c.disown()
		}
	} else { // so all have begun, and each is to report whether it has formed it
		larger, err = c.allFormed(len(in.Members))
	}
	g.end(larger != nil)
	if err != nil || larger != nil {
		return larger, err
	}
	if len(c.Failed()) > 0 { // which ends this communicator, too
		select {
		case <-c.over:
		case <-ctx.Done():
		}
	}
	switch {
	case c.Err() != nil:
		return nil, c.Err()
	case whyNot == nil:
		return nil, fmt.Errorf("%w: a member has died, or has given up", ErrFormation)
	}
	return nil, whyNot
}

// checkGrowth reports what cannot be, and returns the options of the new communicator.
func (c *Communicator) checkGrowth(spares []Member, options []GroupOption) (groupOptions, error) {
	if len(spares) == 0 {
		return groupOptions{}, fmt.Errorf("%w: no spares", ErrArgument)
	}
	if i := slices.IndexFunc(options, func(o GroupOption) bool { return o == nil }); i >= 0 {
		return groupOptions{}, fmt.Errorf("%w: option %d is nil", ErrArgument, i)
	}
	if _, err := c.host.checkMembers(slices.Concat(c.members, spares)); err != nil {
		return groupOptions{}, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	for _, m := range spares {
		if _, _, err := net.SplitHostPort(m.Addr); m.Addr != "" && err != nil {
			return groupOptions{}, fmt.Errorf("%w: the address of %s: %w", ErrArgument, m.process(), err)
		}
		for _, own := range c.members {
			if n := len(pairName(m, own)); n > maxName {
				return groupOptions{}, fmt.Errorf("%w: the name and address of %s, and the address of %s, are too long together: %d bytes, want at most %d", ErrArgument, m.process(), own.process(), n-len(pairPrefix), maxName-len(pairPrefix))
			}
		}
	}
	chosen := c.options
	if len(options) > 0 {
		chosen = optionsOf(options)
	}
	return chosen, chosen.validate()
}

// compareGrowth reports whether all members want the same, and has their next agreement be the same.
func (c *Communicator) compareGrowth(ctx context.Context, wanted digest) error {
	const width = len(wanted)/8 + 1
	own, all := make([]uint64, width), make([]uint64, width*len(c.members))
	for i := range width - 1 {
		own[i] = binary.BigEndian.Uint64(wanted[8*i:])
	}
	own[width-1] = uint64(c.nextAgreement())
	if _, err := Allgather(ctx, c, own, all); err != nil {
		return err
	}
	next := uint64(0)
	for rank := range c.members {
		of := all[width*rank:][:width]
		if !slices.Equal(all[:width-1], of[:width-1]) {
			return fmt.Errorf("%w: rank 0 and rank %d give different spares, or options", ErrArgument, rank)
		}
		next = max(next, of[width-1])
	}
	return c.catchUp(ctx, uint32(next))
}

// disown has no later call return the decision of the agreement for which this member has given its flags
// last: who has waited for it has passed it over.
func (c *Communicator) disown() {
	c.recovery.mu.Lock()
	defer c.recovery.mu.Unlock()
	c.recovery.given = 0
}

// nextAgreement returns the number of the first agreement for which this member has not given flags.
func (c *Communicator) nextAgreement() uint32 {
	v := &c.recovery
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.core.HasStarted() {
		return v.core.Number() + 1
	}
	return v.core.Number()
}

// catchUp ends agreements on which some members have given up, so that all enter the same one.
func (c *Communicator) catchUp(ctx context.Context, next uint32) error {
	v := &c.recovery
	for {
		v.mu.Lock()
		v.decided = false
		isNext := v.core.Number() >= next
		if !isNext && !v.core.HasStarted() {
			c.giveLocked(isShrink, 0)
			v.given = 0 // no later call's, if ctx ends first
		}
		c.unlockRecovery()
		if isNext {
			return nil
		}
		if err := c.awaitRecovery(ctx, true, func() bool { return v.decided }); err != nil {
			return err
		}
	}
}

// guests are the spares that the lowest rank has invited.
type guests struct {
	c      *Communicator
	pairs  []*Communicator
	cancel context.CancelFunc
	ended  chan struct{}
	tasks  sync.WaitGroup
}

// inviteAll begins to invite spares. When one cannot join, fail is called.
func (c *Communicator) inviteAll(spares []Member, in *invitation, fail context.CancelCauseFunc) (*guests, error) {
	text, err := json.Marshal(in)
	if err == nil && len(text) > maxInvitation {
		err = fmt.Errorf("%w: an invitation of %d bytes, want at most %d", ErrArgument, len(text), maxInvitation)
	}
	if err != nil {
		return nil, err
	}
	g := &guests{c: c, pairs: make([]*Communicator, len(spares)), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(c.host.ctx)
	g.cancel = cancel
	for i, m := range spares {
		g.tasks.Go(func() {
			pair, err := c.host.invite(ctx, c.members[c.rank], m, text)
			if err != nil {
				fail(err)
				return
			}
			g.pairs[i] = pair
			select {
			case <-pair.done:
				fail(pair.Err())
			case <-g.ended:
			}
		})
	}
	return g, nil
}

// end lets the spares know whether all are members now.
func (g *guests) end(isFormed bool) {
	if g == nil {
		return
	}
	if !isFormed {
		g.cancel()
	}
	close(g.ended)
	g.tasks.Wait()
	defer g.cancel()
	for _, pair := range g.pairs {
		switch {
		case pair == nil:
		case isFormed:
			g.tasks.Go(func() { _ = g.c.host.leavePair(g.c.host.ctx, pair) }) // who dies now is missed by the new communicator
		default:
			g.tasks.Go(func() { g.c.host.endPair(pair, "the communicator was not formed") })
		}
	}
	g.tasks.Wait()
}

// allFormed agrees with the other members on whether all have formed what recovery.formed is, of so
// many members, and returns that; nil: they have not.
func (c *Communicator) allFormed(members int) (*Communicator, error) {
	d, err := c.settleMembers(c.host.ctx)
	if err != nil {
		return nil, err
	}
	return c.takeFormed(d, members), nil
}
