package pathsel

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// workOf returns some work of n members.
func workOf(t *rapid.T, n int) (w Work) {
	w.Busiest[Start] = 1
	w.Busiest[Step] = float64(rapid.IntRange(1, 10).Draw(t, "steps"))
	for _, term := range []Term{Message, Link} {
		w.Busiest[term] = rapid.Float64Range(0.01, 10).Draw(t, term.String())
		w.All[term] = w.Busiest[term] * float64(rapid.IntRange(1, n).Draw(t, "members with as much"))
	}
	return w
}

// TestFitCosts: costs are found again from what takes time by them, whatever processors members share, and
// whether links take most of the time or none; and what no row has stays.
func TestFitCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var base Costs
		for _, d := range base.All() {
			*d = 7 * time.Microsecond
		}
		want := base
		want.Processors = rapid.IntRange(0, 4).Draw(t, "processors")
		terms := []Term{Start, Step, Message, Link}
		families := []Family{OfScan, OfAllreduce}
		for _, term := range terms {
			rate := float64(rapid.IntRange(10, 1000).Draw(t, "rate")) * 1e3
			for _, f := range families {
				want.Rates[f][ByMessages][term] = time.Duration(rate * rapid.Float64Range(0.9, 1.1).Draw(t, "deviation"))
			}
		}
		var rows []Timed
		for range 40 {
			for _, f := range families {
				r := Timed{Family: f, Work: workOf(t, 16), Links: Links{Rate: rapid.SampledFrom([]int64{0, 1e6, 1e15}).Draw(t, "bit/s")}}
				by := want
				by.Links = r.Links
				r.Took = by.Time(f, ByMessages, &r.Work)
				rows = append(rows, r)
			}
		}
		fit, err := FitCosts(&base, want.Processors, rows)
		if err != nil || fit.Rows != len(rows) || fit.Mean > 0.01 || fit.Worst < fit.Mean || fit.Processors != want.Processors {
			t.Fatalf("off by %v, %v at worst: %v", fit.Mean, fit.Worst, err)
		}
		for f := range fit.Rates {
			for k := range fit.Rates[f] {
				for term, d := range fit.Rates[f][k] {
					isFitted := k == int(ByMessages) && (f == int(OfScan) || f == int(OfAllreduce)) && want.Rates[f][k][term] != 7*time.Microsecond
					if !isFitted && d != 7*time.Microsecond {
						t.Fatalf("%s.%s.%s is %v", Family(f), Kind(k), Term(term), d)
					}
				}
			}
		}
	})
}

// TestFitCostsIsBounded: whatever is measured, no rate of a collective is further from that of
// another than the spread allows, and none of messages is nothing.
func TestFitCostsIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []Timed
		for range rapid.IntRange(2, 30).Draw(t, "rows") {
			rows = append(rows, Timed{
				Family: Family(rapid.IntRange(0, int(Families)-1).Draw(t, "family")), Work: workOf(t, 8), Links: Links{Rate: rapid.Int64Range(0, 1e12).Draw(t, "bit/s")},
				Took: time.Duration(rapid.IntRange(1, 1e9).Draw(t, "took")),
			})
		}
		fit, err := FitCosts(new(Costs), rapid.IntRange(0, 3).Draw(t, "processors"), rows)
		if err != nil {
			t.Fatal(err)
		}
		for _, term := range []Term{Start, Step, Message, Link} {
			lowest, highest := math.Inf(1), 0.0
			for _, r := range rows {
				rate := float64(fit.Rates[r.Family][ByMessages][term])
				lowest, highest = min(lowest, rate), max(highest, rate)
			}
			if most := spread[ByMessages] * spread[ByMessages]; highest > most*lowest+2*most {
				t.Fatalf("%s of a collective is %v, and of another %v", term, lowest, highest)
			}
			if floor := float64(least[ByMessages][term]) / spread[ByMessages]; lowest < floor-1 {
				t.Fatalf("%s is %v, below %v", term, lowest, floor)
			}
		}
	})
}

