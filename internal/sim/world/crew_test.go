package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// crew is a group with the work that it does.
type crew struct {
	*Group
	works []*work
	calls []*callWork // by messages

	isBlocking []bool      // members that begin an operation when those before are done
	turns      [][]func()  // of those: what is under way, and what follows
	revocation *revocation // nil: nobody revokes
	severed    []int       // two ranks that no rail joins any more; nil: none
	registry   *registry
	number     uint32 // of the group at switches, where there is no manager to give it
	left       int    // members that have completed the last barrier
	pending    int    // completions that are missing
	err        error
}

// newCrew has the members report their completions.
func newCrew(g *Group, reg *registry) *crew {
	c := &crew{Group: g, registry: reg}
	for r, h := range g.Hosts {
		h.Completed = func(done session.Completion) { c.completed(uint32(r), done) }
		h.Called = func(done callResult) { c.called(r, done) }
	}
	return c
}

func (c *crew) completed(r uint32, done session.Completion) {
	k := c.works[done.ID-1]
	if err := k.complete(r); err != nil && c.err == nil {
		c.err = err
	}
	c.pending--
	c.done(int(r))
	if k.op.Last {
		c.left++
	}
}

// add gives the group an operation to do.
func (c *crew) add(k *work) *work {
	c.works = append(c.works, k)
	k.op.ID = uint64(len(c.works))
	c.pending += len(c.Hosts)
	return k
}

// leave adds the last barrier.
func (c *crew) leave() *work {
	n := len(c.Hosts)
	k := &work{
		op: session.Operation{Collective: wire.Barrier, Last: true},
		in: make([][]byte, n), out: make([][]byte, n), lent: make([][2][]byte, n), done: make([]bool, n),
	}
	return c.add(k)
}

// start has one member begin an operation.
func (c *crew) start(k *work, r uint32) {
	k.started++
	c.Notify(r, k.input(r))
}

// startAll has all members begin an operation now.
func (c *crew) startAll(k *work) {
	for r := range c.Hosts {
		c.start(k, uint32(r))
	}
}

// startAfter has a member begin an operation after a while.
func (c *crew) startAfter(d time.Duration, k *work, r uint32) {
	c.World.After(d, fmt.Sprintf("rank %d starts operation %d", r, k.op.ID), func() { c.start(k, r) })
}

// idle reports whether all work is done, or one has gone wrong.
func (c *crew) idle() bool { return c.pending == 0 || c.err != nil }

// settled reports whether every member that lives has done its work, or knows
// that the group has failed.
func (c *crew) settled() bool {
	for r, h := range c.Hosts {
		if !c.World.Alive(c.Nodes[r]) {
			continue
		}
		if h.Ended == nil && len(h.Completions) < len(c.works) || slices.ContainsFunc(c.calls, func(k *callWork) bool { return k.parts[r].isStarted && !k.parts[r].isDone }) {
			return false
		}
	}
	return true
}

// checkDeaths judges the work of a group whose members may have died: who ends
// by a failure hears of one that is dead, or that another one cannot reach for good; or of a revoke.
func (c *crew) checkDeaths(v *verdict) error {
	errs := []error{c.err}
	for r, h := range c.Hosts {
		if e := h.Ended; e != nil && !c.isRevoked(e) && (e.Kind != wire.FailDead || c.World.Alive(c.Nodes[e.Rank]) && !slices.Contains(c.severed, int(e.Rank))) {
			errs = append(errs, fmt.Errorf("rank %d has ended: %+v", r, *e))
		}
	}
	for _, k := range c.works {
		errs = append(errs, v.judge(k, c.registry.results(k, c.Group, c.numbers()), c.Config().ChunkBytes))
	}
	for _, k := range c.calls {
		errs = append(errs, v.judgeCall(k))
	}
	if err := errors.Join(errs...); err != nil {
		return c.World.Fail(err)
	}
	return nil
}

// numbers returns what the group was called at switches.
func (c *crew) numbers() []uint32 {
	numbers := []uint32{c.number}
	for _, n := range c.Hosts[0].Notices {
		numbers = append(numbers, n.Group)
	}
	return numbers
}

// check judges all work, and that no member has ended by a failure.
func (c *crew) check(v *verdict) error {
	errs := []error{c.err}
	for r, h := range c.Hosts {
		if h.Ended != nil {
			errs = append(errs, fmt.Errorf("rank %d has ended: %+v", r, *h.Ended))
		}
		for _, no := range h.Refused {
			errs = append(errs, fmt.Errorf("rank %d refused operation %d: %w", r, no.ID, no.Err))
		}
		for _, k := range c.calls {
			if err := k.parts[r].err; err != nil {
				errs = append(errs, fmt.Errorf("rank %d: call %d: %w", r, k.number, err))
			}
		}
	}
	for _, k := range c.works {
		errs = append(errs, v.judge(k, c.registry.results(k, c.Group, c.numbers()), c.Config().ChunkBytes))
	}
	for _, k := range c.calls {
		errs = append(errs, v.judgeCall(k))
	}
	return errors.Join(errs...)
}

// await runs the world until all work of the crews is done, and judges it.
func await(w *sim.World, limit time.Duration, v *verdict, crews ...*crew) error {
	done := func() bool {
		for _, c := range crews {
			if !c.idle() {
				return false
			}
		}
		return true
	}
	if err := w.Await(limit, done); err != nil {
		return err
	}
	for _, c := range crews {
		if err := c.check(v); err != nil {
			return w.Fail(err)
		}
	}
	return nil
}
