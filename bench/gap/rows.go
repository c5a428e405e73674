package gap

import (
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/steinertest"
	"github.com/tributary-fabric/tributary/internal/planning/steiner"
)

// A Row is what one case gave.
type Row struct {
	Case                    string
	Nodes, Edges, Terminals int
	Cost                    float64 // of the tree
	Bound                   float64 // of Solve, at most the optimum
	Floor                   float64 // the greatest of Bound, the case's floor, and what a second search proves
	Work                    int64   // relaxed edges
	Elapsed                 time.Duration
}

// Gap returns how much the tree costs more than the floor, as a part of that:
// at least as much as it costs more than the optimum.
func (r Row) Gap() float64 { return r.Cost/r.Floor - 1 }

// Run solves the cases one after another, each with the same options, and reports
// each row as it comes; an error of that ends it. Where a case's tree is not on its
// floor, a second search, of the given budget if that is not 0, looks for a higher
// one; it counts neither as work nor as time. Other errors are Solve's, or report
// that a tree is not one. They name the case.
func Run(cases []Case, o steiner.Options, proof int64, each func(Row) error) ([]Row, error) {
	var rows []Row
	for _, c := range cases {
		row, err := run(c, o, proof)
		if err == nil {
			err = each(row)
		}
		if err != nil {
			return rows, fmt.Errorf("case %s: %w", c.Name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func run(c Case, o steiner.Options, proof int64) (Row, error) {
	start := time.Now()
	tree, err := steiner.Solve(c.Problem, o)
	elapsed := time.Since(start)
	if err != nil {
		return Row{}, err
	}
	if err := steiner.Check(c.Problem, tree.Edges); err != nil {
		return Row{}, err
	}
	row := Row{
		Case: c.Name, Nodes: c.Problem.Graph.Nodes(), Edges: c.Problem.Graph.Edges(),
		Terminals: len(c.Problem.Terminals), Cost: tree.Cost, Bound: tree.Bound,
		Floor: max(c.Floor, tree.Bound), Work: tree.Work, Elapsed: elapsed,
	}
	if proof > 0 && c.Floor == 0 && row.Cost > row.Floor {
		bound, err := floor(c.Problem, proof)
		if err != nil {
			return Row{}, err
		}
		row.Floor = max(row.Floor, bound)
	}
	return row, nil
}

// floor returns the optimum, if there are few terminals, or else a bound.
func floor(p steiner.Problem, proof int64) (float64, error) {
	if len(p.Terminals) <= steinertest.MaxTerminals {
		optimum, _ := steinertest.Optimum(p.Graph.Nodes(), p.Graph.Ends(), p.Cost, p.Limit, p.Terminals)
		return optimum, nil
	}
	tree, err := steiner.Solve(p, steiner.Options{Budget: proof, Bound: true})
	if err != nil {
		return 0, err
	}
	return tree.Bound, nil
}

// A Summary is what a table comes to.
type Summary struct {
	Cases                     int
	Optimal                   int     // trees that meet their floor
	MeanGap, WorstGap         float64 // see Row.Gap
	MeanElapsed, WorstElapsed time.Duration
}

// Summarize returns the summary of rows.
func Summarize(rows []Row) Summary {
	s := Summary{Cases: len(rows)}
	total := time.Duration(0)
	for _, r := range rows {
		if r.Cost == r.Floor {
			s.Optimal++
		}
		s.MeanGap += r.Gap() / float64(len(rows))
		s.WorstGap = max(s.WorstGap, r.Gap())
		total += r.Elapsed
		s.WorstElapsed = max(s.WorstElapsed, r.Elapsed)
	}
	s.MeanElapsed = total / time.Duration(max(1, len(rows)))
	return s
}
