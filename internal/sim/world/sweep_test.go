package world

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// sweep reports the short life of a managed group once for every event in it,
// with a fault just before that event.
func sweep(t *testing.T, stride uint64, fault func(e *estate)) {
	t.Helper()
	runs := 0
	err := sim.Sweep(stride, func(index uint64) (uint64, error) {
		runs++
		w, err := sim.New(sceneConfig())
		if err != nil {
			return 0, err
		}
		e, err := buildEstate(w)
		if err != nil {
			return 0, err
		}
		e.T = t
		w.AtEvent(index, "fault", func() { fault(e) })
		return e.life()
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d runs", runs)
}

// life has the group work while it is formed and after, and then leave.
func (e *estate) life() (uint64, error) {
	e.startAll(e.sum(2))
	n := len(e.Hosts)
	k, l := e.sum(6), e.floats(wire.Reduce, 3, 3)
	gathered, split := e.add(drawParts(e.rand, gatherForm, n, n)), e.add(drawParts(e.rand, reduceScatterForm, n, n))
	last := e.leave()
	for r := range uint32(len(e.Hosts)) {
		late := 1500*time.Microsecond + time.Duration(r)*hop
		e.startAfter(late, k, r)
		for _, k := range []*work{l, gathered, split} {
			e.startAfter(late, k, r)
		}
		e.startAfter(late+10*hop, last, r)
	}
	if err := await(e.w, patience, &verdict{}, e.crew); err != nil {
		return 0, err
	}
	events := e.w.Events()
	return events, e.w.Await(patience, func() bool { return e.isClean() && e.allGone() })
}

// anyRoot returns the node of the tree's root, or of a spine where there is no
// tree.
func (e *estate) anyRoot() sim.NodeID {
	if group, epoch := e.active(); group != 0 && epoch != 0 {
		return e.root()
	}
	return e.Switches[len(e.Switches)-1]
}

// TestRootDiesAtEveryEvent: issue 2, point 5: "crashes of switches ... at any
// event".
func TestRootDiesAtEveryEvent(t *testing.T) {
	sweep(t, 1, func(e *estate) { e.w.Crash(e.anyRoot()) })
}

// TestRootRestartsAtEveryEvent: it comes back empty, at once.
func TestRootRestartsAtEveryEvent(t *testing.T) {
	sweep(t, 1, func(e *estate) { e.RestartSwitch(slices.Index(e.Switches, e.anyRoot())) })
}

// TestLeafDiesAtEveryEvent: there is no tree for its hosts any more.
func TestLeafDiesAtEveryEvent(t *testing.T) {
	sweep(t, 2, func(e *estate) { e.w.Crash(e.Switches[0]) })
}

// TestConnectionBreaksAtEveryEvent: "crashes of ... hosts' connections ... at
// any event": each of the three connections of members.
func TestConnectionBreaksAtEveryEvent(t *testing.T) {
	for i := range 3 {
		sweep(t, 1, func(e *estate) { e.w.Break(e.Pairs()[i][0], e.Pairs()[i][1]) })
	}
}

// TestConnectionBreaksWhileTreeDies: the same while the members agree upon the
// next epoch.
func TestConnectionBreaksWhileTreeDies(t *testing.T) {
	for i := range 3 {
		sweep(t, 2, func(e *estate) {
			e.w.Crash(e.anyRoot())
			e.w.After(600*time.Microsecond, "break", func() { e.w.Break(e.Pairs()[i][0], e.Pairs()[i][1]) })
		})
	}
}

// TestManagerDiesAtEveryEvent: "crashes of ... the manager at any event", for
// ever, and for a while.
func TestManagerDiesAtEveryEvent(t *testing.T) {
	sweep(t, 1, func(e *estate) { e.w.Crash(e.Manager) })
	sweep(t, 1, func(e *estate) {
		e.w.Crash(e.Manager)
		e.w.After(2*time.Millisecond, "restart", e.RestartManager)
	})
}

// TestRootAndManagerDieAtEveryEvent: both at once.
func TestRootAndManagerDieAtEveryEvent(t *testing.T) {
	sweep(t, 2, func(e *estate) {
		e.w.Crash(e.anyRoot())
		e.w.Crash(e.Manager)
		e.w.After(2*time.Millisecond, "restart", e.RestartManager)
	})
}

// TestMemberDiesAtEveryEvent: the others end by an error that names it, or have
// left before.
func TestMemberDiesAtEveryEvent(t *testing.T) {
	for dead := range 4 {
		sweepDeath(t, dead)
	}
}

func sweepDeath(t *testing.T, dead int) {
	t.Helper()
	err := sim.Sweep(2, func(index uint64) (uint64, error) {
		w, err := sim.New(sceneConfig())
		if err != nil {
			return 0, err
		}
		e, err := buildEstate(w)
		if err != nil {
			return 0, err
		}
		w.AtEvent(index, "death", func() { w.Crash(e.node(dead)) })
		if _, err := e.life(); err == nil || index == sim.Undisturbed {
			return w.Events(), err
		}
		over := func() bool {
			for r, h := range e.Hosts {
				if r != dead && !h.Left && h.Ended == nil {
					return false
				}
			}
			return true
		}
		if err := w.Await(patience, over); err != nil {
			return 0, err
		}
		for r, h := range e.Hosts {
			if r != dead && h.Ended != nil && h.Ended.Rank != uint32(dead) {
				return 0, w.Fail(errors.New("a member is notified of another's death"))
			}
		}
		return w.Events(), w.Await(patience, e.isClean)
	})
	if err != nil {
		t.Error(err)
	}
}

// resized is an estate whose group's window grows while it works, and is made
// smaller again: life goes through both.
func resized(w *sim.World) (*estate, error) {
	e, err := buildEstate(w)
	if err != nil {
		return nil, err
	}
	say := func(at time.Duration, window Demand) {
		w.After(at, "demand", func() { w.Command(e.Nodes[0], window) })
	}
	say(0, 4)
	for at := 1500 * time.Microsecond; at < 4*time.Millisecond; at += 500 * time.Microsecond {
		say(at, 1) // what it has is given back after Idle
	}
	say(5*time.Millisecond, 4)
	return e, nil
}

// longLife has the group work from its beginning until its window has been changed
// thrice, and then leave.
func (e *estate) longLife() (uint64, error) {
	e.startAll(e.sum(2))
	for i := range 12 {
		k := e.sum(5)
		for r := range uint32(len(e.Hosts)) {
			e.startAfter(time.Duration(i)*600*time.Microsecond+time.Duration(r)*hop, k, r)
		}
	}
	last := e.leave()
	for r := range uint32(len(e.Hosts)) {
		e.startAfter(7500*time.Microsecond, last, r)
	}
	if err := await(e.w, patience, &verdict{}, e.crew); err != nil {
		return 0, err
	}
	events := e.w.Events()
	return events, e.w.Await(patience, func() bool { return e.isClean() && e.allGone() })
}

// sweepResizes is sweep for such a group. All results are right, and all have left,
// whatever happens at whichever event.
func sweepResizes(t *testing.T, stride uint64, fault func(e *estate)) {
	t.Helper()
	changed := 0
	err := sim.Sweep(stride, func(index uint64) (uint64, error) {
		w, err := sim.New(sceneConfig())
		if err != nil {
			return 0, err
		}
		e, err := resized(w)
		if err != nil {
			return 0, err
		}
		e.T = t
		w.AtEvent(index, "fault", func() { fault(e) })
		events, err := e.longLife()
		r := e.ManagerNode().Core().Resizes()
		changed = max(changed, int(r.Grown+r.Shrunk))
		return events, err
	})
	if err != nil {
		t.Error(err)
	}
	if changed < 3 {
		t.Errorf("windows were changed %d times at the most", changed)
	}
}

// TestResizeWithAFaultAtEveryEvent: a switch, a connection, the manager die at any
// event of a window's change, or packets are lost meanwhile.
func TestResizeWithAFaultAtEveryEvent(t *testing.T) {
	sweepResizes(t, 2, func(e *estate) { e.w.Crash(e.anyRoot()) })
	sweepResizes(t, 2, func(e *estate) { e.RestartSwitch(slices.Index(e.Switches, e.anyRoot())) })
	sweepResizes(t, 2, func(e *estate) { e.w.Break(e.Pairs()[0][0], e.Pairs()[0][1]) })
	sweepResizes(t, 2, func(e *estate) {
		e.w.Crash(e.Manager)
		e.w.After(2*time.Millisecond, "restart", e.RestartManager)
	})
	sweepResizes(t, 2, func(e *estate) {
		from, to := e.Switches[0], e.node(0)
		e.w.Cut(from, to)
		e.w.After(500*time.Microsecond, "repair", func() { e.w.Repair(from, to) })
	})
}
