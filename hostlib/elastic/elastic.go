package elastic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// Errors of Run. They are wrapped; use errors.Is.
var (
	// ErrConfig: there is no such job, or this host has no place in it.
	ErrConfig = errors.New("elastic: invalid configuration")
	// ErrTooFew: fewer members live than Config.MinMembers, and there are no spares.
	ErrTooFew = errors.New("elastic: too few members live")
	// ErrWork: work has failed at another member, which has the reason.
	ErrWork = errors.New("elastic: work has failed at another member")
)

// Config is a job. All members and spares have the same, but for Changed.
type Config struct {
	Name    string                // of the first communicator
	Members []hostlib.Member      // that begin the job, in the order of their ranks
	Spares  []hostlib.Member      // that take the places of the dead
	Options []hostlib.GroupOption // of all communicators

	// MinMembers is how many members the job needs; by default 1.
	MinMembers int
	// SpareWait is how long members wait for spares: after an interruption until as many as are
	// missing have answered, and at the end until all have been dismissed; 3 s by default. It
	// matters where a spare is dead, or does not wait.
	SpareWait time.Duration
	// Changed is called, at members that go on, before they call work again; nil: it is not.
	Changed func(Change)
}

// Change is what an interruption has changed.
type Change struct {
	Cause  error            // what work has returned here; nil: it was done here
	Lost   []hostlib.Member // that are no members any more
	Joined []hostlib.Member // spares that are
	Took   time.Duration    // from the return of work to its next call
}

// Work does the job, or the rest of it, on a communicator. If it returns an error that wraps
// hostlib.ErrEnded, the job goes on with those members that live.
type Work func(ctx context.Context, comm *hostlib.Communicator) error

// Run runs work at this host, a member or a spare of the job, until it is done at all members that
// live. A spare waits until it is a member; if it is not needed, Run returns nil. If all members
// die before that, spares wait until ctx ends. Who gets an error closes its host, or ends its
// process: others may wait for it until then. So it is if a member dies before all have formed the
// first communicator.
func Run(ctx context.Context, host *hostlib.Host, c Config, work Work) error {
	own := host.Member()
	is := func(m hostlib.Member) bool { return m.Host == own.Host && m.Process == own.Process }
	c.SpareWait, c.MinMembers = cmp.Or(c.SpareWait, 3*time.Second), cmp.Or(c.MinMembers, 1)
	isMember, isSpare := slices.ContainsFunc(c.Members, is), slices.ContainsFunc(c.Spares, is)
	switch {
	case isMember == isSpare:
		return fmt.Errorf("%w: %s has to be either a member or a spare", ErrConfig, own.Host)
	case c.MinMembers < 0 || c.MinMembers > len(c.Members) || c.SpareWait < 0:
		return fmt.Errorf("%w: at least %d of %d members, %v for spares", ErrConfig, c.MinMembers, len(c.Members), c.SpareWait)
	}
	var comm *hostlib.Communicator
	var err error
	if isMember {
		comm, err = host.Communicator(ctx, c.Name, c.Members, c.Options...)
	} else if comm, err = host.AwaitInvitation(ctx); errors.Is(err, hostlib.ErrDismissed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("elastic: %q: %w", c.Name, err)
	}
	j := job{Config: c, host: host, comm: comm}
	if err := j.run(ctx, work); err != nil {
		return fmt.Errorf("elastic: %q: %w", c.Name, err)
	}
	return nil
}

// Progress is how far a job has come.
type Progress struct {
	Step int64
	Rank int // of the lowest rank that has come so far
}

// Newest returns the furthest step that any member has reached. It is collective; step is the
// caller's own, and not negative.
func Newest(ctx context.Context, comm *hostlib.Communicator, step int64) (Progress, error) {
	v := []reduce.Located[int64]{{Value: step, Location: int64(comm.Rank())}}
	_, err := hostlib.AllreduceLocated(ctx, comm, reduce.MaxLoc, v, v)
	return Progress{Step: v[0].Value, Rank: int(v[0].Location)}, err
}
