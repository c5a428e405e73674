package planbench

import (
	"context"
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel/steiner"
	"github.com/tributary-fabric/tributary/pathsel/steiner/gap"
)

// The limits of gaps to the optimum, in percent.
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
	r.add(name+"mean gap", 100*s.MeanGap, "%", meanGap, fmt.Sprintf("%d known to be optimal; %.2f %% to the dual bound", s.Optimal, 100*s.MeanBoundGap))
	r.add(name+"worst gap", 100*s.WorstGap, "%", worstGap, fmt.Sprintf("%.2f %% to the dual bound", 100*s.WorstBoundGap))
	r.addTime(name+"mean time", s.MeanElapsed, 0, fmt.Sprintf("the slowest %v; at most %d work units each", s.WorstElapsed.Round(1e6), int64(steiner.DefaultBudget)))
	return nil
}
