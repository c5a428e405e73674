package scaling

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
)

func simulate(t testing.TB, r Run) *Result {
	t.Helper()
	got, err := r.Simulate()
	if err != nil {
		t.Fatalf("%v of %d bytes: %v", r.Shape, r.Bytes, err)
	}
	return got
}

// A folded run takes exactly the time of a full one.
func TestFoldAgainstFull(t *testing.T) {
	for _, s := range []Shape{{4}, {3, 5}, {8, 4}, {2, 3, 4}, {32, 4}} {
		for _, costs := range []Costs{Measured(), Bypass()} {
			for _, cut := range []bool{false, true} {
				for _, bytes := range []int{8, 20_000} {
					r := Run{Model: Hardware(costs, 100e9, cut, 1432), Shape: s, Bytes: bytes, Times: 2}
					full := simulate(t, r)
					r.Fold = true
					folded := simulate(t, r)
					name := fmt.Sprintf("%d bytes, %v, %s, cut-through %v", bytes, s, costs.Taken, cut)
					if full.Median() != folded.Median() {
						t.Errorf("%s: %v folded, %v in full", name, folded.Median(), full.Median())
					}
					if folded.Events*uint64(len(s)) > full.Events && s.Hosts() > 10 {
						t.Errorf("%s: %d events folded, %d in full", name, folded.Events, full.Events)
					}
				}
			}
		}
	}
}

// The largest that is simulated in full.
func TestFoldOfAThousandHosts(t *testing.T) {
	r := Run{Model: Hardware(Bypass(), 400e9, true, 4096), Shape: Shape{32, 32}, Bytes: 8192, Times: 1}
	full := simulate(t, r)
	r.Fold = true
	if folded := simulate(t, r); folded.Median() != full.Median() {
		t.Errorf("%v folded, %v in full", folded.Median(), full.Median())
	}
}

// alone returns the time of a sum that is one packet, in closed form: what that takes up to the root and down again.
func alone(m Model, s Shape, bytes int) time.Duration {
	n, packet := &m.Network, wire.HeaderSize+bytes
	whole := n.serial(m.frame(packet))
	hop := whole
	if n.CutThrough {
		hop = n.serial(n.Least)
	}
	links, switches := int64(2*len(s)), int64(2*len(s)-1)
	way := links*1000*int64(n.Cable) + switches*(hop+1000*int64(m.Pipeline.Latency)) + whole + 2*1000*int64(n.Card)
	// The member sends its only contribution, and then takes its only result.
	c := &m.Costs
	return time.Duration(way/1000) + c.Session.of(1, packet) + c.Send.of(1, packet) + c.half() + c.Receive.of(1, packet) + c.Session.of(1, packet)
}

// stream returns the least time of a long vector: in packets over a host's link, one after the other.
func stream(m Model, bytes int) time.Duration {
	sum := int64(0)
	for ; bytes > 0; bytes -= m.Chunk {
		sum += m.Network.serial(m.frame(wire.HeaderSize + min(bytes, m.Chunk)))
	}
	return time.Duration(sum / 1000)
}

// A sum of one packet takes what its closed form says: links, switches and cables up and down, and the
// hosts' work; a long one the time of its packets on a link, and that of one packet through the tree.
func TestClosedForms(t *testing.T) {
	for _, s := range []Shape{{8}, {32, 4}, {32, 32, 16}} {
		near := func(a, b time.Duration) bool { return (a - b).Abs() <= time.Duration(4*len(s)) } // ns, lost to rounding
		for _, rate := range []int64{10e9, 100e9, 400e9} {
			for _, chunk := range []int{1432, 4096, 8192} {
				for _, cut := range []bool{false, true} {
					m := Hardware(Bypass(), rate, cut, chunk)
					for _, bytes := range []int{8, chunk} {
						got, want := simulate(t, Run{Model: m, Shape: s, Bytes: bytes, Times: 1, Fold: true}).Median(), alone(m, s, bytes)
						if !near(got, want) {
							t.Errorf("%d bytes, %v, %d bit/s, cut-through %v: %v, %v in closed form", bytes, s, rate, cut, got, want)
						}
					}
					got := simulate(t, Run{Model: m, Shape: s, Bytes: 1 << 20, Times: 1, Fold: true}).Median()
					if low, high := stream(m, 1<<20), stream(m, 1<<20)+alone(m, s, chunk); got < low || float64(got) > 1.02*float64(high) {
						t.Errorf("1 MiB, %v, %d bit/s, chunks of %d, cut-through %v: %v, not from %v to %v", s, rate, chunk, cut, got, low, high)
					}
				}
			}
		}
	}
}

