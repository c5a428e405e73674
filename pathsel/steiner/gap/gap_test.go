package gap

import (
	"errors"
	"reflect"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel/steiner"
)

// The whole table at a tenth of the default budget. The work is counted, not
// timed, so that the gaps are the same everywhere.
func TestTable(t *testing.T) {
	rows, err := Run(Cases(), steiner.Options{Budget: steiner.DefaultBudget / 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Logf("%-22s cost %6v bound %6v gap %.2f %% work %d", r.Case, r.Cost, r.Bound, 100*r.BoundGap(), r.Work)
	}
	s := Summarize(rows)
	t.Logf("%+v", s)
	if s.Cases != len(Cases()) || s.MeanBoundGap > 0.01 || s.WorstBoundGap > 0.03 {
		t.Errorf("%+v", s)
	}
}

func TestCasesAreAlwaysTheSame(t *testing.T) {
	one, two := Cases(), Cases()
	if !reflect.DeepEqual(one, two) {
		t.Error("two calls give other cases")
	}
	names := make(map[string]bool)
	for _, c := range one {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
	}
}

func TestGaps(t *testing.T) {
	rows := []Row{
		{Cost: 110, Bound: 100, Floor: 100, Elapsed: 2},
		{Cost: 105, Bound: 84, Floor: 100, Elapsed: 4},
		{Cost: 50, Bound: 40, Floor: 50, Elapsed: 6},
	}
	s := Summarize(rows)
	near := func(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }
	if !near(rows[0].Gap(), 0.1) || !near(rows[1].Gap(), 0.05) || !near(rows[1].BoundGap(), 0.25) {
		t.Errorf("gaps %v, %v, %v", rows[0].Gap(), rows[1].Gap(), rows[1].BoundGap())
	}
	if s.Cases != 3 || s.Optimal != 1 || !near(s.MeanGap, 0.05) || !near(s.WorstGap, 0.1) ||
		!near(s.MeanBoundGap, 0.2) || !near(s.WorstBoundGap, 0.25) || s.MeanElapsed != 4 || s.WorstElapsed != 6 {
		t.Errorf("%+v", s)
	}
}

func TestRunNamesTheCase(t *testing.T) {
	c := Case{Name: "broken"}
	if _, err := Run([]Case{c}, steiner.Options{}, nil); !errors.Is(err, steiner.ErrProblem) || err.Error()[:11] != "case broken" {
		t.Error(err)
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, c := range Cases() {
		if c.Name[len(c.Name)-1] != '0' {
			continue
		}
		b.Run("case="+c.Name, func(b *testing.B) {
			var row Row
			for b.Loop() {
				rows, err := Run([]Case{c}, steiner.Options{}, nil)
				if err != nil {
					b.Fatal(err)
				}
				row = rows[0]
			}
			b.ReportMetric(100*row.Gap(), "%gap")
			b.ReportMetric(float64(row.Work), "relaxed")
		})
	}
}
