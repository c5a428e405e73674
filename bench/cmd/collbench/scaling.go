package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/scaling"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func newScaling() *cobra.Command {
	c := scaling.DefaultConfig()
	var format, plots, costs, against string
	cmd := &cobra.Command{
		Use:   "scaling",
		Short: "Simulate allreduces of up to 65,536 hosts, with costs that were measured",
		Long: `scaling simulates allreduces packet by packet, with the cores that ship: in
namespaces on two processors, beside what was measured there, and in data centres with
switches that reduce in hardware, beside the best algorithm of hosts and SHARP's
published figures. docs/scaling.md explains the model and the figures. It takes about
half a minute, and as much again for each 32 MiB of longer vectors.`,
		Example: `  collbench scaling
  collbench scaling --plots docs/scaling
  collbench scaling measure > costs.json; collbench scaling --costs costs.json --against peers.json`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntSliceVar(&c.Hosts, "hosts", c.Hosts, "`numbers` of hosts, powers of two")
	flags.IntSliceVar(&c.Bytes, "bytes", c.Bytes, "`bytes` of each member's vector, multiples of 4")
	flags.IntVar(&c.Ports, "ports", c.Ports, "`ports` of each switch of the fat-tree, a power of two, which has so many cubed and divided by four hosts at most")
	flags.StringVar(&costs, "costs", "", "`file` of costs as the command measure writes them; by default those of docs/scaling.md")
	flags.StringVar(&against, "against", "", "`file` of collbench peers --format json, with whose rows the model is compared; by default those of docs/benchmarks.md")
	flags.StringVar(&plots, "plots", "", "`directory` for plots")
	process.OneOf(cmd, &format, "format", "output `format`: text, markdown or json", "text", "markdown", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if costs != "" {
			text, err := os.ReadFile(costs)
			if err != nil {
				return err
			}
			if c.Costs, err = scaling.ReadCosts(text); err != nil {
				return fmt.Errorf("--costs %s: %w", costs, err)
			}
		}
		if against != "" {
			f, err := os.Open(against)
			if err != nil {
				return err
			}
			defer f.Close()
			if c.Table, err = scaling.ReadTable(f); err != nil {
				return fmt.Errorf("--against %s: %w; collbench peers --format json writes such a file", against, err)
			}
		}
		if plots != "" { // an error now and not after all simulations
			if err := os.MkdirAll(plots, 0o755); err != nil {
				return fmt.Errorf("--plots %s: %w", plots, err)
			}
		}
		report, err := scaling.Make(cmd.Context(), c)
		if err != nil {
			return err
		}
		if plots != "" {
			if err := report.Plot(plots); err != nil {
				return err
			}
		}
		switch format {
		case "json":
			return writeJSON(cmd, report)
		case "markdown":
			_, err := cmd.OutOrStdout().Write(report.Markdown())
			return err
		}
		return report.Text(cmd.OutOrStdout())
	}
	cmd.AddCommand(newScalingMeasure(), newScalingLook())
	return cmd
}

// writeJSON writes a report for programs.
func writeJSON(cmd *cobra.Command, report any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(report)
}
