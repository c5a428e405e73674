package world

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// The traces of issue 2, point 5, that are about slots and numbers. Each test
// cites its words.

// TestDuplicateArrivesTwoWindowsLater: "a duplicate that arrives two windows
// later". The slot then waits for just the rank that the duplicate is from.
func TestDuplicateArrivesTwoWindowsLater(t *testing.T) {
	s := newScene(t, 1, 2, 2)
	s.enter(star(0, 2), 2, 2)
	copied := s.once(
		func(p *packet) bool { return p.offload && p.is(wire.Contribution, 0) && p.from == s.node(1) },
		func(fate *sim.Fate) { fate.Copy, fate.CopyDelay = true, 2*time.Millisecond })
	early, late := s.sum(4), s.sum(4)
	s.startAll(early)
	s.start(late, 0)
	s.startAfter(4*time.Millisecond, late, 1)
	s.run(3 * time.Millisecond)
	s.happened("the contribution to chunk 0", copied)
	s.drops(0, switchreduce.DropLate, 1)
	if c := s.counters(0); c.Results != 4 || c.Taken != 4+4+2 {
		t.Errorf("chunk 4 has not waited for rank 1: %+v", c)
	}
	s.finish()
	s.drops(0, switchreduce.DropLate, 1)
}

// TestDuplicateResultTwoWindowsLater: the same the other way: the member waits
// for chunk 4 when a second result of chunk 0 comes.
func TestDuplicateResultTwoWindowsLater(t *testing.T) {
	s := newScene(t, 1, 2, 2)
	s.enter(star(0, 2), 2, 2)
	copied := s.once(
		func(p *packet) bool { return p.offload && p.is(wire.Result, 0) && p.to == s.node(0) },
		func(fate *sim.Fate) { fate.Copy, fate.CopyDelay = true, 2*time.Millisecond })
	early, late := s.sum(4), s.sum(4)
	s.startAll(early)
	s.start(late, 0)
	s.startAfter(4*time.Millisecond, late, 1)
	s.run(3 * time.Millisecond)
	s.happened("the result of chunk 0", copied)
	if c := s.Hosts[0].Core().Counters(); c.Discarded != 1 || c.Results != 4 {
		t.Errorf("rank 0: %+v", c)
	}
	s.finish()
}

// TestResultForSlotTakenOver: "a result that arrives for a slot taken over".
// The slot of chunk 0 at a leaf switch serves chunk 4, is complete and waits
// for its result when a second result of chunk 0 comes.
func TestResultForSlotTakenOver(t *testing.T) {
	s := newScene(t, 3, 4, 2)
	s.enter(shape{on: []int{0, 1, 2}, parents: []int{0, 0}, leaves: []int{1, 1, 2, 2}}, 2, 2)
	copied := s.once(
		func(p *packet) bool {
			return p.offload && p.is(wire.Result, 0) && p.from == s.ids[0] && p.to == s.ids[1]
		},
		func(fate *sim.Fate) { fate.Copy, fate.CopyDelay = true, 2*time.Millisecond })
	early, late := s.sum(4), s.sum(4)
	s.startAll(early)
	for r := range uint32(3) {
		s.start(late, r)
	}
	s.startAfter(4*time.Millisecond, late, 3)
	s.run(3 * time.Millisecond)
	s.happened("the result of chunk 0 for switch B", copied)
	s.drops(1, switchreduce.DropLate, 1)
	if c := s.counters(1); c.Partials != 6 || c.Results != 4 {
		t.Errorf("switch B: %+v", c)
	}
	s.finish()
}

