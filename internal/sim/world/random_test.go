package world

import (
	"flag"
	"io"
	"os"
	"testing"
)

// The one story that TestRandomOperations reports instead, with its trace where -v
// is given.
var (
	one    = flag.Uint64("story", 0, "report this story alone")
	deaths = flag.Bool("deaths", false, "the story is one with deaths")
)

// tally counts what stories have seen, so that a test can report that they were
// not all the same.
type tally struct {
	verdict
	steps, events uint64
	stories       int
	offload       int // epochs that members entered on a tree of switches
	fallback      int // and on a tree of hosts
	mixed         int // operations that ran over both
	again         uint64
	filled        uint64
}

func (t *tally) add(s *story) {
	t.stories++
	t.steps += s.world.Steps()
	t.events += s.world.Events()
	for _, c := range s.crews {
		for _, h := range c.Hosts {
			for _, e := range h.Entered {
				if e.Offload {
					t.offload++
				} else {
					t.fallback++
				}
			}
			for _, done := range h.Completions {
				if done.OffloadDone > 0 && done.OffloadDone < done.Chunks {
					t.mixed++
				}
			}
			t.again += h.Core().Counters().Again
			t.filled += h.Core().Counters().Filled
		}
	}
}

// TestRandomOperations: issue 2, "Measure": random operations with faults, no
// wrong result, no hang, no two members that disagree in a bit.
func TestRandomOperations(t *testing.T) {
	if *one > 0 {
		s := newStory(*one, *deaths, trace())
		if err := s.run(&verdict{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	var all tally
	for seed := uint64(1); all.operations < 6000; seed++ {
		s := newStory(seed, false, nil)
		if err := s.run(&all.verdict); err != nil {
			t.Fatal(err)
		}
		all.add(s)
	}
	t.Logf("%+v", all)
	if all.offload == 0 || all.fallback == 0 || all.mixed == 0 || all.again == 0 || all.filled == 0 || all.bounded == 0 {
		t.Errorf("the stories have not seen everything: %+v", all)
	}
}

// TestRandomDeaths: members may die, too: then the others learn of it, what was
// completed is right, and nothing is left behind.
func TestRandomDeaths(t *testing.T) {
	var all tally
	dead, ended := 0, 0
	for seed := uint64(1); seed <= 100; seed++ {
		s := newStory(seed, true, nil)
		if err := s.run(&all.verdict); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.crews {
			for r, h := range c.Hosts {
				if !s.world.Alive(c.Nodes[r]) {
					dead++
				} else if h.Ended != nil {
					ended++
				}
			}
		}
	}
	t.Logf("%d members died, %d ended by it", dead, ended)
	if dead == 0 || ended == 0 {
		t.Error("nobody died, or nobody was reported")
	}
}

func trace() io.Writer {
	if testing.Verbose() {
		return os.Stdout
	}
	return nil
}

// TestSameStory: the same seed gives the same trace.
func TestSameStory(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		var hashes [2]uint64
		for i := range hashes {
			s := newStory(seed, false, nil)
			if err := s.run(&verdict{}); err != nil {
				t.Fatal(err)
			}
			hashes[i] = s.world.Hash()
		}
		if hashes[0] != hashes[1] {
			t.Errorf("story %d: %x and %x", seed, hashes[0], hashes[1])
		}
	}
}
