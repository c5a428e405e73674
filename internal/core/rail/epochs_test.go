package rail

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// epochSide is one host's half of paths that begin with hellos.
type epochSide struct {
	epochs Epochs
	last   uint64
	paths  map[*epochPath]*Hello // what was said on each last
	agreed map[*epochPath]bool
	lost   int // sessions
}

// epochPath carries hellos between two sides, in order.
type epochPath struct{ inbox [2][]Hello }

func (s *epochSide) begin() {
	s.last++
	s.epochs.Begin(s.last)
}

// say says on all paths which session this side is in.
func (s *epochSide) say(i int) {
	for p, said := range s.paths {
		if h := s.epochs.Hello(); *said != h {
			*said = h
			p.inbox[1-i] = append(p.inbox[1-i], h)
		}
	}
}

// lose closes all paths but one.
func (s *epochSide) lose(keep *epochPath) {
	s.lost++
	for p := range s.paths {
		if p != keep {
			delete(s.paths, p)
			delete(s.agreed, p)
		}
	}
}

// TestEpochsAgree: whatever is lost and heard late, both sides agree in the end on each path
// that both have, and never is a path agreed on which the other takes for another session's.
func TestEpochsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sides [2]*epochSide
		for i := range sides {
			sides[i] = &epochSide{paths: map[*epochPath]*Hello{}, agreed: map[*epochPath]bool{}}
			sides[i].begin()
		}
		var paths []*epochPath
		hear := func(p *epochPath, i int) {
			s := sides[i]
			said := p.inbox[i]
			if len(said) == 0 {
				return
			}
			p.inbox[i] = said[1:]
			if _, ok := s.paths[p]; !ok {
				return
			}
			what, isLost, err := s.epochs.Hear(said[0])
			if err != nil {
				t.Fatal(err)
			}
			if isLost {
				s.lose(p)
			}
			switch what {
			case Agreed:
				s.agreed[p] = true
				if o := sides[1-i]; o.epochs.own != said[0].Epoch && len(o.paths) > 0 {
					if _, ok := o.paths[p]; ok {
						t.Fatalf("agreed upon epoch %d, the other side, with this path, is at %d", said[0].Epoch, o.epochs.own)
					}
				}
			case Stale:
				delete(s.paths, p)
				delete(s.agreed, p)
				return
			}
			s.say(i)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1: // a path
				p := &epochPath{}
				paths = append(paths, p)
				for i, s := range sides {
					s.paths[p] = &Hello{}
					s.say(i)
				}
			case 2: // a side loses all
				i := rapid.IntRange(0, 1).Draw(t, "side")
				sides[i].lose(nil)
				sides[i].begin()
			case 3: // a side loses a path
				if len(paths) > 0 {
					i := rapid.IntRange(0, 1).Draw(t, "side")
					p := rapid.SampledFrom(paths).Draw(t, "path")
					delete(sides[i].paths, p)
					delete(sides[i].agreed, p)
				}
			default:
				if len(paths) > 0 {
					hear(rapid.SampledFrom(paths).Draw(t, "path"), rapid.IntRange(0, 1).Draw(t, "side"))
				}
			}
		}
		var p *epochPath
		for range 3 { // a side that hears late that a session is lost closes paths of the next one, too
			p = &epochPath{}
			paths = append(paths, p)
			for i, s := range sides {
				s.paths[p] = &Hello{}
				s.say(i)
			}
			for range 4 * len(paths) {
				for _, q := range paths {
					hear(q, 0)
					hear(q, 1)
				}
			}
		}
		if !sides[0].agreed[p] || !sides[1].agreed[p] {
			t.Fatalf("the last path: %v, %v; %+v, %+v", sides[0].agreed[p], sides[1].agreed[p], sides[0].epochs, sides[1].epochs)
		}
		if sides[0].epochs.theirs != sides[1].epochs.own || sides[1].epochs.theirs != sides[0].epochs.own {
			t.Fatalf("%+v, %+v", sides[0].epochs, sides[1].epochs)
		}
	})
}

// TestEpochsTransitions drives Epochs through the table of its documentation.
func TestEpochsTransitions(t *testing.T) {
	var e Epochs
	e.Begin(7)
	for _, row := range []struct {
		hear   Hello
		what   Heard
		isLost bool
		bad    bool
	}{
		{hear: Hello{Epoch: 3}, what: Waits},
		{hear: Hello{Epoch: 3, Known: 7}, what: Agreed},
		{hear: Hello{Epoch: 2, Known: 7}, what: Stale},
		{hear: Hello{Epoch: 3, Known: 6}, what: Waits},
		{hear: Hello{Epoch: 3, Known: 8}, what: Stale, bad: true},
		{hear: Hello{Epoch: 4}, what: Waits, isLost: true},
		{hear: Hello{Epoch: 4, Known: 7}, what: Agreed},
		{hear: Hello{Epoch: 5, Known: 7}, what: Agreed, isLost: true},
	} {
		what, isLost, err := e.Hear(row.hear)
		if what != row.what || isLost != row.isLost || errors.Is(err, ErrHello) != row.bad {
			t.Errorf("%+v: %v, %v, %v", row.hear, what, isLost, err)
		}
	}
	e.Begin(8)
	if e.Hello() != (Hello{Epoch: 8}) {
		t.Errorf("%+v", e.Hello())
	}
}

// FuzzHello: whatever comes is parsed to what it is appended as, or refused.
func FuzzHello(f *testing.F) {
	f.Add((&Hello{Epoch: 1, Known: 2, Window: Window{3, 4}}).AppendTo(nil))
	f.Add([]byte{KindHello})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHello(b)
		if err != nil {
			if !errors.Is(err, ErrHello) {
				t.Fatal(err)
			}
			return
		}
		if again, err := ParseHello(h.AppendTo(nil)); err != nil || again != h {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}
