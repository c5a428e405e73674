package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/topology"
)

func newEmbedded() *cobra.Command {
	var f benchFlags
	var s scollFlags
	var fabric string
	cmd := &cobra.Command{
		Use:   "embedded",
		Short: "Measure on a whole fabric in this process",
		Long: `embedded runs a manager, an agent for every switch and a host for every host in
this process, over loopback. There are no links: it measures the processors of
this machine.

--topology is a file (docs/topology.md), or one of

` + topology.Specs,
		Example: "  collbench embedded --topology fat-tree:4 --bytes 1MiB --iterations 50",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.collective == scollFunction {
				return runScollEmbedded(cmd, &f, &s, fabric)
			}
			return runEmbedded(cmd, &f, fabric)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&fabric, "topology", "leaf-spine:4,2,2", "the fabric: a specification or a `file`")
	process.FormerFlag(flags, "fabric", "topology")
	f.add(flags)
	s.add(flags)
	return cmd
}

// vectorsEach are the vectors that a member holds at least: its own and the result.
const vectorsEach = 2

func runEmbedded(cmd *cobra.Command, f *benchFlags, fabric string) (err error) {
	c, err := f.config()
	if err != nil {
		return err
	}
	g, err := topology.Open(fabric)
	if err != nil {
		return err
	}
	if err := process.CheckMemory(process.Vectors{Members: g.Hosts(), Bytes: slices.Max(c.Bytes), Each: vectorsEach}); err != nil {
		return err
	}
	ctx, cancel := f.within(cmd.Context())
	defer cancel()
	defer func() { err = late(ctx, err) }()
	whole, err := embedded.Start(ctx, embedded.Config{
		Topology: g, WithoutManager: c.Transport == timing.Host, OfferWait: offerWaitMust, Window: f.window, Options: c.GroupOptions(), Log: f.logger(cmd),
		Progress: func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, whole.Close()) }()
	comms, err := whole.Communicators(ctx, field.Communicator)
	if err != nil {
		return err
	}
	return embedded.Each(comms, func(rank int, comm *hostlib.Communicator) error {
		if rank == 0 {
			return measure(ctx, comm, c, nil, cmd.OutOrStdout(), false)
		}
		err := measure(ctx, comm, c, nil, io.Discard, false)
		if errors.Is(err, timing.ErrWrong) || errors.Is(err, timing.ErrTransport) {
			return nil // rank 0 says the same
		}
		return err
	})
}
