package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "offload-manager",
		Short: "Manage the collection trees of a fabric",
		Long: "offload-manager knows a fabric's topology, chooses a collection tree for every group of\n" +
			"hosts, and has the switches on it reduce what the hosts send.",
		SilenceUsage:  true,
		SilenceErrors: true, // main writes them
	}
	root.AddCommand(newDemo(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "offload-manager", version())
			return err
		},
	}
}

// version returns what the build recorded of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	return v + " " + info.GoVersion
}

// oneLine joins the lines of an error, of which some have several.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
