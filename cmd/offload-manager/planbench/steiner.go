package planbench

import (
	"context"
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel/steiner"
	"github.com/tributary-fabric/tributary/pathsel/steiner/gap"
)

// The limits of gaps to the optimum, in percent. The gaps are those to bounds
// that are at most the optimum.
const (
	meanGap  = 1.0
	worstGap = 3.0
)

// steinerTrees solves the table of package gap, or the first of it.
func steinerTrees(ctx context.Context, c Config, r *Report, progress func(string)) error {
	cases := gap.Cases()
	if c.Cases > 0 {
		cases = cases[:min(c.Cases, len(cases))]
	}
	var rows []gap.Row
	for _, one := range cases {
		if err := ctx.Err(); err != nil {
			return err
		}
		solved, err := gap.Run([]gap.Case{one}, steiner.Options{Bound: true}, nil)
		if err != nil {
			return err
		}
		row := solved[0]
		rows = append(rows, row)
		progress(fmt.Sprintf("%s: cost %.0f, %.2f %% above the bound, %v", row.Case, row.Cost, 100*row.BoundGap(), row.Elapsed.Round(1e6)))
	}
	s := gap.Summarize(rows)
	name := fmt.Sprintf("Steiner trees, %d graphs of 1,000 nodes: ", s.Cases)
	r.add(name+"mean gap", 100*s.MeanGap, "%", meanGap, fmt.Sprintf("to the bound found with the tree; %d are on it, and so optimal", s.Optimal))
	r.add(name+"worst gap", 100*s.WorstGap, "%", worstGap, "to the bound found with the tree")
	r.addTime(name+"mean time", s.MeanElapsed, 0, fmt.Sprintf("the slowest %v; at most %d work units each", s.WorstElapsed.Round(1e6), int64(steiner.DefaultBudget)))
	return nil
}
