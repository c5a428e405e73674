package world

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// The traces of issue 2, point 5, that are about leaving and about members that
// disagree. Each test cites its words.

// TestMemberLeavesWhileAnotherLacksLastResult: "a member that leaves while
// another lacks the last result", that of the last barrier. The switch dies;
// the goodbye of who has left completes the barrier for the others.
func TestMemberLeavesWhileAnotherLacksLastResult(t *testing.T) {
	s := newScene(t, 1, 4, 4)
	s.enter(star(0, 4), 2, 4)
	lost := s.onceEach(func(p *packet) bool { return p.offload && p.is(wire.Result, 3) && p.to != s.node(3) })
	k := s.sum(3)
	s.startAll(k)
	last := s.leave()
	s.startAll(last)
	s.until("rank 3 has left", func() bool { return s.Hosts[3].Left })
	s.w.Crash(s.ids[0])
	s.finish()
	s.happened("the result of the last barrier is lost", lost)
	s.until("all are gone", s.allGone)
	for r, h := range s.Hosts {
		if len(h.Losses) > 0 {
			t.Errorf("rank %d has found the tree lost: the goodbyes were late", r)
		}
	}
}

func (s *scene) allGone() bool {
	return !slices.ContainsFunc(s.Hosts, func(h *Host) bool { return !h.Gone })
}

// TestGoodbyeIsReport: the same when the goodbye comes so late that the others
// are collecting reports: it counts as the leaver's.
func TestGoodbyeIsReport(t *testing.T) {
	s := newScene(t, 1, 4, 4)
	s.enter(star(0, 4), 2, 4)
	lost := s.onceEach(func(p *packet) bool { return p.offload && p.is(wire.Result, 0) && p.to != s.node(3) })
	collecting := new(int)
	s.rule(func(p *packet, fate *sim.Fate) {
		switch m := p.frame.(type) {
		case wire.FrameKind:
			if m == wire.FrameGoodbye && p.from == s.node(3) {
				fate.Delay = 100 * time.Millisecond
			}
		case *wire.Collect:
			*collecting++
		}
	})
	s.startAll(s.leave())
	s.until("rank 3 has left", func() bool { return s.Hosts[3].Left })
	s.w.Crash(s.ids[0])
	s.run(80 * time.Millisecond)
	s.happened("reports are collected", collecting)
	if s.left != 1 {
		t.Errorf("%d members have left without a word of rank 3's", s.left)
	}
	s.finish()
	s.happened("the result of the last barrier is lost", lost)
	s.until("all are gone", s.allGone)
}

// TestMemberLeavesWhileAnotherLacksResultBefore: the other lacks the result of
// the operation before the last barrier. Who wants to leave must stay, and give
// it its copy.
func TestMemberLeavesWhileAnotherLacksResultBefore(t *testing.T) {
	s := newScene(t, 1, 4, 4)
	s.enter(star(0, 4), 2, 4)
	lost := s.onceEach(func(p *packet) bool { return p.offload && p.is(wire.Result, 2) && p.to == s.node(1) })
	k := s.sum(3)
	s.startAll(k)
	s.startAll(s.leave())
	s.until("all but rank 1 have the result", func() bool { return k.done[0] && k.done[2] && k.done[3] })
	s.run(2 * hop)
	s.w.Crash(s.ids[0])
	s.finish()
	s.happened("the result of chunk 2 is lost", lost)
	if c := s.Hosts[1].Core().Counters(); c.Filled != 1 {
		t.Errorf("rank 1 was given %d results, want 1", c.Filled)
	}
	s.until("all are gone", s.allGone)
}

// disagreement is what two ranks start differently.
type disagreement struct {
	name  string
	usual []session.Operation // of all ranks
	other []session.Operation // of rank 2
}

func disagreements() []disagreement {
	op := func(c wire.Collective, f reduce.Function, e reduce.Type, root uint32, elements int) session.Operation {
		return session.Operation{Collective: c, Function: f, Element: e, Root: root, Elements: elements}
	}
	sum := op(wire.Allreduce, reduce.Sum, reduce.Int32, 0, 9)
	long := op(wire.Allreduce, reduce.Sum, reduce.Int32, 0, 40)
	barrier := session.Operation{Collective: wire.Barrier}
	return []disagreement{
		{"counts", ops(sum), ops(long)},
		{"counts in one chunk", ops(op(wire.Allreduce, reduce.Sum, reduce.Int32, 0, 2)), ops(op(wire.Allreduce, reduce.Sum, reduce.Int32, 0, 3))},
		{"an empty vector", ops(sum), ops(op(wire.Allreduce, reduce.Sum, reduce.Int32, 0, 0))},
		{"types", ops(sum), ops(op(wire.Allreduce, reduce.Sum, reduce.Float32, 0, 9))},
		{"functions", ops(sum), ops(op(wire.Allreduce, reduce.Max, reduce.Int32, 0, 9))},
		{"roots", ops(op(wire.Reduce, reduce.Sum, reduce.Int32, 0, 9)), ops(op(wire.Reduce, reduce.Sum, reduce.Int32, 3, 9))},
		{"two sources", ops(op(wire.Broadcast, 0, reduce.Int32, 0, 9)), ops(op(wire.Broadcast, 0, reduce.Int32, 2, 9))},
		{"collectives", ops(sum), ops(op(wire.Reduce, reduce.Sum, reduce.Int32, 0, 9))},
		{"order", ops(sum, barrier), ops(barrier, sum)},
		{"order of like operations", ops(op(wire.Allreduce, reduce.Min, reduce.Int32, 0, 9), sum), ops(sum, op(wire.Allreduce, reduce.Min, reduce.Int32, 0, 9))},
	}
}

