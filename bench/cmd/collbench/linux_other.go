//go:build !linux

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

func newFabric() *cobra.Command {
	return onLinux("fabric", "Measure on a fabric of network namespaces")
}

func newPeers() *cobra.Command {
	return onLinux("peers", "Compare with Open MPI, MPICH and Gloo")
}

func newCosts() *cobra.Command {
	return onLinux("costs", "Fit the cost model of collectives to a fabric")
}

func newScalingMeasure() *cobra.Command {
	return onLinux("measure", "Measure the costs of packets on this machine")
}

func newScalingLook() *cobra.Command { return onLinux("look", "Look for packets") }

func newPingpong() *cobra.Command {
	return onLinux("pingpong", "Time messages between two hosts with several rails")
}

func newBandwidth() *cobra.Command {
	return onLinux("bandwidth", "Measure streams between two hosts while rails fail and recover")
}

func newRails() *cobra.Command {
	return onLinux("rails", "Cut rails at random under collectives, and check that nothing is lost or doubled")
}

func newRevoke() *cobra.Command {
	return onLinux("revoke", "Measure revokes, agreements, and recoveries from kill -9")
}

func newNodeRecovery(*bool) *cobra.Command {
	return onLinux("recovery", "Be a member that is asked to recover")
}

func newNodeRailSoak() *cobra.Command { return onLinux("rail-soak", "Be a host of a soak") }

func newNodeRail() *cobra.Command { return onLinux("rail", "Be an end of a stream of messages") }

func newNodeShell() *cobra.Command { return onLinux("shell", "Run a command on a host") }

// onLinux returns a command that there is on Linux alone.
func onLinux(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short + " (on Linux)",
		RunE: func(*cobra.Command, []string) error { return fmt.Errorf("%w, and Linux", netlab.ErrPrivilege) },
	}
}
