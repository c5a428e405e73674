package main

import (
	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "offload-manager",
		Short: "Manage the collection trees of a fabric",
		Long: "offload-manager knows a fabric's topology, chooses a collection tree for every group of\n" +
			"hosts, and configures the switches on it to reduce the hosts' vectors. \"serve\" runs the\n" +
			"manager; other commands reach it by --manager, or by TRIBUTARY_MANAGER in the environment.",
		SilenceUsage:  true,
		SilenceErrors: true, // main writes them
	}
	root.AddCommand(newServe(), newCheck(), newGroup(), newTopology(), newSwitch(), newStore(), newCerts(), newDemo(), newPlan(), newMembers(), newLLDP())
	return process.Root(root)
}
