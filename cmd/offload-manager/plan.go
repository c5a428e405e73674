package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/whatif"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// planFlags are the flags of plan as they are written.
type planFlags struct {
	topology, groups, model, measured string
	bytes                             process.Size
	window                            window
	config                            whatif.Config
}

func newPlan() *cobra.Command {
	f := planFlags{window: hostlib.DefaultWindow}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Plan a group's tree offline, with failures if wanted",
		Long: `plan chooses the collection tree of a group in the fabric of a file, without a
manager, and explains it: its criterion, its cost by each criterion, the rejected
trees, and the predicted time of an operation over switches and over hosts.
--groups plans other groups first; --down then removes links, switches or hosts,
repairs the affected trees, and compares them with fresh plans. docs/planning.md
explains the criteria and the model.`,
		Example: "  offload-manager plan --topology fat-tree:4 --hosts h0,h5,h9,h13 --bytes 4MiB\n" +
			"  offload-manager plan --topology fabric.yaml --hosts all --criterion load --groups jobs.yaml --down spine-1\n" +
			"  offload-manager plan --measured rows.yaml > model.yaml",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	g := &f.config.Group
	flags.StringVar(&f.topology, "topology", "", "the fabric: a specification or a `file`")
	flags.StringSliceVar(&g.Hosts, "hosts", []string{"all"}, "`hosts` by rank; all, or random:N:SEED")
	flags.StringVar(&g.Function, "function", "sum", "reduction `function`, or a collective that copies: barrier, broadcast, gather, scatter, all-to-all")
	flags.StringVar(&g.Type, "type", "float32", "element `type`")
	flags.Var(&f.bytes, "bytes", "`size` of a vector, such as 65536, 64KiB or 4MiB; 0: unknown")
	flags.StringVar(&g.Criterion, "criterion", "auto", "`criterion`: auto (load, within what collective and size need), hops, latency, bandwidth, load or capability")
	flags.StringVar(&g.Weights, "weights", "", "several criteria with `weights`, such as hops=1,load=2")
	flags.Var(&f.window, "window", "window, in `chunks`, a power of two: the tree takes twice as many slots on each switch")
	flags.IntVar(&g.Chunk, "chunk", 1432, "largest payload of a packet, in `bytes`")
	flags.StringVar(&f.groups, "groups", "", "`file` of groups to plan first")
	flags.StringArrayVar(&f.config.Down, "down", nil, "`element` that is down: a switch, a host, or a link such as leaf-0--spine-1; repeatable")
	flags.IntVar(&f.config.Stripes, "stripes", 0, "plan this `number` of trees for the group, over disjoint links")
	flags.IntVar(&f.config.Roots, "roots", 0, "plan this `number` of roots for the group, each for a part of it")
	flags.BoolVar(&f.config.Forward, "forward", false, "allow switches that cannot reduce to forward")
	flags.BoolVar(&f.config.Slim, "slim", false, "allow switches that could reduce to forward where the tree is no worse")
	flags.BoolVar(&f.config.OrHosts, "or-hosts", false, "plan no tree if hosts would be faster")
	flags.BoolVar(&f.config.Partial, "partial", false, "leave out members that cannot be reached")
	flags.StringVar(&f.model, "model", "", "`file` of a cost model")
	flags.StringVar(&f.measured, "measured", "", "`file` of measurements: print the model that fits them, without a plan")
	completeFabric(cmd)
	process.Choices(cmd, "criterion", criteria...)
	process.Choices(cmd, "type", names(topology.AllTypes().List())...)
	process.Choices(cmd, "function", append(names(topology.AllFunctions().List()), "barrier", "broadcast", "gather", "scatter", "all-to-all")...)
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := o.begin(); err != nil {
			return err
		}
		defer o.end(&err)
		return f.run(cmd, o)
	}
	return cmd
}

var errNoPlan = errors.New("there is no tree")

func (f *planFlags) run(cmd *cobra.Command, o *output) (err error) {
	f.config.Model = pathsel.DefaultModel()
	if f.model != "" {
		if f.config.Model, err = whatif.ReadModel(f.model); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	if f.measured != "" {
		fit, err := whatif.FitFile(f.measured, f.config.Model)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "# fitted to %d rows: off by %.1f %% on average, %.1f %% at worst\n", fit.Rows, 100*fit.Mean, 100*fit.Worst)
		return settings.WriteModel(out, fit.Model)
	}
	report, err := f.answer()
	if err != nil {
		return err
	}
	err = o.write(out, answer{report, report.Text, report.SVG})
	if err == nil && report.Refused != nil && !report.Refused.HostsFaster {
		return fmt.Errorf("%w: %s", errNoPlan, report.Refused.Why)
	}
	return err
}

func (f *planFlags) answer() (*whatif.Report, error) {
	c := &f.config
	if f.topology == "" {
		return nil, fmt.Errorf("%w --topology: it is needed: a file, or one of\n%s", errUsage, indented(topology.Specs))
	}
	if c.Stripes < 0 || c.Roots < 0 {
		return nil, fmt.Errorf("%w: --stripes and --roots must not be negative", errUsage)
	}
	var err error
	if c.Graph, err = topology.Open(f.topology); err != nil {
		return nil, err
	}
	if f.groups != "" {
		if c.Others, err = whatif.ReadGroups(f.groups); err != nil {
			return nil, err
		}
	}
	c.Group.Bytes, c.Group.Window = int64(f.bytes), int(f.window)
	if c.Group.Weights != "" && c.Group.Criterion == "auto" {
		c.Group.Criterion = ""
	}
	return whatif.Run(*c)
}
