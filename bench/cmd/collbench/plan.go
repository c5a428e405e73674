package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/planbench"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func newPlan() *cobra.Command {
	c := planbench.DefaultConfig()
	var format string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Measure plans and repairs of large fabrics and of many groups, each figure beside its limit",
		Long: `plan measures on this machine, offline: plans, repairs and memory of fat-trees of
65,536 and of a million hosts; the load of up to 10,000 groups, planned one after
another, in fat-trees, leaf-spines and irregular fabrics, against lower bounds; groups
by default beside the same by each criterion; and Steiner trees against lower bounds. It takes about a minute and 1 GiB. Times are
medians. docs/benchmarks.md explains the figures.`,
		Example: "  collbench plan\n  collbench plan --groups 1000 --format json",
		Args:    cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&c.Repaired, "repaired", c.Repaired, "`k` of the fat-tree in which a tree is planned and repaired")
	flags.IntVar(&c.Largest, "largest", c.Largest, "`k` of the largest fat-tree")
	flags.IntVar(&c.Online, "online", c.Online, "`k` of the fat-tree of many groups")
	flags.IntVar(&c.Fabrics, "fabrics", c.Fabrics, "`number` of irregular fabrics of each size and kind")
	flags.IntVar(&c.Groups, "groups", c.Groups, "`number` of groups")
	flags.IntVar(&c.Members, "members", c.Members, "`hosts` of each")
	flags.IntVar(&c.Cases, "cases", c.Cases, "`graphs` of Steiner trees, the first of the table; 0: all")
	flags.IntVar(&c.Runs, "runs", c.Runs, "`number` of runs, of which the median counts")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "`seed` of the groups and graphs")
	process.OneOf(cmd, &format, "format", "output `format`: text or json", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		begun := time.Now()
		report, err := planbench.Run(cmd.Context(), c, func(line string) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%7.3f s  %s\n", time.Since(begun).Seconds(), line)
		})
		if err != nil {
			return err
		}
		if format == "json" {
			return writeJSON(cmd, report)
		}
		return report.Text(cmd.OutOrStdout())
	}
	return cmd
}
