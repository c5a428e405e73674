package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func newSwitch() *cobra.Command {
	cmd := &cobra.Command{Use: "switch", Short: "List, drain and undrain switches"}
	c := addClient(cmd)
	return process.Family(cmd,
		newSwitchList(c),
		completeSwitch(newDrain(c, "drain", "Drain a switch: its groups move to other trees, without an error", "draining", true), c),
		completeSwitch(newDrain(c, "undrain", "Return a switch to use", "in use", false), c),
	)
}

func newSwitchList(c *client) *cobra.Command {
	return newList(c, "List all switches", func(ctx context.Context, m *rpc.ManagerClient) ([]view.Switch, error) {
		f, err := m.Topology(ctx)
		if err != nil {
			return nil, err
		}
		return view.NewFabric(f).Switches, nil
	}, view.SwitchesText)
}

func newDrain(c *client, verb, short, becomes string, on bool) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " SWITCH",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
				if err := m.DrainSwitch(ctx, args[0], on); err != nil {
					return among(ctx, m, err)
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "Switch %s: %s\n", args[0], becomes)
				return err
			})
		},
	}
}
