package pathsel

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFitCosts: costs are found again from what takes time by them, and what no row has stays.
func TestFitCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want, base Costs
		for _, d := range base.All() {
			*d = 7 * time.Microsecond
		}
		want = base
		terms := []Term{Start, Step, Traffic}
		var rows []Timed
		for _, term := range terms {
			want[OfScan][ByMessages][term] = time.Duration(rapid.IntRange(1, 1000).Draw(t, "rate")) * time.Microsecond
		}
		for range 20 {
			r := Timed{Family: OfScan, Kind: ByMessages}
			r.Work[Start] = 1
			r.Work[Step] = float64(rapid.IntRange(1, 10).Draw(t, "steps"))
			r.Work[Traffic] = rapid.Float64Range(0.01, 10).Draw(t, "traffic")
			r.Took = want.Time(r.Family, r.Kind, &r.Work)
			rows = append(rows, r)
		}
		fit, err := FitCosts(&base, rows)
		if err != nil || fit.Rows != len(rows) || fit.Mean > 0.01 || fit.Worst < fit.Mean {
			t.Fatalf("off by %v, %v at worst: %v", fit.Mean, fit.Worst, err)
		}
		for _, r := range rows {
			if is := fit.Time(r.Family, r.Kind, &r.Work); math.Abs(float64(is-r.Took)) > 0.01*float64(r.Took) {
				t.Fatalf("%v, and it took %v", is, r.Took)
			}
		}
		for name, d := range fit.All() {
			isFitted := false
			for _, term := range terms {
				isFitted = isFitted || name == OfScan.String()+"."+ByMessages.String()+"."+term.String()
			}
			if !isFitted && *d != 7*time.Microsecond {
				t.Fatalf("%s is %v", name, *d)
			}
		}
	})
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
	bad := *DefaultCosts()
	bad[OfGather][ByMessages][Link] = -1
	for _, err := range []error{
		bad.Validate(),
		func() error { _, err := FitCosts(&bad, nil); return err }(),
		func() error { _, err := FitCosts(DefaultCosts(), []Timed{{}}); return err }(),
		func() error { _, err := FitCosts(DefaultCosts(), []Timed{{Took: 1, Kind: Kinds}}); return err }(),
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
	if (&Rates{Start: time.Hour}).Time(&Work{Start: 1e30}) <= 0 {
		t.Error("a time without end")
	}
}
