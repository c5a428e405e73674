package main

import (
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/pathsel"
)

// newNode returns the commands that fabric runs in the namespaces of its lab.
func newNode() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Be a process of a fabric", Hidden: true}
	verbose := cmd.PersistentFlags().Bool("verbose", false, "report everything")
	cmd.AddCommand(newNodeCrowd(verbose)...)
	cmd.AddCommand(newNodeManager(verbose), newNodeAgent(verbose), newNodeTree(), newNodeDrain(), newNodePour(), newNodeShell(), newNodeScoll(), newNodeRail(), newNodeRailSoak(), newNodeRecovery(verbose))
	return cmd
}

func newNodeManager(verbose *bool) *cobra.Command {
	var fabric, kept, model string
	var c managerd.Config
	cmd := &cobra.Command{
		Use: "manager", Short: "Be the manager", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = newLogger(cmd, *verbose)
			c.Model = pathsel.DefaultModel()
			c.Model.Costs = &pathsel.Costs{Rates: pathsel.DefaultCosts().Rates, Processors: runtime.NumCPU()} // which namespaces share
			if model != "" {
				var err error
				if c.Model, err = settings.ReadModelFile(model); err != nil {
					return err
				}
			}
			return field.Manager(cmd.Context(), fabric, kept, c)
		},
	}
	cmd.Flags().StringVar(&fabric, "topology", "", "`file` of the fabric")
	cmd.Flags().StringVar(&kept, "store", "", "`file` that keeps its state")
	cmd.Flags().StringVar(&model, "model", "", "`file` of its cost model; by default the built-in one, of hosts that share this machine's processors")
	cmd.Flags().StringVar(&c.Listen, "listen", "", "`address` to listen on")
	cmd.Flags().DurationVar(&c.Verify, "verify", 0, "`period` in which trees are held against what links carry")
	cmd.Flags().StringToStringVar(&c.Agents, "agent", nil, "switch and `address` of its agent, as NAME=ADDRESS")
	return cmd
}

func newNodeAgent(verbose *bool) *cobra.Command {
	var fabric, name, listen string
	var loss float64
	var isKernel bool
	var measured bool
	cmd := &cobra.Command{
		Use: "agent", Short: "Be the agent of a switch", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLoss(loss); err != nil {
				return err
			}
			kernel := agentd.NoKernel
			if isKernel {
				kernel = agentd.NeedsKernel
			}
			return field.Agent(cmd.Context(), fabric, name, listen, loss, kernel, measured, newLogger(cmd, *verbose))
		},
	}
	cmd.Flags().StringVar(&fabric, "topology", "", "`file` of the fabric")
	cmd.Flags().StringVar(&name, "switch", "", "`name` of the switch")
	cmd.Flags().StringVar(&listen, "listen", "", "`address` to listen on")
	cmd.Flags().BoolVar(&isKernel, "kernel", false, "reduce in the kernel")
	cmd.Flags().Float64Var(&loss, "loss", 0, "`share` of the packets that is lost")
	cmd.Flags().BoolVar(&measured, "gauge", false, "serve a gauge on file descriptor 3")
	return cmd
}

func newNodeTree() *cobra.Command {
	var address, name string
	cmd := &cobra.Command{
		Use: "tree", Short: "Print where a group's tree is", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return field.Look(cmd.Context(), cmd.OutOrStdout(), address, name)
		},
	}
	cmd.Flags().StringVar(&address, "manager", "", "`address` of the manager")
	cmd.Flags().StringVar(&name, "name", field.Communicator, "`name` of the communicator")
	return cmd
}

func newNodeDrain() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "drain", Short: "Take a TCP stream", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return field.Drain(cmd.Context(), listen) },
	}
	cmd.Flags().StringVar(&listen, "listen", "", "`address` to listen on")
	cmd.Flags().Bool("gauge", false, "serve a gauge on file descriptor 3, as it does in any case")
	return cmd
}

func newNodePour() *cobra.Command {
	var to string
	var lasting time.Duration
	cmd := &cobra.Command{
		Use: "pour", Short: "Send a TCP stream", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return field.Pour(cmd.Context(), to, lasting) },
	}
	cmd.Flags().StringVar(&to, "to", "", "`address` to send to")
	cmd.Flags().DurationVar(&lasting, "for", time.Minute, "`time` after which it ends")
	return cmd
}
