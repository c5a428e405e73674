package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/rails"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// railsFlags are the flags of pingpong and bandwidth as they are written.
type railsFlags struct {
	cfg                           rails.Config
	rates, prefix, cut, format    string
	sizes                         []string
	seed                          uint64
	pin                           bool
	timeout                       time.Duration
	leastFault, longestFault, gap time.Duration
}

func newPingpong() *cobra.Command {
	f := railsFlags{cfg: rails.Config{Measure: rails.Latency}}
	cmd := &cobra.Command{
		Use:   "pingpong",
		Short: "Time messages between two hosts with several rails (as root)",
		Long: `pingpong builds two hosts of network namespaces that several rails join, each a
network of its own, and times messages one way: half of a round trip. The
contestants take turns, round after round. A ratio is to the first of them.` + railsLong,
		Example: `  collbench pingpong --rails 200mbit,200mbit --tls
  collbench pingpong --sizes 8 --contestants tcp,ucx,openmpi --format csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.add(cmd)
	return cmd
}

func newBandwidth() *cobra.Command {
	f := railsFlags{cfg: rails.Config{Measure: rails.Bandwidth}}
	cmd := &cobra.Command{
		Use:   "bandwidth",
		Short: "Measure streams between two hosts while rails fail and recover (as root)",
		Long: `bandwidth builds the hosts that pingpong builds, and measures streams of messages.
Each message has a number and a checksum: what is lost, doubled, out of order or
corrupted is an error.

With --cut, links fail and recover in the middle of a stream. A schedule names
links and what happens to each when: "rail1 down@2s up@5s; h1.rail0 out@6s up@8s".
A rail without a host is that of all hosts. The faults:

  down     nothing passes; the hosts keep their carrier
  unplug   nothing passes; the host loses its carrier
  disable  the host's interface is down
  delete   the host's interface is gone; up makes it again
  out, in  nothing passes in one direction, as the host sees it
  slow:R   the link has the rate R

"random" is a schedule by --seed: one rail at a time fails in any way. Reported are
the longest time without a message, and the rates before, during and after.` + railsLong,
		Example: `  collbench bandwidth --rails 200mbit,100mbit --sizes 16MiB
  collbench bandwidth --sizes 64KiB --cut "rail1 down@2s up@5s" --lasting 8s
  collbench bandwidth --sizes 64KiB --cut random --seed 7 --lasting 60s --tls`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.cfg.InFlight, "in-flight", 0, "`messages` under way at once; 0: by their size")
	flags.StringVar(&f.cut, "cut", "", "`schedule` of links that fail and recover, or random")
	flags.DurationVar(&f.cfg.Lasting, "lasting", 10*time.Second, "with --cut: `time` of each stream")
	flags.Uint64Var(&f.seed, "seed", 1, "`seed` of --cut random")
	flags.DurationVar(&f.leastFault, "fault-least", 200*time.Millisecond, "with --cut random: least `time` of a fault")
	flags.DurationVar(&f.longestFault, "fault-longest", 2*time.Second, "with --cut random: longest `time` of a fault")
	flags.DurationVar(&f.gap, "fault-pause", 2500*time.Millisecond, "with --cut random: least `time` between faults")
	return cmd
}

const railsLong = `

Contestants: tcp, a plain TCP connection over the first rail, with TLS where
Tributary has it; rail, messages of Tributary's package hostlib/rail; conn, frames
of Tributary's connections between hosts, below it; allreduce, one over hosts (of
pingpong alone: its whole time); ucx, by ucx_perftest over TCP
(Debian: ucx-utils), which polls; ucxsleep, the same, waiting in the kernel; openmpi,
by its btl tcp (openmpi-bin libopenmpi-dev gcc). NAME/1 uses the first rail alone.`

func (f *railsFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.rates, "rails", "200mbit,200mbit", "`rates` of the rails, each such as 200mbit or unshaped")
	flags.StringSliceVar(&f.sizes, "sizes", []string{"8", "64KiB", "16MiB"}, "`sizes` of messages")
	flags.StringSliceVar(&f.cfg.Kinds, "kind", []string{"tcp"}, "`kind` of Tributary's rails, tcp or udp: one, or one each")
	flags.BoolVar(&f.cfg.TLS, "tls", false, "use certificates and TLS")
	flags.StringSliceVar(&f.cfg.Contestants, "contestants", []string{rails.Plain, rails.Messages, rails.MessageOne, rails.UCX, rails.OpenMPI}, "`contestants`; ratios are to the first")
	flags.IntVar(&f.cfg.Rounds, "rounds", 5, "turns of each contestant: one `number`")
	flags.DurationVar(&f.cfg.Turn, "turn", time.Second, "approximate `time` of a turn")
	flags.DurationVar(&f.cfg.Limit, "limit", time.Minute, "`time` after which a contestant is left out")
	flags.BoolVar(&f.pin, "pin", false, "run each host's processes on its own share of the cores")
	process.OneOf(cmd, &f.format, "format", "output `format`: text, csv, or json, a line each", "text", "csv", "json")
	flags.StringVar(&f.prefix, "prefix", "cbr", "`prefix` of the namespaces' names")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Minute, "give up after this `time`")
}

// config completes the configuration.
func (f *railsFlags) config(log io.Writer) (c rails.Config, err error) {
	c = f.cfg
	program, err := os.Executable()
	if err != nil {
		return c, err
	}
	c.Program, c.Log = []string{program}, log
	c.Fabric = netlab.RailsConfig{Prefix: f.prefix, Hosts: 2, Pin: f.pin}
	if c.Fabric.Rates, err = netlab.ParseRates(f.rates); err != nil {
		return c, fmt.Errorf("%w --rails: %w", errUsage, err)
	}
	for _, text := range f.sizes {
		n, err := process.ParseSize(strings.TrimSpace(text))
		if err != nil {
			return c, fmt.Errorf("%w --sizes: %w", errUsage, err)
		}
		c.Sizes = append(c.Sizes, n)
	}
	if f.cut == "" {
		return c, nil
	}
	c.Measure = rails.Cuts
	if f.cut == "random" {
		chaos := rails.Chaos{
			Seed: f.seed, Hosts: c.Fabric.Hosts, Rates: c.Fabric.Rates, Lasting: c.Lasting - time.Second,
			Least: f.leastFault, Longest: f.longestFault, Pause: f.gap,
		}
		if err := chaos.Validate(); err != nil {
			return c, fmt.Errorf("%w --cut random: %w", errUsage, err)
		}
		c.Schedule = chaos.Random()
	} else if c.Schedule, err = rails.Parse(f.cut, c.Fabric.Hosts, len(c.Fabric.Rates)); err != nil {
		return c, fmt.Errorf("%w --cut: %w", errUsage, err)
	}
	if _, last := c.Schedule.Bounds(); last >= c.Lasting {
		return c, fmt.Errorf("%w --cut: an event after %v in a stream of %v (--lasting)", errUsage, last, c.Lasting)
	}
	return c, nil
}

func (f *railsFlags) run(cmd *cobra.Command) error {
	c, err := f.config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	b := benchFlags{timeout: f.timeout}
	ctx, cancel := b.within(cmd.Context())
	defer cancel()
	out := cmd.OutOrStdout()
	var rows []rails.Row
	err = late(ctx, rails.Measure(ctx, c, func(r rails.Row) error {
		rows = append(rows, r)
		if f.format != "json" {
			return nil
		}
		return json.NewEncoder(out).Encode(&r)
	}))
	switch {
	case f.format == "csv":
		err = errors.Join(err, rails.WriteCSV(out, rows))
	case f.format == "text":
		err = errors.Join(err, rails.WriteText(out, rows))
	}
	return err
}

// newNodeRail returns the command that is an end of a contestant.
func newNodeRail() *cobra.Command {
	var c rails.PortConfig
	var port string
	cmd := &cobra.Command{
		Use: "rail", Short: "Be an end of a stream of messages", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return rails.Play(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), c.Side, func(ready func() error) (rails.Port, error) {
				return openPort(cmd.Context(), port, c, ready)
			})
		},
	}
	cmd.Flags().StringVar(&port, "port", "", "`contestant` to be")
	cmd.Flags().IntVar(&c.Side, "side", 0, "0, which calls, or 1")
	cmd.Flags().StringSliceVar(&c.Own, "own", nil, "`addresses` of this host's rails")
	cmd.Flags().StringSliceVar(&c.Peer, "peer", nil, "`addresses` of the other's")
	cmd.Flags().StringSliceVar(&c.Kinds, "kind", nil, "`kinds` of the rails")
	cmd.Flags().Uint16Var(&c.Port, "listen", 0, "`port` to listen on")
	cmd.Flags().StringVar(&c.Trust, "trust", "", "`directory` of certificates")
	return cmd
}

func openPort(ctx context.Context, port string, c rails.PortConfig, ready func() error) (rails.Port, error) {
	if len(c.Own) == 0 || len(c.Own) != len(c.Peer) || c.Side != rails.Asker && c.Side != rails.Answerer {
		return nil, fmt.Errorf("%w: an end needs --side and as many --own as --peer", errUsage)
	}
	switch port {
	case rails.Plain:
		return rails.OpenPlain(ctx, c, ready)
	case rails.Messages:
		return rails.OpenMessages(ctx, c, ready)
	case rails.Reduce:
		return rails.OpenAllreduce(ctx, c, ready)
	case rails.Conn:
		return rails.OpenPeer(ctx, c, ready)
	}
	return nil, fmt.Errorf("%w --port %q", errUsage, port)
}
