package session

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// answered is a session of a group of window 64 in an epoch of W, whose parent
// answers what it gets after a millisecond.
type answered struct {
	t *testing.T
	*Session
	now  core.Time
	out  Output
	said []uint32
}

func newAnswered(t *testing.T, rank, w uint32) *answered {
	t.Helper()
	s, err := New(Config{Rank: rank, Members: 8, ChunkBytes: chunkBytes, Window: 64}, 0)
	if err != nil {
		t.Fatal(err)
	}
	a := &answered{t: t, Session: s}
	if err := s.Enter(0, Link{Epoch: 2, Window: w, Parent: parentAddr}, Decision{}, &a.out); err != nil {
		t.Fatal(err)
	}
	return a
}

// reduce has the member do an operation of so many chunks.
func (a *answered) reduce(chunks int) {
	a.t.Helper()
	v := make([]byte, chunks*chunkBytes)
	o := Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: len(v) / 4, In: v, Out: v}
	if err := a.Start(o); err != nil {
		a.t.Fatal(err)
	}
	var in []Input
	for a.Pending() {
		a.step(in)
		in = nil
		for n := a.base; n != a.next; n++ {
			h := wire.Header{Type: wire.Result, Flags: wire.Sink, Epoch: 2, Chunk: n, Signature: a.at(n).signature()}
			packet := make([]byte, wire.HeaderSize+chunkBytes)
			h.Put(packet)
			in = append(in, Input{From: parentAddr, Packet: packet})
		}
		a.now = a.now.Add(time.Millisecond)
	}
}

func (a *answered) step(in []Input) {
	a.out.Reset()
	a.Step(a.now, in, &a.out)
	if a.out.Demand != 0 {
		a.said = append(a.said, a.out.Demand)
	}
}

// rest lets time pass, as the session's deadlines have it.
func (a *answered) rest(d time.Duration) {
	for end := a.now.Add(d); a.Deadline() <= end; {
		a.now = max(a.now, a.Deadline())
		a.step(nil)
	}
	a.now = a.now.Add(d)
}

func (a *answered) want(said ...uint32) {
	a.t.Helper()
	if !slices.Equal(a.said, said) {
		a.t.Errorf("it says %v, want %v", a.said, said)
	}
}

// TestDemand reports what the lowest rank says of what its operations can use.
func TestDemand(t *testing.T) {
	t.Run("small operations say nothing, and want no timer", func(t *testing.T) {
		a := newAnswered(t, 0, 16)
		for range 1000 {
			a.reduce(1)
		}
		if a.want(); a.Deadline() != core.Never {
			t.Errorf("it wants to be stepped at %v", a.Deadline())
		}
	})
	t.Run("large ones ask for all, and rest for nothing", func(t *testing.T) {
		a := newAnswered(t, 0, 16)
		a.reduce(60)
		a.want() // fewer than four windows had to wait
		a.reduce(400)
		a.want(64)
		a.rest(2 * demandLook)
		a.want(64, 1)
		if a.Deadline() != core.Never {
			t.Errorf("at rest it wants to be stepped at %v", a.Deadline())
		}
		a.reduce(400)
		a.want(64, 1, 64)
	})
	t.Run("what fits into the window is reported as it is", func(t *testing.T) {
		a := newAnswered(t, 0, 64)
		a.reduce(20)
		a.rest(demandLook)
		a.want(32)
		for range 5000 {
			a.reduce(9) // half of it, which is not worth a word
		}
		a.want(32)
		for range 5000 {
			a.reduce(5)
		}
		a.want(32, 8)
	})
	t.Run("the others leave it to the lowest rank", func(t *testing.T) {
		a := newAnswered(t, 1, 16)
		a.reduce(400)
		if a.want(); a.Deadline() != core.Never {
			t.Errorf("it wants to be stepped at %v", a.Deadline())
		}
	})
}
