package elastic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
)

// job is a member's part in it.
type job struct {
	Config
	host *hostlib.Host
	comm *hostlib.Communicator
	lost []hostlib.Member // that have died, as far as this member was there
}

// Flags that members give when they do not go on with a communicator. All that live have to give one
// for it to count.
const (
	isDone   = 1 << iota // work has returned nil
	canGoOn              // there is no error but the end of the communicator
	isEnough             // members live
	allFlags = isDone | canGoOn | isEnough
)

// run calls work until it is done at all. On each communicator a member runs work at most once, then
// agrees on what is next, and then shrinks it, if the job goes on; or begins with one of the later.
func (j *job) run(ctx context.Context, work Work) error {
	for {
		failure := work(ctx, j.comm)
		change := Change{Cause: failure}
		before, since := j.comm.Members(), time.Now()
		for isReady := false; !isReady; {
			if goesOn, err := j.settle(ctx, failure); !goesOn {
				return err
			}
			smaller, err := j.comm.Shrink(ctx, j.Options...)
			if err != nil {
				j.comm.Abort(err.Error())
				return err
			}
			j.lost = append(j.lost, but(j.comm.Members(), smaller.Members())...)
			j.comm = smaller
			failure = j.replace(ctx)
			isReady = failure == nil
		}
		if now := j.comm.Members(); j.Changed != nil {
			change.Lost, change.Joined, change.Took = but(before, now), but(now, before), time.Since(since)
			j.Changed(change)
		}
	}
}

// settle agrees with the other members on whether the job goes on, and ends it otherwise.
func (j *job) settle(ctx context.Context, failure error) (goesOn bool, err error) {
	flags := uint32(allFlags)
	switch {
	case failure == nil:
	case ctx.Err() != nil || j.host.Err() != nil:
		j.comm.Abort(failure.Error())
		return false, failure
	case errors.Is(failure, ErrTooFew):
		flags = canGoOn
	case errors.Is(failure, hostlib.ErrEnded) && !errors.Is(failure, hostlib.ErrDisagreement):
		flags = canGoOn | isEnough
	default:
		flags = isEnough
	}
	if failure != nil { // others may wait for this member
		defer j.interrupt()()
	}
	a, err := j.agree(ctx, flags)
	switch {
	case err != nil:
		j.comm.Abort(err.Error())
		return false, err
	case flags&canGoOn == 0:
		err = failure
	case a.Flags&canGoOn == 0:
		err = ErrWork
	case a.Flags&isEnough == 0:
		err = fmt.Errorf("%w: %d, want at least %d", ErrTooFew, j.comm.Size()-len(a.Failed), j.MinMembers)
	case a.Flags&isDone == 0:
		return true, nil
	}
	j.finish(ctx, a.Failed)
	return false, err
}

// deathSpreads is longer than a member's death takes to end the communicator at all.
const deathSpreads = 100 * time.Millisecond

// interrupt has all others return from work; the caller calls the function when they have. After a
// death those that are in collectives do so by themselves; by a revoke that comes first they would
// not know who has died, whom they then had to find dead themselves.
func (j *job) interrupt() (done func()) {
	var death *hostlib.MemberError
	if errors.As(j.comm.Err(), &death) {
		timer := time.AfterFunc(deathSpreads, j.comm.Revoke)
		return func() { timer.Stop() }
	}
	j.comm.Revoke()
	return func() {}
}

// agree agrees on flags. That members have died is no error.
func (j *job) agree(ctx context.Context, flags uint32) (hostlib.Agreement, error) {
	a, err := j.comm.Agree(ctx, flags)
	if errors.Is(err, hostlib.ErrUnacknowledged) {
		err = nil
	}
	return a, err
}

// replace has the communicator grow by spares for the members that are missing. An error is the
// failure of that, as if it were one of work.
func (j *job) replace(ctx context.Context) error {
	missing := len(j.Members) - j.comm.Size()
	if missing > 0 && len(j.unused()) > 0 {
		if err := j.grow(ctx, missing); err != nil {
			return err
		}
	}
	if n := j.comm.Size(); n < j.MinMembers {
		return fmt.Errorf("%w: %d, want at least %d", ErrTooFew, n, j.MinMembers)
	}
	return nil
}

func (j *job) grow(ctx context.Context, missing int) error {
	isThere := make([]uint32, len(j.Spares))
	if j.comm.Rank() == 0 {
		within, cancel := context.WithTimeout(ctx, j.SpareWait)
		defer cancel()
		found := j.host.FindSpares(within, but(j.unused(), j.lost), missing)
		for i, m := range j.Spares {
			if slices.Contains(found, m) {
				isThere[i] = 1
			}
		}
	}
	if _, err := hostlib.Broadcast(ctx, j.comm, 0, isThere); err != nil {
		return err
	}
	var spares []hostlib.Member
	for i, is := range isThere {
		if is != 0 {
			spares = append(spares, j.Spares[i])
		}
	}
	if len(spares) == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, j.SpareWait)
	defer cancel()
	larger, err := j.comm.Grow(within, spares, j.Options...)
	switch {
	case err == nil:
		_ = j.comm.Leave(ctx) // a death ends the larger one, too
		j.comm = larger
	case ctx.Err() != nil, errors.Is(err, hostlib.ErrEnded), errors.Is(err, hostlib.ErrArgument):
		return err
	}
	return nil // perhaps without them: they have died since
}

// unused returns the spares that are no members.
func (j *job) unused() []hostlib.Member { return but(j.Spares, j.comm.Members()) }

// finish dismisses the spares, and leaves. The lowest rank that lives dismisses them; when it dies
// then, the next one does.
func (j *job) finish(ctx context.Context, failed []int) {
	for len(j.unused()) > 0 {
		leader := 0
		for slices.Contains(failed, leader) {
			leader++
		}
		if j.comm.Rank() == leader {
			within, cancel := context.WithTimeout(ctx, j.SpareWait)
			j.host.DismissSpares(within, but(j.unused(), j.lost))
			cancel()
		}
		a, err := j.agree(ctx, 0)
		if err != nil || !slices.Contains(a.Failed, leader) {
			break
		}
		failed = a.Failed
	}
	_ = j.comm.Leave(ctx) // it may have ended
}

// but returns those of members that are not among others.
func but(members, others []hostlib.Member) []hostlib.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m hostlib.Member) bool {
		return slices.ContainsFunc(others, func(o hostlib.Member) bool { return o.Host == m.Host && o.Process == m.Process })
	})
}
