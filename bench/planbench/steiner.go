package planbench

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/bench/gap"
	"github.com/tributary-fabric/tributary/internal/planning/steiner"
	"github.com/tributary-fabric/tributary/pathsel"
)

// The limits of gaps, in percent: to the optimum, or to bounds that are at most
// that; of the hypercube to the least cost that is known.
const (
	meanGap   = 0.3
	worstGap  = 3.0
	seriesGap = 0.3
	paceGap   = 0.5
	cubeGap   = 1.0
)

// steinerTrees solves the tables of package gap with the planner's budget, or
// the first of each.
func steinerTrees(ctx context.Context, c Config, r *Report, progress func(string)) error {
	table, err := gaps(ctx, c, gap.Cases(), progress)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("Steiner trees, %d graphs of 1,000 nodes: ", table.Cases)
	r.add(name+"mean gap", 100*table.MeanGap, "%", meanGap, fmt.Sprintf("to bounds found with %d work units; %d are on them, and so optimal", int64(steiner.DefaultBudget), table.Optimal))
	r.add(name+"worst gap", 100*table.WorstGap, "%", worstGap, "to these bounds")
	r.addTime(name+"mean time", table.MeanElapsed, 0, fmt.Sprintf("the slowest %v; at most %d work units each, as the planner gives", table.WorstElapsed.Round(1e6), pathsel.DefaultConfig().Work))
	for _, series := range []struct {
		name  string
		limit float64
		cases []gap.Case
	}{
		{"like SteinLib's B to E, I, PUC", seriesGap, slices.Concat(gap.Random(), gap.Incidence(), gap.Covers(), []gap.Case{gap.Hypercube(6), gap.Hypercube(7), gap.Hypercube(8), gap.Hypercube(9)})},
		{"like PACE 2018", paceGap, slices.Concat(gap.FewTerminals(), gap.LowWidth())},
		{"hc10u, the hypercube of 1,024", cubeGap, []gap.Case{gap.Hypercube(10)}},
	} {
		s, err := gaps(ctx, c, series.cases, progress)
		if err != nil {
			return err
		}
		r.add(fmt.Sprintf("Steiner trees, %s, %d graphs: mean gap", series.name, s.Cases), 100*s.MeanGap, "%", series.limit, fmt.Sprintf("%d optimal or as good as any known; the worst %.2f %%", s.Optimal, 100*s.WorstGap))
	}
	return nil
}

// gaps solves cases as the planner does, and looks for their floors longer.
func gaps(ctx context.Context, c Config, cases []gap.Case, progress func(string)) (gap.Summary, error) {
	if c.Cases > 0 {
		cases = cases[:min(c.Cases, len(cases))]
	}
	rows, err := gap.Run(cases, steiner.Options{Budget: pathsel.DefaultConfig().Work}, steiner.DefaultBudget, func(row gap.Row) error {
		progress(fmt.Sprintf("%s: cost %.0f, %.2f %% above the floor, %v", row.Case, row.Cost, 100*row.Gap(), row.Elapsed.Round(1e6)))
		return ctx.Err()
	})
	if err != nil {
		return gap.Summary{}, err
	}
	return gap.Summarize(rows), nil
}
