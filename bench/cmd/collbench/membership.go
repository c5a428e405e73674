package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/members"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// errMissed reports that a table was measured, and something in it not reached.
var errMissed = errors.New("not all rows are reached")

// membershipFlags are the flags of membership.
type membershipFlags struct {
	cfg     members.Config
	rows    []string
	format  string
	timeout time.Duration
}

func newMembership() *cobra.Command {
	f := membershipFlags{cfg: members.DefaultConfig()}
	cmd := &cobra.Command{
		Use:   "membership",
		Short: "Measure the membership service, in virtual and in real time",
		Long: `membership measures the figures of docs/benchmarks.md and prints target, result and
verdict. Most rows are simulations of thousands of nodes, up to a million, in
virtual time: the same seed gives the same run. The rows real-... run nodes in this
process, over loopback, beside hashicorp/memberlist with its LAN defaults; they
need an otherwise idle machine. The exit status is 1 if a row misses its target.`,
		Example: `  collbench membership
  collbench membership --rows boot,leave-join,hpm --seed 7
  collbench membership --rows real --settle 20s --window 20s
  collbench membership --format json > membership.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runMembership(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.rows, "rows", members.Keys(), "`rows` to measure")
	process.OneOf(cmd, &f.format, "format", "output `format`: text, or json, a line for each row", "text", "json")
	flags.Uint64Var(&f.cfg.Seed, "seed", f.cfg.Seed, "seed of the simulations")
	flags.IntVar(&f.cfg.Nodes, "nodes", f.cfg.Nodes, "`nodes` of a simulated zone")
	flags.BoolVar(&f.cfg.Proofs, "proofs", f.cfg.Proofs, "simulated nodes prove their lives by certificates")
	flags.IntVar(&f.cfg.Contest.Nodes, "real", f.cfg.Contest.Nodes, "real `nodes` of each of both systems")
	flags.IntVar(&f.cfg.Contest.Seeds, "seeds", f.cfg.Contest.Seeds, "`nodes` of these that all others query first")
	flags.IntVar(&f.cfg.Contest.Rounds, "rounds", f.cfg.Contest.Rounds, "boots, and failures of each kind, of each system")
	flags.DurationVar(&f.cfg.Contest.Settle, "settle", f.cfg.Contest.Settle, "`time` before the traffic of real nodes is counted")
	flags.DurationVar(&f.cfg.Contest.Window, "window", f.cfg.Contest.Window, "`time` for which it is counted")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Hour, "give up after this `time`")
	return cmd
}

func runMembership(cmd *cobra.Command, f *membershipFlags) error {
	f.cfg.Rows = f.rows
	if len(f.rows) == 0 {
		return fmt.Errorf("%w --rows: none; possible are %s", errUsage, strings.Join(members.Keys(), ", "))
	}
	for _, row := range f.rows {
		if !slices.Contains(members.Keys(), row) {
			return fmt.Errorf("%w --rows %q: possible are %s", errUsage, row, strings.Join(members.Keys(), ", "))
		}
	}
	if err := f.cfg.Validate(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	b := benchFlags{timeout: f.timeout}
	ctx, cancel := b.within(cmd.Context())
	defer cancel()
	return measureMembership(ctx, cmd, f)
}

func measureMembership(ctx context.Context, cmd *cobra.Command, f *membershipFlags) error {
	table := members.Table{Rows: report.Rows[members.Row]{Out: cmd.OutOrStdout(), JSON: f.format == "json"}}
	begun := time.Now()
	progress := func(line string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%6.1f s  %s\n", time.Since(begun).Seconds(), line)
	}
	err := f.cfg.Measure(ctx, progress, table.Add)
	missed, werr := table.Close()
	if err := errors.Join(err, werr); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%w: %d of them", errMissed, missed)
	}
	return nil
}
