package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func newGroup() *cobra.Command {
	cmd := &cobra.Command{Use: "group", Short: "Create, list, show, explain and delete groups"}
	c := addClient(cmd)
	return process.Family(cmd, newGroupCreate(c), newGroupList(c), completeGroup(newGroupShow(c), c), completeGroup(newGroupExplain(c), c), completeGroup(newGroupDelete(c), c))
}

// createFlags are the options of a group as they are written.
type createFlags struct {
	chunk            int
	window           window
	functions, types []string
	purpose          purposeFlags
	stripes, roots   int
	protection       wire.Protection
}

// purposeFlags say what a group is for.
type purposeFlags struct {
	pathsel.Purpose
	bytes process.Size
}

func (f *purposeFlags) add(flags *pflag.FlagSet) {
	process.Parsed(flags, &f.Collective, "collective", "any", "`collective` that the group mostly runs: any, allreduce, reduce, broadcast, barrier, gather, scatter or all-to-all", pathsel.ParseCollective)
	flags.Var(&f.bytes, "bytes", "`size` of its vectors, such as 65536, 64KiB or 4MiB; 0: unknown")
	process.Parsed(flags, &f.Criterion, "criterion", "auto", "`criterion` for trees: auto (load, within what collective and size need), hops, latency, bandwidth, load or capability", pathsel.ParseCriterion)
	process.Parsed(flags, &f.Weights, "weights", "", "several criteria with `weights`, such as hops=1,load=2", parseWeights)
}

func parseWeights(text string) (w pathsel.Weights, err error) {
	if text == "" {
		return w, nil
	}
	return pathsel.ParseWeights(text)
}

func (f *purposeFlags) purpose() (pathsel.Purpose, error) {
	f.Bytes = int64(f.bytes)
	if err := f.Validate(); err != nil {
		return f.Purpose, fmt.Errorf("%w: %w", errUsage, err)
	}
	return f.Purpose, nil
}

func newGroupCreate(c *client) *cobra.Command {
	f := createFlags{window: hostlib.DefaultWindow}
	cmd := &cobra.Command{
		Use:   "create NAME HOST...",
		Short: "Create a group, or find an existing one of that name, hosts and options",
		Long: `create makes a group of hosts, in the order of their ranks, and prints its number.
A group without watchers is released after a while. Members that use the host
library create their groups themselves.`,
		Example: "  offload-manager group create job-17 h0 h1 h2 h3 --functions sum --types float32,float64\n" +
			"  offload-manager group create job-18 h0 h1 h2 h3 --collective allreduce --bytes 4MiB --criterion load\n" +
			"  offload-manager group create job-19 h0 h1 h2 h3 --stripes 2",
		Args: cobra.MinimumNArgs(2),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.chunk, "chunk", 1432, "largest payload of a packet, in `bytes`")
	flags.Var(&f.window, "window", "largest window, in `chunks`, a power of two")
	flags.StringSliceVar(&f.functions, "functions", nil, "reduction functions of its operations (default all): "+listed(topology.AllFunctions().List()))
	flags.StringSliceVar(&f.types, "types", nil, "their element types (default all): "+listed(topology.AllTypes().List()))
	f.purpose.add(flags)
	completePurpose(cmd)
	process.Choices(cmd, "functions", names(topology.AllFunctions().List())...)
	process.Choices(cmd, "types", names(topology.AllTypes().List())...)
	process.Parsed(flags, &f.protection, "protection", wire.Plain.String(), "protection of packets on its trees: plain, authenticated or encrypted", wire.ParseProtection)
	process.Choices(cmd, "protection", wire.Plain.String(), wire.Authenticated.String(), wire.Encrypted.String())
	flags.IntVar(&f.stripes, "stripes", 0, "create up to this `number` of groups of these hosts (stripes), whose trees share no links between switches")
	flags.IntVar(&f.roots, "roots", 0, "create up to this `number` of groups, each of some of the hosts, with a root of its own")
	how := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		group, err := f.create(args[0], args[1:])
		if err != nil {
			return err
		}
		return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
			if group.Bundle.Kind != manager.NoBundle {
				return createBundle(ctx, m, group, *how, cmd.OutOrStdout())
			}
			return create(ctx, m, group, *how, cmd.OutOrStdout())
		})
	}
	return cmd
}

// create turns the flags into what they ask for.
func (f *createFlags) create(name string, hosts []string) (manager.Create, error) {
	c := manager.Create{
		Name: name, Members: hosts, ChunkBytes: f.chunk, Window: uint32(f.window),
		Functions: topology.AllFunctions(), Types: topology.AllTypes(), Protection: f.protection,
	}
	if len(f.functions) > 0 {
		c.Functions = 0
	}
	for _, name := range f.functions {
		x, err := reduce.ParseFunction(name)
		if err != nil {
			return c, fmt.Errorf("%w --functions: %w", errUsage, err)
		}
		c.Functions |= topology.FunctionsOf(x)
	}
	if len(f.types) > 0 {
		c.Types = 0
	}
	for _, name := range f.types {
		x, err := reduce.ParseType(name)
		if err != nil {
			return c, fmt.Errorf("%w --types: %w", errUsage, err)
		}
		c.Types |= topology.TypesOf(x)
	}
	var err error
	if c.Purpose, err = f.purpose.purpose(); err != nil {
		return c, err
	}
	c.Bundle, err = f.bundle(name)
	return c, err
}

