package scaling

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func simulate(t testing.TB, r Run) *Result {
	t.Helper()
	got, err := r.Simulate()
	if err != nil {
		t.Fatalf("%v of %d bytes: %v", r.Shape, r.Bytes, err)
	}
	return got
}

// A folded run takes exactly the time of a full one where switches are pipelines.
func TestFoldAgainstFull(t *testing.T) {
	for _, s := range []Shape{{4}, {3, 5}, {8, 4}, {2, 3, 4}, {32, 4}} {
		for _, costs := range []Costs{Measured(), Bypass()} {
			for _, cut := range []bool{false, true} {
				for _, unit := range []float64{0, 5} {
					for _, bytes := range []int{8, 20_000} {
						m := Hardware(costs, 100e9, cut, 1432)
						m.Pipeline.Packet = unit
						r := Run{Model: m, Shape: s, Bytes: bytes, Times: 2}
						full := simulate(t, r)
						r.Fold = true
						folded := simulate(t, r)
						name := fmt.Sprintf("%d bytes, %v, %s, cut-through %v, unit %v", bytes, s, costs.Taken, cut, unit)
						if unit == 0 && full.Median() != folded.Median() {
							t.Errorf("%s: %v folded, %v in full", name, folded.Median(), full.Median())
						}
						// A unit that serves packets one by one serves several chunks of different children in
						// turns, which the fold takes together.
						if off := math.Abs(float64(folded.Median())/float64(full.Median()) - 1); off > 0.02 {
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

// A sum of one packet takes what its closed form says: links, switches and cables up and down, and the
// hosts' work; a long one the time of its packets on a link, and that of one packet through the tree.
func TestClosedForms(t *testing.T) {
	for _, s := range []Shape{{8}, {32, 4}, {32, 32, 16}} {
		for _, rate := range []int64{10e9, 100e9, 400e9} {
			for _, chunk := range []int{1432, 4096, 8192} {
				var alone [2]time.Duration
				for i, cut := range []bool{false, true} {
					m := Hardware(Bypass(), rate, cut, chunk)
					hops := time.Duration(4 * len(s)) // ns, lost to rounding
					for _, bytes := range []int{8, chunk} {
						got, want := simulate(t, Run{Model: m, Shape: s, Bytes: bytes, Times: 1, Fold: true}).Median(), m.AloneForm(s, bytes)
						if got < want-hops || got > want+hops {
							t.Errorf("%d bytes, %v, %d bit/s, cut-through %v: %v, %v in closed form", bytes, s, rate, cut, got, want)
						}
						alone[i] = got
					}
					got := simulate(t, Run{Model: m, Shape: s, Bytes: 1 << 20, Times: 1, Fold: true}).Median()
					if low, high := m.StreamForm(1<<20), m.StreamForm(1<<20)+m.AloneForm(s, chunk); got < low || float64(got) > 1.02*float64(high) {
						t.Errorf("1 MiB, %v, %d bit/s, chunks of %d, cut-through %v: %v, not from %v to %v", s, rate, chunk, cut, got, low, high)
					}
				}
				// Store-and-forward costs a packet's time at each switch, less that of its first bytes.
				m := Hardware(Bypass(), rate, false, chunk)
				n := &m.Network
				want := time.Duration(int64(2*len(s)-1) * (n.serial(m.frame(40+chunk)) - n.serial(n.Least)) / 1000)
				if got := alone[0] - alone[1]; got < want-time.Duration(4*len(s)) || got > want+time.Duration(4*len(s)) {
					t.Errorf("%v, %d bit/s, chunks of %d: store-and-forward takes %v longer, not %v", s, rate, chunk, got, want)
				}
			}
		}
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
