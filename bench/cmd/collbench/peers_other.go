//go:build !linux

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

func newPeers() *cobra.Command {
	return &cobra.Command{
		Use: "peers", Short: "Compare with Open MPI, MPICH and Gloo (on Linux)",
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("%w, and Linux", netlab.ErrPrivilege)
		},
	}
}

func newNodeShell() *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "Run a command on a host (on Linux)",
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("%w, and Linux", netlab.ErrPrivilege)
		},
	}
}
