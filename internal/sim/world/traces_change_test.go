package world

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// The traces of issue 2, point 5, that are about changes of epoch. Each test
// cites its words.

// pairs is a tree in which no two neighbours by rank share a leaf switch: it
// does not give the same bits as the tree of hosts.
func pairs() shape {
	return shape{on: []int{0, 1, 2}, parents: []int{0, 0}, leaves: []int{1, 2, 1, 2}}
}

// TestOneHasReturnedRootDies: "one member has a result and has returned, the
// other lacks it, the root dies (same float bits on both)".
func TestOneHasReturnedRootDies(t *testing.T) {
	s := newScene(t, 3, 4, 4)
	s.enter(pairs(), 2, 4)
	lost := s.onceEach(func(p *packet) bool { return p.is(wire.Result, 0) && p.from == s.ids[0] && p.to == s.ids[2] })
	k := s.sum(1)
	s.startAll(k)
	s.until("ranks 0 and 2 have returned", func() bool { return k.done[0] && k.done[2] })
	if k.done[1] || k.done[3] {
		t.Fatal("ranks 1 and 3 have the result")
	}
	s.w.Crash(s.ids[0])
	s.finish()
	s.happened("the result for switch C is lost", lost)
	s.inSwitchTree(k, 2)
	if s.allIn(2) {
		t.Error("the tree was not found lost")
	}
	if n := s.total(func(c session.Counters) uint64 { return c.Again }); n > 0 {
		t.Errorf("%d chunks were reduced again", n)
	}
}

// TestWindowTwoLostResultThenSwitchDies: "W = 2, a lost result while later ones
// arrive, then the switch dies".
func TestWindowTwoLostResultThenSwitchDies(t *testing.T) {
	s := newScene(t, 1, 3, 2)
	s.enter(star(0, 3), 2, 2)
	lost := s.onceEach(func(p *packet) bool { return p.is(wire.Result, 4) && p.to == s.node(1) && p.offload })
	later := s.onceEach(func(p *packet) bool { return p.is(wire.Result, 5) && p.to == s.node(1) && p.offload })
	s.rule(func(p *packet, fate *sim.Fate) {
		if p.is(wire.Result, 5) && p.to == s.node(1) {
			fate.Lose = false
		}
	})
	k := s.sum(12)
	s.startAll(k)
	s.until("rank 0 has sent chunk 7", func() bool { return *later > 0 && s.Hosts[0].Core().Counters().Sent == 8 })
	s.w.Crash(s.ids[0])
	s.finish()
	s.happened("the result of 4 is lost", lost)
	c := s.Hosts[1].Core().Counters()
	if c.Filled != 1 || c.Again != 0 {
		t.Errorf("rank 1: %d results were given to it, %d reduced again; want the one of chunk 4 and none", c.Filled, c.Again)
	}
	if c := s.Hosts[0].Completions[0]; c.OffloadDone != 6 {
		t.Errorf("rank 0: %d chunks by offload, want 6", c.OffloadDone)
	}
}

// TestWindowShrinksAndSecondFailure: "a window that shrinks from one epoch to
// the next and a second failure". Rank 1 loses every second result of the first
// tree; the second tree has a window of two, and dies, too.
func TestWindowShrinksAndSecondFailure(t *testing.T) {
	s := newScene(t, 2, 3, 8)
	s.enter(star(0, 3), 2, 8)
	s.OfferAll(s.install(star(1, 3), 4, 2)[:1]) // held by rank 0 alone: not entered yet
	s.run(time.Millisecond)
	lost := s.onceEach(func(p *packet) bool {
		return p.offload && p.Epoch == 2 && p.Type == wire.Result && p.to == s.node(1) && p.Chunk%2 == 1
	})
	beyond := s.beyond(4, 2)
	results := new(int)
	s.rule(func(p *packet, _ *sim.Fate) {
		if p.Epoch == 4 && p.Type == wire.Result {
			*results++
		}
	})
	k := s.sum(40)
	s.startAll(k)
	s.until("rank 1 lacks results", func() bool { return *lost >= 4 })
	s.w.Crash(s.ids[0])
	// Ranks 1 and 2 hold the second tree when they are asked for it.
	links := linksOf(s, star(1, 3), 4, 2)
	s.Offer(1, links[1])
	s.Offer(2, links[2])
	s.until("the second tree works", func() bool { return *results > 9 })
	s.w.Crash(s.ids[1])
	s.finish()
	if *beyond > 0 {
		t.Errorf("%d contributions beyond the window of the second tree", *beyond)
	}
	epochs := []uint32{}
	for _, e := range s.Hosts[1].Entered {
		epochs = append(epochs, e.Epoch)
	}
	if !slices.Equal(epochs, []uint32{2, 4, 5}) {
		t.Errorf("rank 1 has entered epochs %v, want 2, 4 and 5", epochs)
	}
	if n := s.total(func(c session.Counters) uint64 { return c.Filled }); n == 0 {
		t.Error("no result was given by one member to another")
	}
}