func ops(o ...session.Operation) []session.Operation { return o }

// TestMembersDisagree: "different counts, types, functions, roots or operation
// order between members (each gets an error that names the two ranks)": in the
// switches and on the tree of hosts.
func TestMembersDisagree(t *testing.T) {
	for _, d := range disagreements() {
		t.Run(d.name+"/offload", func(t *testing.T) {
			s := newScene(t, 3, 4, 4)
			s.enter(pairs(), 2, 4)
			s.disagree(d.usual, d.other)
		})
		t.Run(d.name+"/hosts", func(t *testing.T) {
			newScene(t, 0, 4, 4).disagree(d.usual, d.other)
		})
	}
}

// TestTwoOperationsOfDifferentLengthsInDifferentOrder: "two operations of
// different lengths in different order": they take the same numbers together,
// so the last ones would fit.
func TestTwoOperationsOfDifferentLengthsInDifferentOrder(t *testing.T) {
	short := session.Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 4}
	long := short
	long.Elements = 20
	for name, switches := range map[string]int{"offload": 3, "hosts": 0} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, switches, 4, 4)
			if switches > 0 {
				s.enter(pairs(), 2, 4)
			}
			s.disagree(ops(short, long), ops(long, short))
		})
	}
}

// disagree has rank 2 start other operations than the rest, and checks that all
// end by an error that names rank 2 and another, and what both have said.
func (s *scene) disagree(usual, other []session.Operation) {
	s.Helper()
	for r := range s.Hosts {
		list := usual
		if r == 2 {
			list = other
		}
		for i, op := range list {
			op.ID = uint64(i + 1)
			k := newWork(s.rand, len(s.Hosts), op)
			s.Hosts[r].Completed = nil
			s.Notify(uint32(r), k.input(uint32(r)))
		}
	}
	s.until("all have ended", func() bool {
		return !slices.ContainsFunc(s.Hosts, func(h *Host) bool { return h.Ended == nil })
	})
	first := s.Hosts[0].Ended
	for r, h := range s.Hosts {
		if *h.Ended != *first {
			s.Errorf("rank %d hears %+v, rank 0 %+v", r, *h.Ended, *first)
		}
		if len(h.Completions) > 0 {
			s.Errorf("rank %d has completed %+v", r, h.Completions)
		}
	}
	e := first.Error
	if first.Kind != wire.FailDisagree || e.Rank[0] == e.Rank[1] || !slices.Contains(e.Rank[:], 2) {
		s.Fatalf("the error is %+v, want one that names rank 2 and another", *first)
	}
	for i, rank := range e.Rank {
		want := usual[0]
		if rank == 2 {
			want = other[0]
		}
		got := e.Says[i]
		if got.Collective != want.Collective || got.Function != want.Function || got.Element != want.Element || got.Root != want.Root || int(got.Elements) != want.Elements {
			s.Errorf("rank %d is said to have started %+v, and did %+v", rank, got, want)
		}
	}
}

// TestErrorLostOnItsWayUp: "an error lost on its way up". Ranks 0 and 2 share a
// leaf switch that finds out; the error for the root is lost, and then also
// those for both members, which get it by asking.
func TestErrorLostOnItsWayUp(t *testing.T) {
	for name, down := range map[string]bool{"up": false, "up and down": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, 3, 4, 4)
			s.enter(pairs(), 2, 4)
			up, announced := new(int), new(int)
			s.rule(func(p *packet, fate *sim.Fate) {
				switch {
				case p.frame != nil || p.Type != wire.Error || p.from != s.ids[1]:
				case p.to == s.ids[0]:
					*up++
					fate.Lose = true
				default:
					*announced++
					fate.Lose = down && *announced <= 2
				}
			})
			s.disagree(
				ops(session.Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 4}),
				ops(session.Operation{Collective: wire.Allreduce, Function: reduce.Max, Element: reduce.Int32, Elements: 4}))
			s.happened("the error on its way up is lost", up)
			if down && *announced < 3 {
				t.Errorf("the error was sent down %d times, want a repetition", *announced)
			}
			if c := s.counters(0); c.Errors > 0 {
				t.Errorf("the root has heard of it: %+v", c)
			}
		})
	}
}

// TestDeathOfMember: the death of a member is an error to all that names it,
// and nobody hangs.
func TestDeathOfMember(t *testing.T) {
	for dead := range 5 {
		s := newScene(t, 1, 5, 4)
		s.enter(star(0, 5), 2, 4)
		k := s.sum(30)
		s.startAll(k)
		s.until("some chunks are done", func() bool { return s.counters(0).Results >= 5 })
		s.w.Crash(s.node(dead))
		s.until("the others have ended", func() bool {
			for r, h := range s.Hosts {
				if r != dead && h.Ended == nil {
					return false
				}
			}
			return true
		})
		for r, h := range s.Hosts {
			if r != dead && (h.Ended.Kind != wire.FailDead || h.Ended.Rank != uint32(dead)) {
				t.Errorf("rank %d hears %+v, and rank %d is dead", r, *h.Ended, dead)
			}
		}
	}
}