// bundle returns which groups are to be made, if it is not one alone.
func (f *createFlags) bundle(name string) (b manager.Bundle, err error) {
	switch {
	case f.stripes < 0 || f.roots < 0 || f.stripes > 0 && f.roots > 0:
		return b, fmt.Errorf("%w: --stripes and --roots must not be negative, nor both given", errUsage)
	case f.stripes > 1:
		b = manager.Bundle{Name: name, Kind: manager.Stripes, Count: f.stripes}
	case f.roots > 1:
		b = manager.Bundle{Name: name, Kind: manager.Parts, Count: f.roots}
	}
	if b.Validate() != nil {
		return b, fmt.Errorf("%w: %w", errUsage, b.Validate())
	}
	return b, nil
}

func create(ctx context.Context, m *rpc.ManagerClient, c manager.Create, format string, out io.Writer) error {
	id, found, err := m.CreateGroup(ctx, c)
	if err != nil {
		return err
	}
	if format == "json" {
		return view.JSON(out, struct {
			Group uint32 `json:"group"`
			Name  string `json:"name"`
			Found bool   `json:"found"` // it stood already
		}{id, c.Name, found})
	}
	was := "created"
	if found {
		was = "found"
	}
	if _, err = fmt.Fprintf(out, "Group %d, %s: %s, %d members\n", id, c.Name, was, len(c.Members)); err != nil {
		return err
	}
	e, err := m.Explain(ctx, rpc.GroupRef{Group: id})
	if err == nil && errors.Is(e.Refusal, manager.ErrAbsent) {
		_, err = fmt.Fprintf(out, "It waits: %s\n", printable.Text(e.Refusal.Error())) // misspelt, or not yet in the fabric
	}
	return err
}

func newGroupList(c *client) *cobra.Command {
	return newList(c, "List all groups", func(ctx context.Context, m *rpc.ManagerClient) ([]view.Summary, error) {
		groups, err := m.Groups(ctx)
		all := make([]view.Summary, len(groups))
		for i, g := range groups {
			all[i] = view.NewSummary(g)
		}
		return all, err
	}, view.SummariesText)
}

func newGroupShow(c *client) *cobra.Command {
	cmd := &cobra.Command{Use: "show GROUP", Short: "Show a group, by name, unique prefix or number, and its trees", Args: cobra.ExactArgs(1)}
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return showGroup(cmd, c, args[0], o, view.Group.Text) }
	return cmd
}

func newGroupExplain(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain GROUP", Short: "Explain a group's tree, or why it has none, and its history", Args: cobra.ExactArgs(1),
	}
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return showGroup(cmd, c, args[0], o, view.Group.Explain)
	}
	return cmd
}

func showGroup(cmd *cobra.Command, c *client, which string, o *output, text func(view.Group, io.Writer) error) (err error) {
	if err := o.begin(); err != nil {
		return err
	}
	defer o.end(&err)
	return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
		e, err := explain(ctx, m, which)
		if err != nil {
			return err
		}
		g := view.NewGroup(e)
		return o.write(cmd.OutOrStdout(), answer{g, func(w io.Writer) error { return text(g, w) }, func(w io.Writer) error { return drawGroup(ctx, m, e, w) }})
	})
}

// drawGroup draws a group, and the others of its bundle, in the manager's fabric.
func drawGroup(ctx context.Context, m *rpc.ManagerClient, e rpc.Explanation, w io.Writer) error {
	fabric, err := m.Topology(ctx)
	if err != nil {
		return err
	}
	sisters, err := sistersOf(ctx, m, e)
	if err != nil {
		return err
	}
	return view.GroupSVG(w, fabric, e, sisters...)
}

// sistersOf asks about the other groups of a group's bundle. One that has gone
// meanwhile is left out.
func sistersOf(ctx context.Context, m *rpc.ManagerClient, e rpc.Explanation) (all []rpc.Explanation, err error) {
	for _, s := range e.Sisters {
		sister, err := m.Explain(ctx, rpc.GroupRef{Group: s.Group})
		if errors.Is(err, manager.ErrUnknownGroup) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, sister)
	}
	return all, nil
}

func newGroupDelete(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "delete GROUP",
		Short: "Release a group, by name, unique prefix or number: its members continue over hosts; the first of several stripes releases all",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
				e, err := explain(ctx, m, args[0])
				if err != nil {
					return err
				}
				if err := m.ReleaseGroup(ctx, e.Group); err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Group %d, %s: released\n", e.Group, e.Name)
				return err
			})
		},
	}
}