// By hand, without a word of the model: 128 hosts below 4 leaves and a root at 100 Gbit/s, which is 0.08 ns a byte.
//
//	posted 150, taken 150, a look's rest 25, two cards of 125            575 ns
//	4 cables of 50, 3 switches of 400                                   1400 ns
//	8 bytes: a frame of 8 + 40 + 42 + 24 = 114 bytes on the last link      9 ns
//	cut-through: 84 bytes before each of the 3 switches                   20 ns
//	store-and-forward: 114 bytes before each                              27 ns
//	4,096 bytes: a frame of 4,202 bytes, 336 ns; store-and-forward: 3 more
//	1 GiB/s: 16 MiB are 4,096 frames, 1,376,911 ns on a link
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		bytes int
		cut   bool
		want  time.Duration
	}{
		{8, true, 575 + 1400 + 9 + 20}, {8, false, 575 + 1400 + 9 + 27},
		{4096, true, 575 + 1400 + 336 + 20}, {4096, false, 575 + 1400 + 336 + 3*336},
		{16 << 20, true, 1_376_911 + 575 + 1400 + 20},
	} {
		got := simulate(t, Run{Model: Hardware(Bypass(), 100e9, c.cut, 4096), Shape: Shape{32, 4}, Bytes: c.bytes, Times: 1, Fold: true}).Median()
		if slack := time.Duration(10 + c.bytes/4096); got < c.want-slack || got > c.want+slack+time.Duration(c.bytes/2048) {
			t.Errorf("%d bytes, cut-through %v: %v, by hand %v", c.bytes, c.cut, got, c.want)
		}
	}
}

// By hand: two programs share a processor and look, 2 us a look. When packets come for one, its turn begins with what
// is left of the other's look and its own; who looks alone has half a look of its own.
func TestLooksCount(t *testing.T) {
	m := Namespaces(Measured(), 0)
	m.Costs = Costs{Send: Cost{Call: 1000}, Receive: Cost{Call: 500}, Look: 2000, Alone: 800, Wake: 100}
	m.Processors.Shared = 3 // one for each
	got := simulate(t, Run{Model: m, Shape: Shape{1}, Bytes: 8, Times: 1}).Median()
	if want := 2 * time.Duration(1000+400+500); got != want {
		t.Errorf("%v where nobody waits for a processor, by hand %v", got, want)
	}
	m.Processors.Shared = 1
	got = simulate(t, Run{Model: m, Shape: Shape{1}, Bytes: 8, Times: 1}).Median()
	if want := 2 * time.Duration(1000+2000+500); got != want {
		t.Errorf("%v on one processor, by hand %v", got, want)
	}
}

// The same run is the same, event by event; and processors do no more than time allows.
func TestDeterminismAndWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Namespaces(Measured(), rapid.SampledFrom([]int64{0, 200e6, 1e9}).Draw(t, "rate"))
		m.Processors.Shared = rapid.IntRange(0, 4).Draw(t, "processors")
		s := Shape{rapid.IntRange(1, 4).Draw(t, "hosts"), rapid.IntRange(1, 3).Draw(t, "leaves")}
		r := Run{Model: m, Shape: s, Bytes: 4 * rapid.IntRange(1, 20_000).Draw(t, "elements"), Times: 2}
		first, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		if first.Hash != again.Hash || first.Events != again.Events || first.Median() != again.Median() {
			t.Errorf("%+v, then %+v", first, again)
		}
		processors := m.Processors.Shared
		if processors == 0 {
			processors = s.Hosts() + s[1] + 1
		}
		if slack := time.Millisecond; first.Busy > time.Duration(processors)*first.Took+slack {
			t.Errorf("%d processors worked for %v in %v", processors, first.Busy, first.Took)
		}
		if first.Resent > 0 {
			t.Errorf("%d packets again, where none is lost", first.Resent)
		}
	})
}

// More processors take less time, and work is not lost: on one, an operation takes about as long as all that
// is done for it.
func TestProcessorsShare(t *testing.T) {
	last := time.Duration(math.MaxInt64)
	for _, n := range []int{1, 2, 4, 11} {
		m := Namespaces(Measured(), 0)
		m.Processors.Shared = n
		got := simulate(t, Run{Model: m, Shape: Shape{4, 2}, Bytes: 1 << 20, Times: 1})
		if got.Median() >= last {
			t.Errorf("%v on %d processors, %v on fewer", got.Median(), n, last)
		}
		last = got.Median()
		if n == 1 && float64(got.Busy) < 0.95*float64(got.Took) {
			t.Errorf("one processor works %v of %v", got.Busy, got.Took)
		}
	}
}

func TestInvalid(t *testing.T) {
	good := Run{Model: Hardware(Bypass(), 100e9, true, 1432), Shape: Shape{4}, Bytes: 8, Times: 1}
	for name, change := range map[string]func(*Run){
		"bytes": func(r *Run) { r.Bytes = 7 }, "times": func(r *Run) { r.Times = 0 }, "shape": func(r *Run) { r.Shape = nil },
		"children": func(r *Run) { r.Shape = Shape{0} }, "chunk": func(r *Run) { r.Model.Chunk = 3 }, "window": func(r *Run) { r.Model.Window = 3 },
		"rate": func(r *Run) { r.Model.Network.Rate = -1 }, "bucket": func(r *Run) { r.Model.Network.Burst = 100 },
		"pipeline": func(r *Run) { r.Model.Pipeline = nil }, "fold": func(r *Run) { r.Fold, r.Model.Pipeline, r.Model.Network.CutThrough = true, nil, false }, "slice": func(r *Run) { r.Model.Processors.Slice = 0 }, "batch": func(r *Run) { r.Model.Batch = 0 },
	} {
		r := good
		change(&r)
		if _, err := r.Simulate(); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
