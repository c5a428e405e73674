package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/peers"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/pathsel"
)

// costsFlags are the flags of costs as they are written.
type costsFlags struct {
	cfg               peers.Config
	rows              []string
	rate, prefix      string
	save, base, model string
	source            string
	from              []string
	processors        int
	lab               netlab.Config
	timeout           time.Duration
}

func newCosts() *cobra.Command {
	f := costsFlags{cfg: peers.DefaultConfig()}
	f.cfg.Ways, f.cfg.Peers, f.cfg.Turn = true, nil, 200*time.Millisecond
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Fit the cost model of collectives to a fabric (as root)",
		Long: `costs builds a fabric, as the command fabric does, and measures every way that Tributary
has of doing a collective: in switches, over the tree of hosts, and by each algorithm
of hosts, in turns, and what it chooses by itself. It writes the cost model that fits
the measurement best, for planning: {model: FILE} of the manager; and, to standard
error, for each row the best way, what the choice took beside it, and what the choice by
the new model, or by --model, would have taken by the same measurement. Measurements of
several group sizes are fitted together.`,
		Example: `  collbench costs --save rows-8.json > model.yaml
  collbench costs --hosts-per-leaf 2 --save rows-4.json > /dev/null
  collbench costs --from rows-4.json,rows-8.json > model.yaml
  collbench costs --model model.yaml > /dev/null
  collbench costs --from rows.json --model model.yaml > /dev/null
  collbench costs --rows allreduce:1KiB@200mbit,allreduce:1MiB@200mbit --rounds 5 > model.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCosts(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.rows, "rows", nil, "`rows` to measure, as of peers; by default all collectives and sizes at --rate")
	flags.StringVar(&f.rate, "rate", "unshaped", "`rate` of links")
	flags.IntVar(&f.cfg.Rounds, "rounds", f.cfg.Rounds, "turns of each way in each row: one `number`")
	flags.DurationVar(&f.cfg.Turn, "turn", f.cfg.Turn, "approximate `time` of a turn; at least one operation is timed")
	flags.DurationVar(&f.cfg.Limit, "limit", f.cfg.Limit, "`time` after which a turn has failed")
	flags.StringVar(&f.save, "save", "", "`file` to write what was measured to, a JSON object a line")
	flags.StringSliceVar(&f.from, "from", nil, "`files` of earlier measurements to use in place of one")
	flags.IntVar(&f.processors, "processors", runtime.NumCPU(), "`number` of processors that all hosts share; 0: each has its own")
	flags.StringVar(&f.base, "base", "", "`file` of a cost model whose other values are kept")
	flags.StringVar(&f.model, "model", "", "`file` of the cost model that the manager has while it is measured")
	flags.StringVar(&f.source, "go", "", "`file` to write the costs to, as the source of the default: pathsel/default_costs.go")
	flags.IntVar(&f.lab.HostsPerLeaf, "hosts-per-leaf", 4, "`hosts` at each leaf")
	flags.IntVar(&f.lab.Leaves, "leaves", 2, "`leaves`")
	flags.IntVar(&f.lab.Spines, "spines", 2, "`spines`")
	flags.StringVar(&f.lab.Prefix, "prefix", "cbc", "`prefix` of the namespaces' names")
	flags.DurationVar(&f.timeout, "timeout", time.Hour, "give up after this `time`")
	for _, name := range []string{"rows", "rate", "rounds", "turn", "limit", "save"} {
		cmd.MarkFlagsMutuallyExclusive("from", name)
	}
	return cmd
}

func runCosts(cmd *cobra.Command, f *costsFlags) (err error) {
	base := pathsel.DefaultModel()
	if f.base != "" {
		if base, err = settings.ReadModelFile(f.base); err != nil {
			return err
		}
	}
	var judged *pathsel.Costs
	if f.model != "" {
		m, err := settings.ReadModelFile(f.model)
		if err != nil {
			return err
		}
		judged = m.Costs
	}
	measure := f.measured
	if len(f.from) > 0 {
		measure = func(*cobra.Command) ([]*report.Comparison, error) { return readComparisons(f.from) }
	}
	all, err := measure(cmd)
	if err != nil {
		return err
	}
	fit, err := peers.FitCosts(pathsel.DefaultCosts(), f.processors, all)
	if err != nil {
		return err
	}
	base.Costs = &fit.Costs
	if f.source != "" {
		builtIn, err := peers.FitCosts(new(pathsel.Costs), f.processors, all)
		for of := range builtIn.Rates { // hosts with processors of their own wait where others work meanwhile
			step := &builtIn.Rates[of][pathsel.ByMessages][pathsel.Step]
			*step = max(*step, pathsel.DefaultModel().HostMessage)
		}
		var b bytes.Buffer
		if err := errors.Join(err, peers.WriteGo(&b, &builtIn.Costs), process.WriteFile(f.source, b.Bytes())); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "# costs fitted to %d rows: off by %.0f %% on average, %.0f %% at worst\n", fit.Rows, 100*fit.Mean, 100*fit.Worst)
	return errors.Join(peers.WriteChoices(cmd.ErrOrStderr(), all, cmp.Or(judged, &fit.Costs)), settings.WriteModel(out, base))
}

// measured measures, and saves what it has measured.
func (f *costsFlags) measured(cmd *cobra.Command) (all []*report.Comparison, err error) {
	if len(f.rows) == 0 {
		f.rows = peers.CostRows(f.rate)
	}
	if f.cfg.Rows, err = peers.ParseRows(f.rows, process.ParseSize); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var saved io.Writer = io.Discard
	if f.save != "" {
		file, err := os.Create(f.save)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		saved = file
	}
	b := benchFlags{timeout: f.timeout}
	ctx, cancel := b.within(cmd.Context())
	defer cancel()
	fc := field.Config{Lab: f.lab, Program: []string{program}, Model: f.model, Log: cmd.ErrOrStderr()}
	args := []string{"--transport", string(timing.Offload), "--timeout", f.timeout.String()}
	err = peers.Compare(ctx, f.cfg, fc, args, func(c *report.Comparison) error {
		all = append(all, c)
		return json.NewEncoder(saved).Encode(c)
	})
	return all, err
}

func readComparisons(names []string) (all []*report.Comparison, err error) {
	for _, name := range names {
		more, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, more...)
	}
	return all, nil
}

func readFile(name string) (all []*report.Comparison, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for lines := json.NewDecoder(bufio.NewReader(file)); ; {
		c := new(report.Comparison)
		switch err := lines.Decode(c); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, c)
	}
}
