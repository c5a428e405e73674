package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/topology/importer"
)

func newTopology() *cobra.Command {
	cmd := &cobra.Command{Use: "topology", Short: "Show and change the fabric as the manager sees it; check or import a topology file"}
	return process.Family(cmd, newTopologyShow(), newTopologySet(), newTopologyEdit(), newTopologyDiff(), newTopologyHistory(), newTopologyGet(), newTopologyCheck(), newTopologyDiscover(), newTopologyImport())
}

func newTopologyShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "Show the fabric as the manager sees it", Args: cobra.NoArgs}
	c := addClient(cmd)
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := o.begin(); err != nil {
			return err
		}
		defer o.end(&err)
		return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
			f, err := m.Topology(ctx)
			if err != nil {
				return err
			}
			v := view.NewFabric(f)
			return o.write(cmd.OutOrStdout(), answer{v, v.Text, func(w io.Writer) error { return view.FabricSVG(w, f) }})
		})
	}
	return cmd
}

func newTopologyCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a topology file, specification or FORMAT:FILE to import, without a manager",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, report, err := importer.Open(args[0])
			if report != nil {
				if err := report.Text(cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			return process.Check(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], err, func() string {
				reducing := 0
				for i := range g.Switches() {
					if g.View().Capability(g.Switch(i)).CanReduce() {
						reducing++
					}
				}
				return fmt.Sprintf("fabric %s, %d hosts, %d switches of which %d can reduce, %d links: valid",
					cmp.Or(g.Fabric(), "without a name"), g.Hosts(), g.Switches(), reducing, g.Links())
			})
		},
	}
}