// TestWindowShrinksBeneathHeldNumbers: a window that shrinks where one number is
// missing at all and those behind it are held: their results are no proof that
// every member has the missing one in the new epoch, and its slot must not be
// taken over before.
func TestWindowShrinksBeneathHeldNumbers(t *testing.T) {
	s := newScene(t, 2, 3, 8)
	s.enter(star(0, 3), 2, 8)
	links := s.install(star(1, 3), 4, 2)
	s.Offer(0, links[0])
	s.run(time.Millisecond)
	missing := s.onceEach(func(p *packet) bool {
		return p.offload && p.Epoch == 2 && p.is(wire.Contribution, 1) && p.from == s.node(2)
	})
	lost := s.lose(func(p *packet) bool {
		return p.offload && p.Epoch == 4 && p.is(wire.Result, 1) && p.to == s.node(1)
	})
	k := s.sum(24)
	s.startAll(k)
	s.until("all hold chunk 7", func() bool {
		return !slices.ContainsFunc(s.Hosts, func(h *Host) bool { return h.Core().Counters().Results < 7 })
	})
	s.w.Crash(s.ids[0])
	s.Offer(1, links[1])
	s.Offer(2, links[2])
	s.finish()
	s.happened("rank 2's contribution to chunk 1 is lost", missing)
	s.happened("rank 1's result of chunk 1 is lost", lost)
	if !s.allIn(4) {
		t.Errorf("rank 0 has entered %+v, want epoch 4 last", s.Hosts[0].Entered)
	}
	for r, h := range s.Hosts {
		if slices.ContainsFunc(h.Losses, func(l session.Loss) bool { return l.Epoch == 4 }) {
			t.Errorf("rank %d has taken the second tree for lost: %+v", r, h.Losses)
		}
	}
}

// linksOf returns the offers of a tree that is installed already.
func linksOf(s *scene, f shape, epoch, window uint32) []session.Link {
	var on []sim.NodeID
	for _, i := range f.on {
		on = append(on, s.ids[i])
	}
	_, links := configure(f.tree(), Terms{
		Config: switchreduce.Config{Group: s.number, Epoch: epoch, Cookie: wire.Cookie(epoch) * 11, Window: window, ChunkBytes: chunkBytes, Probes: 4},
		Port:   treePort, Switches: on,
	}, s.Nodes)
	return links
}

// beyond counts the contributions of members in an epoch that are sent before
// all results of so many numbers before them have been.
func (s *scene) beyond(epoch, window uint32) *int {
	bad := new(int)
	result := map[sim.NodeID]map[uint32]bool{}
	s.rule(func(p *packet, _ *sim.Fate) {
		if !p.offload || p.Epoch != epoch {
			return
		}
		switch p.Type {
		case wire.Result:
			if result[p.to] == nil {
				result[p.to] = map[uint32]bool{}
			}
			result[p.to][p.Chunk] = true
		case wire.Contribution:
			first := p.Chunk
			for n := range result[p.from] {
				if wire.Newer(first, n) {
					first = n
				}
			}
			for n := first; wire.Newer(p.Chunk, n+window-1); n++ {
				if !result[p.from][n] {
					*bad++
					return
				}
			}
		default: // repair
		}
	})
	return bad
}

// TestReduceSinkAloneLacksResult: "a rooted reduce whose sink alone lacks its
// result when the tree changes". The others have returned, and contribute again
// from their copies.
func TestReduceSinkAloneLacksResult(t *testing.T) {
	s := newScene(t, 1, 4, 4)
	s.enter(star(0, 4), 2, 4)
	lost := s.onceEach(func(p *packet) bool { return p.offload && p.Type == wire.Result && p.to == s.node(2) })
	k := s.floats(wire.Reduce, 2, 3)
	s.startAll(k)
	s.until("all but the sink have returned", func() bool { return k.done[0] && k.done[1] && k.done[3] })
	s.w.Crash(s.ids[0])
	s.finish()
	s.happened("the results for the sink are lost", lost)
	for r, want := range []uint64{3, 3, 0, 3} {
		if c := s.Hosts[r].Core().Counters(); c.Again != want || c.Filled != 0 {
			t.Errorf("rank %d: %d chunks reduced again, want %d: %+v", r, c.Again, want, c)
		}
	}
}