// TestLinks: bytes take what processors need, of all that share one, or what they take on the link of the
// busiest member, whichever is more.
func TestLinks(t *testing.T) {
	w := Work{Busiest: [Terms]float64{Start: 1, Link: 2}, All: [Terms]float64{Link: 16}}
	for _, x := range []struct {
		rate       int64
		processors int
		want       time.Duration
	}{
		{0, 0, 5 * time.Millisecond}, {0, 2, 17 * time.Millisecond}, // 2 ms a MiB, and 1 ms
		{1e9, 0, 18616076}, {1e9, 2, 18616076}, {1e9, 1, 33 * time.Millisecond}, {100e9, 0, 5 * time.Millisecond},
	} {
		c := Costs{Processors: x.processors, Links: Links{Rate: x.rate}}
		c.Rates[OfScan][ByMessages] = Rates{Start: time.Millisecond, Link: 2 * time.Millisecond}
		if got := c.Time(OfScan, ByMessages, &w); got != x.want {
			t.Errorf("%d bit/s, %d processors: %v, want %v", x.rate, x.processors, got, x.want)
		}
		if got := c.Time(OfScan, BySwitches, &w); got != 0 {
			t.Errorf("%d bit/s: what is not known takes %v", x.rate, got)
		}
	}
}

// TestShared: a processor that several members share takes its part of what all do, but not less
// than the busiest has.
func TestShared(t *testing.T) {
	w := Work{Busiest: [Terms]float64{Step: 3, Message: 3, Link: 2}, All: [Terms]float64{Message: 24, Link: 2}}
	for processors, want := range map[int]float64{0: 3, 1: 24, 2: 12, 100: 3} {
		if n := w.Shared(processors); n[Message] != want || n[Link] != 2 || n[Step] != 3 {
			t.Errorf("%d processors: %v", processors, n)
		}
	}
}

func TestCosts(t *testing.T) {
	if err := DefaultCosts().Validate(); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for name := range DefaultCosts().All() {
		seen[name] = true
	}
	if len(seen) != int(Families)*int(Kinds)*int(Terms) || !seen["allreduce.messages.step"] {
		t.Errorf("%d names", len(seen))
	}
	if c := DefaultCosts(); !c.Knows(OfScan, ByMessages) || c.Knows(OfScan, BySwitches) {
		t.Error("scans are known by switches, or unknown by messages")
	}
	bad, many := *DefaultCosts(), Costs{Processors: -1}
	bad.Rates[OfGather][ByMessages][Link] = -1
	for _, err := range []error{
		bad.Validate(), many.Validate(), (&Costs{Links: Links{Rate: -1}}).Validate(), Links{Uplink: maxLinkRate + 1}.Validate(), Links{Leaf: -1}.Validate(),
		func() error { _, err := FitCosts(&bad, 0, nil); return err }(),
		func() error { _, err := FitCosts(DefaultCosts(), MaxProcessors+1, nil); return err }(),
		func() error { _, err := FitCosts(DefaultCosts(), 0, []Timed{{}}); return err }(),
		func() error { _, err := FitCosts(DefaultCosts(), 0, []Timed{{Took: 1, Kind: Kinds}}); return err }(),
		Model{Costs: &bad}.Validate(),
	} {
		if !errors.Is(err, ErrModel) {
			t.Error(err)
		}
	}
	for _, name := range []string{Terms.String(), Kinds.String(), Families.String()} {
		if name == "" {
			t.Error("a value that is none has no text")
		}
	}
	long := Costs{}
	long.Rates[OfScan][ByMessages][Start] = time.Hour
	if long.Time(OfScan, ByMessages, &Work{Busiest: [Terms]float64{Start: 1e30}}) <= 0 {
		t.Error("a time without end")
	}
}
