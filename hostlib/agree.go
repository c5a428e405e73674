package hostlib

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/agree"
)

// Agreement is what the members of a communicator that live have agreed on by Agree. All have the same.
type Agreement struct {
	// Flags is the bitwise AND of what the members gave who are not among the failed, and perhaps of
	// what some of the failed gave before they died.
	Flags uint32
	// Failed are the ranks that have died, ascending: all that any member knew of when it called
	// Agree, and perhaps more.
	Failed []int
}

// ErrUnacknowledged: members have died, and not all that live had acknowledged that. It comes from
// Agree, at all members alike, beside an Agreement that counts.
var ErrUnacknowledged = errors.New("hostlib: a member has died, and not all members had acknowledged that")

// Agree agrees on flags, and on who has died, whoever dies meanwhile: it returns the same at all
// members that return. It is collective among the members that live, which may call it at different
// times, while the communicator lives, and after a member's death or a Revoke has ended it. Members call
// Agree, Shrink and Grow in one order; Agree and Shrink have no place in that of other operations.
//
// As in ULFM the error wraps ErrUnacknowledged, at all members, if one of the failed had not been
// acknowledged (AcknowledgeFailures) by each of them before it called Agree; the Agreement counts
// nevertheless. More than 32,766 failures never count as acknowledged. Any other error is one of this
// member. If ctx ends first, it names the members that are waited for, as far as is known; the others
// decide with the flags of this member, and its next call of Agree returns what they have decided,
// not taking flags anew. An error that wraps ErrDisagreement says that others have called Shrink or
// Grow instead. One that wraps ErrEnded says that this member can take no part, as that of Shrink does.
func (c *Communicator) Agree(ctx context.Context, flags uint32) (Agreement, error) {
	a, err := c.agreeOn(ctx, flags)
	if err != nil {
		err = fmt.Errorf("hostlib: agreeing in %q: %w", c.name, err)
	}
	return a, err
}

func (c *Communicator) agreeOn(ctx context.Context, flags uint32) (Agreement, error) {
	if err := c.takeTurn(ctx); err != nil {
		return Agreement{}, err
	}
	defer c.endTurn()
	if err := c.startRecovery(); err != nil {
		return Agreement{}, err
	}
	d, err := c.decide(ctx, isAgree, uint64(flags)|c.acknowledgements())
	if err != nil {
		return Agreement{}, err
	}
	a := Agreement{Flags: uint32(d.Flags)}
	for _, rank := range d.Failed {
		a.Failed = append(a.Failed, int(rank))
	}
	if !areAcknowledged(d) {
		err = c.unacknowledged(a.Failed)
	}
	return a, err
}

// Failed returns the ranks of members that this one knows to be dead, ascending. Who has closed its
// host, or has called Abort, counts as dead. Others may know more, or less: Agree makes that alike.
func (c *Communicator) Failed() []int {
	c.direct.mu.Lock()
	defer c.direct.mu.Unlock()
	return slices.Sorted(maps.Keys(c.direct.dead))
}

// AcknowledgeFailures acknowledges the deaths that this member knows of, and returns the ranks of all
// that it has acknowledged, ascending. Agree reports other deaths by ErrUnacknowledged.
func (c *Communicator) AcknowledgeFailures() []int {
	failed := c.Failed()
	c.recovery.mu.Lock()
	defer c.recovery.mu.Unlock()
	if len(failed) > len(c.recovery.acknowledged) { // another call may know more; nobody comes to life again
		c.recovery.acknowledged = failed
	}
	return slices.Clone(c.recovery.acknowledged)
}

// Acknowledged returns the ranks that this member has acknowledged, ascending.
func (c *Communicator) Acknowledged() []int {
	c.recovery.mu.Lock()
	defer c.recovery.mu.Unlock()
	return slices.Clone(c.recovery.acknowledged)
}

// An agreement has 64 flags: those of the caller of Agree, and above them how many deaths a member
// has acknowledged, that number's complement, and for what the agreement is, each by a bit that no
// other sets. What a member has acknowledged is among the failed of the decision, so all have
// acknowledged these if all numbers are theirs: if the number and its complement come out of the AND
// as complements.
const (
	countAt   = 32
	countBits = 15
	countMask = 1<<countBits - 1

	isShrink uint64 = 1 << 62
	isAgree  uint64 = 1 << 63
)

// acknowledgements returns the bits of what this member has acknowledged.
func (c *Communicator) acknowledgements() uint64 {
	c.recovery.mu.Lock()
	defer c.recovery.mu.Unlock()
	n := min(uint64(len(c.recovery.acknowledged)), countMask)
	return n<<countAt | (^n&countMask)<<(countAt+countBits)
}

// areAcknowledged reports whether all members had acknowledged who has failed.
func areAcknowledged(d agree.Decision) bool {
	n, not := d.Flags>>countAt&countMask, d.Flags>>(countAt+countBits)&countMask
	return len(d.Failed) == 0 || n|not == countMask && n == uint64(len(d.Failed)) && n < countMask
}

// unacknowledged names one of the failed: if there is one, one that this member has not acknowledged.
func (c *Communicator) unacknowledged(failed []int) error {
	known := c.Acknowledged()
	rank, by := failed[0], "another member"
	if i := slices.IndexFunc(failed, func(r int) bool { return !slices.Contains(known, r) }); i >= 0 {
		rank, by = failed[i], "this one"
	}
	return fmt.Errorf("%w: rank %d (%s) is dead, which %s had not: call AcknowledgeFailures and go on, or Shrink", ErrUnacknowledged, rank, c.hostOf(uint32(rank)), by)
}

// decide agrees with the other members on flags, for what a kind says. After a call of that kind
// whose ctx has ended it returns what came of that one.
func (c *Communicator) decide(ctx context.Context, kind, flags uint64) (agree.Decision, error) {
	v := &c.recovery
	if c.Err() != nil {
		c.learnOfEnd() // before this member gives its flags
	}
	c.agrees(c.deaths()...)
	for {
		v.mu.Lock()
		if !v.decided && !v.core.HasStarted() {
			c.giveLocked(kind, flags)
		}
		isOurs := v.given == kind
		c.unlockRecovery()
		if err := c.awaitRecovery(ctx, true, func() bool { return v.decided }); err != nil {
			return agree.Decision{}, err
		}
		v.mu.Lock()
		v.decided = false
		d := v.decision
		v.mu.Unlock()
		switch {
		case !isOurs: // what an earlier call gave up
		case d.Flags&kind == 0:
			return agree.Decision{}, fmt.Errorf("%w: some have called Agree, others Shrink or Grow", ErrDisagreement)
		default:
			return d, nil
		}
	}
}

// giveLocked gives this member's flags. The caller holds the lock, and gives it back by unlockRecovery.
func (c *Communicator) giveLocked(kind, flags uint64) {
	c.recovery.given = kind
	c.agreesLocked(agree.Input{Kind: agree.Start, Flags: kind | flags})
}
