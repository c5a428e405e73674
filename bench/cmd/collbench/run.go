package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/bench/turn"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// runFlags are the flags of run as they are written.
type runFlags struct {
	bench                                      benchFlags
	manager, host, members, listen, data, name string
	rails                                      []string
	certificate, key, authority                string
	loss                                       float64
	offerWait                                  time.Duration
	without                                    string
	marks, gauge                               bool
	turns                                      string
	scoll                                      scollFlags
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure as one member on a live fabric",
		Long: `run is one member of a group that measures together: run the same command on every
host of the list, with the same flags except --host and --listen. The first of the
list writes the CSV.

The list of members has a line for each rank, with the host's name in the fabric's
topology and the TCP address for other members (--listen):

  h0 10.0.0.1:7102
  h1 10.0.0.2:7102`,
		Example: "  collbench run --manager 10.9.0.1:7100 --host h0 --members members --listen 10.0.0.1:7102 --bytes 1MiB",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.bench.collective == scollFunction {
				return runScollMember(cmd, &f)
			}
			return run(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.manager, "manager", "", "`address` of the offload manager; without one, operations run over hosts")
	flags.StringVar(&f.host, "host", "", "this host's `name` in the fabric's topology; with # and a label, one of several processes of it")
	flags.StringVar(&f.members, "members", "", "`file` with the members")
	flags.StringVar(&f.listen, "listen", "", "TCP `address` for other members")
	flags.StringSliceVar(&f.rails, "rails", nil, "IP `addresses` of the host's rails, for other members and for switches; by default that of --listen")
	flags.StringVar(&f.data, "data", "", "IP `address` for packets to and from switches; by default that of --listen")
	flags.StringVar(&f.name, "name", field.Communicator, "`name` of the group")
	flags.StringVar(&f.certificate, "certificate", "", "`file` of this host's certificate, towards the manager")
	flags.StringVar(&f.key, "key", "", "`file` of its key")
	flags.StringVar(&f.authority, "authority", "", "`file` of the authorities' certificates")
	flags.Float64Var(&f.loss, "loss", 0, "`share` of the packets to switches that is lost, from 0 to 1")
	flags.DurationVar(&f.offerWait, "offer-wait", 0, "how long the group waits for its first tree of switches; by default 3s, with --transport offload 30s")
	flags.StringVar(&f.without, "without", "", "`features` of the sockets to leave out, such as polling, or all")
	flags.BoolVar(&f.marks, "marks", false, "")
	flags.BoolVar(&f.gauge, "gauge", false, "")
	flags.StringVar(&f.turns, "turns", "", "")
	for _, name := range []string{"marks", "gauge", "turns"} { // for collbench itself
		_ = flags.MarkHidden(name) // there is such a flag
	}
	f.bench.add(flags)
	f.scoll.add(flags)
	for _, name := range []string{"host", "members", "listen"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// The time that a measurement gives a first tree to be offered.
const (
	offerWait     = 3 * time.Second
	offerWaitMust = 30 * time.Second // where operations must run over switches
)

func (f *runFlags) offerWaitOf(c timing.Config) time.Duration {
	if f.offerWait == 0 && c.Transport == timing.Offload {
		return offerWaitMust
	}
	return cmp.Or(f.offerWait, offerWait)
}

// awaitTree waits until operations run over switches, but not for long: a
// manager may come up later than its hosts.
func awaitTree(ctx context.Context, comm *hostlib.Communicator, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if via, _ := comm.Transport(); via == hostlib.Offload {
			return
		}
		select {
		case <-tick.C:
		case <-comm.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// joining returns how the host joins.
func (f *runFlags) joining(cmd *cobra.Command, c timing.Config) (config hostlib.Config, with hooks.Hooks, err error) {
	host, process := field.SplitProcess(f.host)
	config = hostlib.Config{
		Name: host, Process: process, Listen: f.listen, OfferWait: f.offerWaitOf(c), Window: f.bench.window, Log: f.bench.logger(cmd),
		AllowPlaintext: true, // networks of one's own, such as namespaces
	}
	if c.Transport != timing.Host {
		config.Manager = f.manager
	}
	if config.Manager == "" && c.Transport == timing.Offload {
		return config, with, fmt.Errorf("%w --transport offload: it takes a --manager", errUsage)
	}
	switch {
	case f.certificate != "" && f.key != "" && f.authority != "":
		config.TLS = &hostlib.TLS{Cert: f.certificate, Key: f.key, CA: f.authority}
	case f.certificate+f.key+f.authority != "":
		return config, with, fmt.Errorf("%w: --certificate, --key and --authority go together", errUsage)
	}
	if f.data != "" {
		if config.Data, err = netip.ParseAddr(f.data); err != nil {
			return config, with, fmt.Errorf("%w --data: %w", errUsage, err)
		}
	}
	for _, a := range f.rails {
		config.Rails = append(config.Rails, hostlib.Rail{Address: a})
	}
	if f.offerWait < 0 {
		return config, with, fmt.Errorf("%w --offer-wait %v: it must not be negative", errUsage, f.offerWait)
	}
	if err := checkLoss(f.loss); err != nil {
		return config, with, err
	}
	if f.loss > 0 {
		with.Data = func(c transport.Conn) transport.Conn {
			lossy, err := transport.WithFaults(c, transport.Faults{Loss: f.loss, Seed: field.SeedOf(f.host)})
			if err != nil {
				return c // checkLoss has not found that
			}
			return lossy
		}
	}
	if f.without != "" {
		if with.Without, err = transport.ParseFeatures(f.without); err != nil {
			return config, with, fmt.Errorf("%w --without: %w", errUsage, err)
		}
	}
	return config, with, nil
}

func run(cmd *cobra.Command, f *runFlags) (err error) {
	c, err := f.bench.config()
	if err != nil {
		return err
	}
	config, with, err := f.joining(cmd, c)
	if err != nil {
		return err
	}
	file, err := os.Open(f.members)
	if err != nil {
		return err
	}
	members, err := field.ReadMembers(file, f.members)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	ctx, cancel := f.bench.within(cmd.Context())
	defer cancel()
	h, err := hostlib.Join(hooks.With(ctx, with), config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(context.Background())) }()
	c.Forming = func(number int) timing.Forming {
		return &forming{run: f, config: config, members: members, options: c.GroupOptions(), number: number}
	}
	comm, err := h.Communicator(ctx, f.name, members, c.GroupOptions()...)
	if err != nil {
		return err
	}
	if f.manager != "" && c.Transport != timing.Host {
		awaitTree(ctx, comm, f.offerWaitOf(c))
	}
	if f.gauge {
		stop, err := field.ServeGauge(field.HostTraffic(comm))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if f.turns != "" {
		return f.play(ctx, h, comm, members, c)
	}
	out := cmd.OutOrStdout()
	if comm.Rank() != 0 {
		out = io.Discard
	}
	return measure(ctx, comm, c, f.mark(cmd), out, f.marks && c.Pace == timing.Stream)
}

// play takes the member's turns, and leaves all groups.
func (f *runFlags) play(ctx context.Context, h *hostlib.Host, comm *hostlib.Communicator, members []hostlib.Member, c timing.Config) error {
	all := []*hostlib.Communicator{comm}
	form := func(variant string, options ...hostlib.GroupOption) (*hostlib.Communicator, error) {
		other, err := h.Communicator(ctx, f.name+"-"+variant, members, options...)
		if err != nil {
			return nil, err
		}
		if variant == timing.Chosen && f.manager != "" {
			awaitTree(ctx, other, f.offerWaitOf(c))
		}
		all = append(all, other)
		return other, nil
	}
	err := turn.Join(f.turns, comm.Rank(), timing.Player(ctx, comm, form, c))
	for _, comm := range slices.Backward(all) {
		err = errors.Join(err, comm.Leave(ctx))
	}
	return err
}

// measure writes what the member measures, with the spans of its operations if
// these are wanted, and leaves the group.
func measure(ctx context.Context, comm *hostlib.Communicator, c timing.Config, mark timing.Mark, out io.Writer, spans bool) error {
	if _, err := fmt.Fprintln(out, timing.Header); err != nil {
		return err
	}
	err := timing.Member(ctx, comm, c, mark, func(r timing.Row) error {
		if spans {
			if _, err := fmt.Fprintln(out, field.FormatSpans(r.Spans)); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(out, r)
		return err
	})
	if err != nil && !errors.Is(err, timing.ErrWrong) && !errors.Is(err, timing.ErrTransport) {
		return err
	}
	return errors.Join(err, comm.Leave(ctx)) // all members have come this far
}

// mark returns what notifies another process of the measurement's marks, and waits
// for its word; nil where none wants to know.
func (f *runFlags) mark(cmd *cobra.Command) timing.Mark {
	if !f.marks {
		return nil
	}
	answers := bufio.NewReader(cmd.InOrStdin())
	return func(size int, begins bool) error {
		at := "ends"
		if begins {
			at = "begins"
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), "MARK", at, size); err != nil {
			return err
		}
		_, err := answers.ReadString('\n')
		return err
	}
}
