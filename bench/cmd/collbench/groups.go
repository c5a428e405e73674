package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/crowd"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// errElsewhere reports that groups were to be offloaded and were not.
var errElsewhere = errors.New("not all groups are offloaded")

// errWrongSums reports wrong results.
var errWrongSums = errors.New("results are wrong")

func newGroups() *cobra.Command {
	p := crowd.DefaultPlan()
	var sizes []string
	var format string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "Measure many groups of the same hosts at once",
		Long: `groups runs a manager, all agents and all hosts as three processes on this machine.
Every host is a member of each group. It reports how long the groups take to form,
how many are offloaded, how long allreduces on all of them at once take, and their
memory. Times are medians, with best and worst in parentheses. Memory is resident
memory, with live heap and stacks in parentheses: of idle groups for each member
and each tree on a switch, less what there was before; and at the end of hosts,
agents and manager. The exit status is 1 if a result is wrong, or if a group was
not offloaded that should have been.`,
		Example: `  collbench groups --groups 1,20,200
  collbench groups --groups 1000 --transport host --format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if p.Bytes, err = parseSizes(sizes); err != nil {
				return err
			}
			if p.Transport == "host" { // as the other commands call it
				p.Transport = "host-tree"
			}
			if err := checkWindow(p.Window); err != nil {
				return err
			}
			if err := p.Validate(); err != nil {
				return err
			}
			g, err := crowd.Open(p.Fabric, p.Slots)
			if err != nil {
				return err
			}
			if err := process.CheckMemory(process.Vectors{Members: g.Hosts() * slices.Max(p.Groups), Bytes: slices.Max(append(p.Bytes, 0)), Each: 1}); err != nil {
				return err
			}
			b := benchFlags{timeout: timeout}
			ctx, cancel := b.within(cmd.Context())
			defer cancel()
			table := crowd.Table{Rows: report.Rows[crowd.Row]{Out: cmd.OutOrStdout(), JSON: format == "json"}}
			err = p.Measure(ctx, cmd.ErrOrStderr(), table.Add)
			wrong, elsewhere, werr := table.Close()
			switch err := errors.Join(err, werr); {
			case err != nil:
				return err
			case wrong > 0:
				return fmt.Errorf("%w: %d of them", errWrongSums, wrong)
			case elsewhere > 0:
				return fmt.Errorf("%w: %d are on their hosts", errElsewhere, elsewhere)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&p.Fabric, "topology", p.Fabric, "the fabric: a specification or a `file`; its hosts are the members")
	process.FormerFlag(flags, "fabric", "topology")
	flags.IntSliceVar(&p.Groups, "groups", p.Groups, "`numbers` of groups, each measured by itself")
	flags.StringVar(&p.Transport, "transport", p.Transport, "`transport` of operations: offload, or host, without a manager")
	flags.StringSliceVar(&sizes, "bytes", []string{"8", "64KiB"}, "`sizes` of each member's vector of float32")
	flags.IntVar(&p.Iterations, "iterations", p.Iterations, "timed `operations` of each size on all groups")
	flags.Uint32Var(&p.Window, "window", 0, "most `chunks` in flight, a power of two; 0: the library's default")
	flags.IntVar(&p.Slots, "slots", 0, "`slots` of each switch; 0: those of the fabric")
	flags.DurationVar(&p.Settle, "settle", p.Settle, "`pause` before memory is read, and before each size")
	process.OneOf(cmd, &format, "format", "output `format`: text, or json, a line for each number of groups", "text", "json")
	flags.DurationVar(&timeout, "timeout", 10*time.Minute, "give up after this `time`")
	return cmd
}

// newNodeCrowd returns the commands of the processes that groups starts.
func newNodeCrowd(verbose *bool) []*cobra.Command {
	var fabric, manager string
	var slots int
	var window uint32
	var agents map[string]string
	be := func(name, short string, run func(*cobra.Command) error) *cobra.Command {
		cmd := &cobra.Command{
			Use: "crowd-" + name, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
		}
		cmd.Flags().StringVar(&fabric, "fabric", "", "the `fabric`")
		cmd.Flags().IntVar(&slots, "slots", 0, "`slots` of each switch")
		return cmd
	}
	switches := be("switches", "Be all agents", func(cmd *cobra.Command) error {
		g, err := crowd.Open(fabric, slots)
		if err != nil {
			return err
		}
		return crowd.Switches(cmd.Context(), g, cmd.InOrStdin(), cmd.OutOrStdout(), newLogger(cmd, *verbose))
	})
	whole := be("manager", "Be the manager", func(cmd *cobra.Command) error {
		g, err := crowd.Open(fabric, slots)
		if err != nil {
			return err
		}
		return crowd.Manager(cmd.Context(), g, agents, cmd.InOrStdin(), cmd.OutOrStdout(), newLogger(cmd, *verbose))
	})
	whole.Flags().StringToStringVar(&agents, "agent", nil, "switch and `address` of its agent, as NAME=ADDRESS")
	hosts := be("hosts", "Be all hosts", func(cmd *cobra.Command) error {
		g, err := crowd.Open(fabric, slots)
		if err != nil {
			return err
		}
		return crowd.Hosts(cmd.Context(), g, manager, window, cmd.InOrStdin(), cmd.OutOrStdout(), newLogger(cmd, *verbose))
	})
	hosts.Flags().StringVar(&manager, "manager", "", "`address` of the manager")
	hosts.Flags().Uint32Var(&window, "window", 0, "most `chunks` in flight")
	return []*cobra.Command{switches, whole, hosts}
}
