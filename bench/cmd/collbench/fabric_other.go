//go:build !linux

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

func newFabric() *cobra.Command {
	return &cobra.Command{
		Use: "fabric", Short: "Measure on a fabric of network namespaces (on Linux)",
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("%w, and Linux", netlab.ErrPrivilege)
		},
	}
}