// TestBroadcastRootAloneIsDone: the counterpart: the root of a broadcast has
// returned and is no sink, and nobody has the vector.
func TestBroadcastRootAloneIsDone(t *testing.T) {
	s := newScene(t, 1, 4, 4)
	s.enter(star(0, 4), 2, 4)
	lost := s.onceEach(func(p *packet) bool { return p.offload && p.Type == wire.Result && p.to != s.node(1) })
	k := s.floats(wire.Broadcast, 1, 3)
	s.startAll(k)
	s.until("the root has returned", func() bool { return k.done[1] })
	s.w.Crash(s.ids[0])
	s.finish()
	s.happened("the results for the others are lost", lost)
	if c := s.Hosts[1].Core().Counters(); c.Again != 3 {
		t.Errorf("the root has contributed %d chunks again, want 3", c.Again)
	}
}

// TestSwitchRestartsEmptyInSameEpoch: "a switch that restarts empty in the same
// epoch": between two contributions to a chunk. It answers nothing, and the
// members go elsewhere.
func TestSwitchRestartsEmptyInSameEpoch(t *testing.T) {
	s := newScene(t, 3, 4, 2)
	s.enter(pairs(), 2, 2)
	k := s.sum(6)
	held := s.once(
		func(p *packet) bool { return p.is(wire.Contribution, 3) && p.from == s.node(3) },
		func(fate *sim.Fate) { fate.Delay = 50 * time.Microsecond })
	s.startAll(k)
	s.until("switch C holds one contribution to chunk 3", func() bool { return *held > 0 })
	s.run(2 * hop)
	s.w.Restart(s.ids[2], &Switch{Installed: s.registry.installed})
	s.finish()
	for r, h := range s.Hosts {
		if c := h.Completions[0]; c.OffloadDone < 2 || c.OffloadDone == c.Chunks {
			t.Errorf("rank %d: %d of %d chunks by offload, want some", r, c.OffloadDone, c.Chunks)
		}
	}
	if s.allIn(2) {
		t.Error("the members are still in the epoch that the switch lost")
	}
}

// TestSecondFailureInAgreement: "a second failure in the middle of the
// agreement". When the decision for the second tree is on its way, its switch
// dies, and so does the connection that carries the decision.
func TestSecondFailureInAgreement(t *testing.T) {
	for name, broken := range map[string]bool{"the next tree": false, "the next tree and a connection": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, 2, 5, 4)
			s.enter(star(0, 5), 2, 4)
			links := s.install(star(1, 5), 4, 4)
			s.Offer(0, links[0])
			s.run(time.Millisecond)
			decided := s.once(func(p *packet) bool {
				d, ok := p.frame.(*wire.Decide)
				return ok && d.Epoch == 4 && p.to == s.node(2)
			}, func(*sim.Fate) {
				s.w.After(hop/2, "second failure", func() {
					s.w.Crash(s.ids[1])
					if broken {
						s.w.Break(s.node(0), s.node(2))
					}
				})
			})
			k, l := s.sum(20), s.sum(5)
			s.startAll(k)
			s.startAll(l)
			s.until("some chunks are done", func() bool { return s.counters(0).Results >= 5 })
			s.w.Crash(s.ids[0])
			for r := 1; r < 5; r++ {
				s.Offer(uint32(r), links[r])
			}
			s.finish()
			s.happened("the decision for epoch 4", decided)
			for r, h := range s.Hosts {
				if e := h.Entered; e[len(e)-1].Epoch != 5 || e[len(e)-2].Epoch != 4 {
					t.Errorf("rank %d has entered %+v, want epochs 4 and 5 last", r, e)
				}
			}
		})
	}
}

// TestFailureWhileReporting: the same in the round's first half: the connection
// by which a report travels breaks, and what it carried is lost.
func TestFailureWhileReporting(t *testing.T) {
	s := newScene(t, 1, 5, 4)
	s.enter(star(0, 5), 2, 4)
	reported := s.once(func(p *packet) bool {
		_, ok := p.frame.(*wire.Report)
		return ok && p.from == s.node(2)
	}, func(*sim.Fate) {
		s.w.After(hop/2, "break", func() {
			s.w.Cut(s.node(0), s.node(2)) // so that nothing under way survives the break
			s.w.Break(s.node(0), s.node(2))
			s.w.Repair(s.node(0), s.node(2))
		})
	})
	k := s.sum(20)
	s.startAll(k)
	s.until("some chunks are done", func() bool { return s.counters(0).Results >= 5 })
	s.w.Crash(s.ids[0])
	s.finish()
	if *reported != 2 {
		t.Errorf("rank 2 has reported %d times, want twice", *reported)
	}
}
