package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/scaling"
)

func newScalingMeasure() *cobra.Command {
	var prefix string
	var rounds int
	cmd := &cobra.Command{
		Use:   "measure",
		Short: "Measure the costs of packets on this machine (as root)",
		Long: `measure measures what sending, receiving and reducing packets costs a processor of
this machine, in a lab of two namespaces, and writes it as JSON.`,
		Example: "  collbench scaling measure > costs.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rounds < 1 {
				return fmt.Errorf("%w --rounds %d: at least 1", errUsage, rounds)
			}
			own, err := os.Executable()
			if err != nil {
				return err
			}
			c, err := scaling.Measure(cmd.Context(), prefix, rounds, func(ctx context.Context) *exec.Cmd {
				return exec.CommandContext(ctx, own, "scaling", "look")
			})
			if err != nil {
				return err
			}
			return writeJSON(cmd, c)
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "cbc", "`prefix` of the namespaces' names")
	cmd.Flags().IntVar(&rounds, "rounds", 9, "`number` of rounds, of which the middle counts")
	return cmd
}

// newScalingLook is a process that looks for packets, among others.
func newScalingLook() *cobra.Command {
	return &cobra.Command{
		Use: "look", Short: "Look for packets", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ns, err := scaling.Look(300 * time.Millisecond)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), ns)
			return err
		},
	}
}
