package gap

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
	"github.com/tributary-fabric/tributary/pathsel"
)

// planned is the budget that the planner gives.
var planned = pathsel.DefaultConfig().Work

func unseen(Row) error { return nil }

// measured runs cases with the planner's budget, and checks that none takes more
// and that every tree is one.
func measured(t *testing.T, cases []Case) Summary {
	t.Helper()
	rows, err := Run(cases, steiner.Options{Budget: planned}, steiner.DefaultBudget/8, unseen)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Logf("%-32s cost %6v bound %6v floor %6v gap %.2f %% work %d", r.Case, r.Cost, r.Bound, r.Floor, 100*r.Gap(), r.Work)
		if r.Work > planned {
			t.Errorf("%s: work %d of %d", r.Case, r.Work, planned)
		}
	}
	s := Summarize(rows)
	t.Logf("%+v", s)
	return s
}

// The gaps are those of the planner's budget. The work is counted, not timed, so
// that they are the same everywhere.
func TestTable(t *testing.T) {
	if s := measured(t, Cases()); s.Cases != len(Cases()) || s.MeanGap > 0.003 || s.WorstGap > 0.03 {
		t.Errorf("%+v", s)
	}
}

func TestSeries(t *testing.T) {
	all := slices.Concat(Random(), Incidence(), Covers(), []Case{Hypercube(6), Hypercube(7), Hypercube(8), Hypercube(9)})
	if s := measured(t, all); s.MeanGap > 0.003 {
		t.Errorf("%+v", s)
	}
}

// hc10u, under other names of its nodes, too: chance must not decide.
func TestHypercube(t *testing.T) {
	var all []Case
	for turn := range 6 {
		c := Hypercube(10)
		p := c.Problem.Terminals
		c.Problem.Terminals = slices.Concat(p[turn:], p[:turn])
		all = append(all, c)
	}
	if s := measured(t, all); s.MeanGap > 0.01 {
		t.Errorf("%+v", s)
	}
}

func TestFewTerminalsAndLowWidth(t *testing.T) {
	if s := measured(t, slices.Concat(FewTerminals(), LowWidth())); s.MeanGap > 0.005 {
		t.Errorf("%+v", s)
	}
}

// A bound costs a quarter of the budget, not the tree: it is the one that three
// quarters give, or a better one.
func TestBoundKeepsTheTree(t *testing.T) {
	cases := slices.Concat(Random(), Incidence(), Covers(), LowWidth(), []Case{Hypercube(8)})
	for _, budget := range []int64{1 << 12, 1 << 16, 1 << 18} {
		with, err := Run(cases, steiner.Options{Budget: budget, Bound: true}, 0, unseen)
		if err != nil {
			t.Fatal(err)
		}
		without, err := Run(cases, steiner.Options{Budget: budget}, 0, unseen)
		if err != nil {
			t.Fatal(err)
		}
		worse := 0.0
		for i, r := range with {
			first, err := steiner.Solve(cases[i].Problem, steiner.Options{Budget: 1})
			if err != nil {
				t.Fatal(err)
			}
			if most := max(budget, first.Work); r.Work > most {
				t.Errorf("%s: work %d of %d", r.Case, r.Work, most)
			}
			worse += (r.Cost/without[i].Cost - 1) / float64(len(with))
		}
		t.Logf("budget %d: %.2f %% worse with a bound", budget, 100*worse)
		if worse > 0.01 {
			t.Errorf("budget %d: the trees are %.2f %% worse with a bound", budget, 100*worse)
		}
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
	if !near(rows[0].Gap(), 0.1) || !near(rows[1].Gap(), 0.05) {
		t.Errorf("gaps %v, %v", rows[0].Gap(), rows[1].Gap())
	}
	if s.Cases != 3 || s.Optimal != 1 || !near(s.MeanGap, 0.05) || !near(s.WorstGap, 0.1) ||
		s.MeanElapsed != 4 || s.WorstElapsed != 6 {
		t.Errorf("%+v", s)
	}
}

func TestRunNamesTheCase(t *testing.T) {
	c := Case{Name: "broken"}
	if _, err := Run([]Case{c}, steiner.Options{}, 0, unseen); !errors.Is(err, steiner.ErrProblem) || err.Error()[:11] != "case broken" {
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
				rows, err := Run([]Case{c}, steiner.Options{}, 0, unseen)
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
