package session

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// A lane is a member alone with its parent, at the two ends of a way that takes
// time and loses packets. The parent answers as a root does.
type lane struct {
	s      *Session
	out    Output
	now    core.Time
	rng    *rand.Rand
	delay  time.Duration // of a packet, each way
	jitter time.Duration // largest further delay of a result
	loss   float64       // each way

	has   map[uint32]wire.Header // contributions that the parent has
	late  bool                   // another member is late: the parent finishes nothing
	down  []arrival              // to the member, in the order of their times
	lost  int
	asked map[uint32]int // probes by number
	ended bool
}

type arrival struct {
	at core.Time
	in Input
}

func newLane(t *rapid.T, chunks int) *lane {
	s, err := New(Config{ChunkBytes: chunkBytes, Window: 64}, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{
		s: s, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)),
		delay: time.Duration(rapid.IntRange(10, 2000).Draw(t, "delay")) * time.Microsecond,
		has:   map[uint32]wire.Header{}, asked: map[uint32]int{},
	}
	vector := make([]byte, chunks*chunkBytes)
	if err := s.Enter(0, Link{Epoch: 2, Window: 64, Parent: parentAddr}, Decision{}, &l.out); err != nil {
		t.Fatal(err)
	}
	o := Operation{
		Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32,
		Elements: len(vector) / 4, In: vector, Out: vector,
	}
	if err := s.Start(o); err != nil {
		t.Fatal(err)
	}
	l.step(nil)
	return l
}

// step steps the member and has the parent answer what it sends.
func (l *lane) step(in []Input) {
	l.out.Reset()
	l.s.Step(l.now, in, &l.out)
	l.ended = l.ended || len(l.out.Completions) > 0
	for i := range l.out.Sends {
		var h wire.Header
		head := l.out.Sends[i].Head
		payload, _ := h.Decode(append(head[:], l.out.Sends[i].Body...))
		if h.Type == wire.Probe {
			l.asked[h.Chunk]++
		}
		if !l.loses() {
			l.answer(h, bytes.Clone(payload))
		}
	}
}

func (l *lane) loses() bool {
	if l.rng.Float64() < l.loss {
		l.lost++
		return true
	}
	return false
}

func (l *lane) answer(h wire.Header, payload []byte) {
	first, has := l.has[h.Chunk]
	switch {
	case h.Type == wire.Contribution && has:
		return
	case h.Type == wire.Contribution:
		l.has[h.Chunk] = h
		if l.late {
			return
		}
		h.Type = wire.Result
	case !has:
		h.Type = wire.Want
	case l.late:
		h.Type = wire.Heard
	default:
		h, payload = first, make([]byte, chunkBytes)
		h.Type = wire.Result
	}
	h.Lowest = 0
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	at := l.now.Add(2 * l.delay)
	if l.jitter > 0 {
		at = at.Add(time.Duration(l.rng.Int64N(int64(l.jitter))))
	}
	if !l.loses() {
		l.deliver(arrival{at, Input{From: parentAddr, Packet: append(b, payload...)}})
	}
}

func (l *lane) deliver(a arrival) {
	i := len(l.down)
	for i > 0 && l.down[i-1].at > a.at {
		i--
	}
	l.down = append(l.down[:i], append([]arrival{a}, l.down[i:]...)...)
}

// run lets time pass until the operation is done, or to a moment.
func (l *lane) run(t *rapid.T, until core.Time) {
	for steps := 0; !l.ended; steps++ {
		if steps > 100_000 {
			t.Fatal("no end")
		}
		at := l.s.Deadline()
		if len(l.down) > 0 {
			at = at.Earlier(l.down[0].at)
		}
		if at > until {
			return
		}
		l.now = max(l.now, at)
		var in []Input
		for len(l.down) > 0 && l.down[0].at <= l.now {
			in = append(in, l.down[0].in)
			l.down = l.down[1:]
		}
		l.step(in)
	}
}

func (l *lane) probes() (n int) {
	for _, k := range l.asked {
		n += k
	}
	return n
}

// TestNothingLate: while every result comes, and none is overtaken for long,
// nothing is asked for.
func TestNothingLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLane(t, rapid.IntRange(1, 500).Draw(t, "chunks"))
		l.jitter = DefaultTiming().Gap
		l.run(t, core.Never-1)
		if n := l.probes(); n > 0 {
			t.Fatalf("%d probes", n)
		}
	})
}

// TestProbesAndLosses: every probe is for a packet that was lost, probes and
// their answers included; and what was lost in one window is repaired at once,
// in less time than one after the other, each of which would take a round trip
// and five milliseconds.
func TestProbesAndLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const chunks = 2000
		l := newLane(t, chunks)
		l.loss = rapid.Float64Range(0, 0.1).Draw(t, "loss")
		l.run(t, core.Never-1)
		if n := l.probes(); n > l.lost {
			t.Fatalf("%d probes for %d lost packets", n, l.lost)
		}
		if limit := 500*time.Millisecond + chunks/64*2*l.delay + time.Duration(l.lost)*(l.delay+1500*time.Microsecond); time.Duration(l.now) > limit {
			t.Fatalf("%v for %d losses, round trip %v; want at most %v", time.Duration(l.now), l.lost, 2*l.delay, limit)
		}
	})
}

// TestLateMemberMakesNoStorm: after losses, too, a late member makes this one
// quiet: of all that waits for it only the oldest chunk is asked for, and that
// ever more rarely.
func TestLateMemberMakesNoStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLane(t, 1000)
		l.loss = rapid.Float64Range(0, 0.2).Draw(t, "loss")
		l.run(t, core.Time(rapid.IntRange(1, 50).Draw(t, "good time, ms")*int(time.Millisecond)))
		if l.ended {
			return
		}
		l.late = true
		for n := range l.has {
			if !wire.Newer(l.s.base, n) {
				delete(l.has, n) // and of these, too, a contribution is missing
			}
		}
		l.loss = 0
		clear(l.asked)
		l.run(t, l.now.Add(time.Minute))
		if l.ended {
			return // all results were on their way
		}
		for n, k := range l.asked {
			if limit := 2*hasty + 3; n != l.s.base && k > limit {
				t.Errorf("%d probes for number %d, which is not the oldest, want at most %d", k, n, limit)
			}
		}
		if k := l.asked[l.s.base]; k < 50 || k > 60+2*hasty+10 {
			t.Errorf("%d probes for the oldest number in a minute, want about one a second", k)
		}
	})
}
