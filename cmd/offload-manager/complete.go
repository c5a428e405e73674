package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/topology"
)

// patient is how long somebody waits who has pressed the key for completion.
const patient = 2 * time.Second

// completeGroup has shells complete a command's argument with the groups' names.
func completeGroup(cmd *cobra.Command, c *client) *cobra.Command {
	return complete(cmd, c, func(ctx context.Context, m *rpc.ManagerClient) (names []string, err error) {
		groups, err := m.Groups(ctx)
		for _, g := range groups {
			names = append(names, g.Name)
		}
		return names, err
	})
}

// completeSwitch does so with those of the switches.
func completeSwitch(cmd *cobra.Command, c *client) *cobra.Command {
	return complete(cmd, c, func(ctx context.Context, m *rpc.ManagerClient) (names []string, err error) {
		fabric, err := m.Topology(ctx)
		for _, n := range fabric.Nodes {
			if n.Switch != nil {
				names = append(names, n.Name)
			}
		}
		return names, err
	})
}

// complete has shells complete a command's only argument with what the manager
// says. Without a manager there is nothing to complete.
func complete(cmd *cobra.Command, c *client, ask func(context.Context, *rpc.ManagerClient) ([]string, error)) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begins string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		quick := *c
		quick.timeout = min(c.timeout, patient)
		err := quick.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) (err error) {
			names, err = ask(ctx, m)
			return err
		})
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		fitting := names[:0]
		for _, name := range names {
			if strings.HasPrefix(name, begins) {
				fitting = append(fitting, name)
			}
		}
		return fitting, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// completeFabric has shells complete --topology with the kinds of fabrics that need
// no file, and with files.
func completeFabric(cmd *cobra.Command) {
	var kinds []string
	for line := range strings.Lines(topology.Specs) {
		kind, _, _ := strings.Cut(strings.Fields(line)[0], ":")
		kinds = append(kinds, strings.TrimSuffix(kind, "[")+":")
	}
	_ = cmd.RegisterFlagCompletionFunc("topology", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoSpace)) // its only error is that there is no such flag
}

// names returns how a flag's values are written.
func names[T fmt.Stringer](all []T) (list []string) {
	for _, x := range all {
		list = append(list, x.String())
	}
	return list
}

// completePurpose has shells complete what a group is for.
func completePurpose(cmd *cobra.Command) {
	process.Choices(cmd, "collective", "any", "allreduce", "reduce", "broadcast", "barrier", "gather", "scatter", "all-to-all")
	process.Choices(cmd, "criterion", criteria...)
}

var criteria = []string{"auto", "hops", "latency", "bandwidth", "load", "capability"}