// TestNumbersWrap: "numbers that wrap": in the window, in the slots, in repair,
// and in the decision of a change of epoch.
func TestNumbersWrap(t *testing.T) {
	first := ^uint32(0) - 5 // six chunks before number 0
	s := newSceneFrom(t, 2, endpoint.Config{
		Group: 1, Cookie: 7, Size: 3, ChunkBytes: chunkBytes, Window: 4, First: first, Timing: timing(),
	})
	s.enter(star(0, 3), 2, 4)
	var sent []uint32
	s.rule(func(p *packet, _ *sim.Fate) {
		if p.offload && p.Type == wire.Contribution && p.from == s.node(2) {
			sent = append(sent, p.Chunk)
		}
	})
	up := s.lose(func(p *packet) bool { return p.is(wire.Contribution, ^uint32(0)) && p.from == s.node(1) })
	down := s.lose(func(p *packet) bool { return p.is(wire.Result, 0) && p.to == s.node(2) })
	s.startAll(s.sum(12))
	s.finish()
	s.happened("the last contribution before 0 is lost", up)
	s.happened("the result of 0 is lost", down)
	seen := map[uint32]bool{}
	for _, n := range sent {
		seen[n] = true
	}
	for n := first; n != 6; n++ {
		if !seen[n] {
			t.Errorf("rank 2 has not contributed to number %d", n)
		}
	}
	if l := s.total(func(c session.Counters) uint64 { return c.Again }); l > 0 || s.Hosts[0].Core().Epoch() != 2 {
		t.Errorf("the tree was lost")
	}
}

// TestNumbersWrapInChange: the switch dies when rank 0 has the results of the
// last number and of 0, and rank 1 has neither.
func TestNumbersWrapInChange(t *testing.T) {
	s := newSceneFrom(t, 1, endpoint.Config{
		Group: 1, Cookie: 7, Size: 2, ChunkBytes: chunkBytes, Window: 4, First: ^uint32(0) - 1, Timing: timing(),
	})
	s.enter(star(0, 2), 2, 4)
	lost := s.onceEach(func(p *packet) bool { return p.Type == wire.Result && p.to == s.node(1) && p.offload })
	k := s.sum(8)
	s.startAll(k)
	s.run(3*hop - 1)
	s.run(2)
	s.w.Crash(s.ids[0])
	s.finish()
	s.happened("results are lost", lost)
	if c := s.Hosts[1].Core().Counters(); c.Filled != 4 {
		t.Errorf("rank 1 was given %d results by rank 0, want 4: %+v", c.Filled, c)
	}
}

// onceEach loses every packet that matches.
func (s *scene) onceEach(match func(p *packet) bool) *int {
	seen := new(int)
	s.rule(func(p *packet, fate *sim.Fate) {
		if match(p) {
			*seen++
			fate.Lose = true
		}
	})
	return seen
}

// TestSlotHoldsContributionOfEpochBefore: "a slot that holds a contribution of
// the epoch before". Switch A holds rank 0's contribution to chunk 0 as its
// first child's; in the next epoch its first child is rank 1.
func TestSlotHoldsContributionOfEpochBefore(t *testing.T) {
	s := newScene(t, 2, 3, 2)
	s.enter(star(0, 3), 2, 2)
	k := s.sum(2)
	late := s.once(
		func(p *packet) bool {
			return p.offload && p.Epoch == 2 && p.is(wire.Contribution, 0) && p.from == s.node(2)
		},
		func(fate *sim.Fate) { fate.Delay = 5 * time.Millisecond })
	s.start(k, 0)
	s.start(k, 2)
	s.run(100 * time.Microsecond)
	if c := s.counters(0); c.Taken != 3 || c.Results != 0 {
		t.Fatalf("switch A is to hold three contributions: %+v", c)
	}
	s.enter(shape{on: []int{1, 0}, parents: []int{0}, leaves: []int{0, 1, 1}}, 4, 2)
	s.run(time.Millisecond)
	s.start(k, 1)
	s.finish()
	s.inSwitchTree(k, 4)
	s.run(5 * time.Millisecond)
	s.happened("rank 2's old contribution comes late", late)
	s.drops(0, switchreduce.DropStale, 1)
	if e := s.Hosts[0].Core().Epoch(); e != 4 {
		t.Errorf("rank 0 is in epoch %d", e)
	}
}
