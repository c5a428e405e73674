package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/internal/process"
	"github.com/tributary-fabric/tributary/internal/version"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "offload-manager",
		Short: "Manage the collection trees of a fabric",
		Long: "offload-manager knows a fabric's topology, chooses a collection tree for every group of\n" +
			"hosts, and has the switches on it reduce what the hosts send. \"serve\" runs it; what asks\n" +
			"it finds it by --manager, or by TRIBUTARY_MANAGER in the environment.",
		SilenceUsage:  true,
		SilenceErrors: true, // main writes them
	}
	root.AddCommand(newServe(), newCheck(), newGroup(), newTopology(), newSwitch(), newStore(), newCerts(), newDemo(), newPlan(), newBench(), newMembers(), newVersion())
	return process.Root(root)
}

// family adds commands to one that only holds them together.
func family(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(members...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var names []string
		for _, m := range members {
			names = append(names, m.Name())
		}
		return fmt.Errorf("unknown command %q for %q; possible are %s", args[0], cmd.CommandPath(), strings.Join(names, ", "))
	}
	return cmd
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "offload-manager", version.String(), runtime.Version())
			return err
		},
	}
}
