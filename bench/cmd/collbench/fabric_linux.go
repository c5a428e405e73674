package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// fabricFlags are the flags of fabric as they are written.
type fabricFlags struct {
	bench                        benchFlags
	prefix, format, profiles     string
	hostsPerLeaf, leaves, spines int
	rails                        int
	cut                          string
	loss                         float64
	trunkRate                    string
	groups                       int
	besideTCP, tls, kernel       bool
	scoll                        scollFlags
}

func newFabric() *cobra.Command {
	var f fabricFlags
	cmd := &cobra.Command{
		Use:   "fabric",
		Short: "Measure on a fabric of network namespaces (as root)",
		Long: `fabric builds a leaf-spine fabric of network namespaces on this machine, with links
of --rate in each direction, and runs an offload manager, an agent for every switch
and a member for every host in it, each as a process. It reports the costs of each
measurement and the kernel's counters of the tree's links and of others. At the
end, also when interrupted, it removes everything, including the remains of a
killed run.

Processor time, allocations, packets and system calls are reported for the
processes of hosts and for those of switches. --pace steady excludes the
preparation and check of vectors. Columns:

  ` + report.Header,
		Example: `  collbench fabric --rate 200mbit --bytes 8,65536,1MiB,16MiB --iterations 200,30,10,3
  collbench fabric --rate 200mbit --bytes 16MiB --iterations 5 --groups 2
  collbench fabric --bytes 16MiB --rate 400mbit --trunk-rate 200mbit --stripes 2
  collbench fabric --bytes 1MiB --iterations 400 --rate 200mbit --leaves 2 --spines 0 --host-rails 2 --stripes -1 --transport auto --cut "h1.rail0 down@2s up@4s"
  collbench fabric --bytes 16MiB --pace steady --cpuprofile profiles`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.bench.collective == scollFunction {
				return runScollFabric(cmd, &f)
			}
			if (f.groups > 1 || f.besideTCP) && !cmd.Flags().Changed("pace") {
				f.bench.pace = string(timing.Stream)
			}
			return runFabric(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.hostsPerLeaf, "hosts-per-leaf", 4, "`hosts` at each leaf")
	flags.IntVar(&f.leaves, "leaves", 2, "`leaves`")
	flags.IntVar(&f.spines, "spines", 2, "`spines`")
	flags.IntVar(&f.rails, "host-rails", 1, "`leaves` that each host has a link to: the leaves are in pods of so many")
	flags.StringVar(&f.cut, "cut", "", "`schedule` of hosts' links that fail and recover, as of bandwidth, such as \"h1.rail0 unplug@2s up@5s\"; what the links of host h0 carry meanwhile is reported")
	flags.Float64Var(&f.loss, "loss", 0, "`share` of the trees' packets that each sender loses, from 0 to 1")
	flags.IntVar(&f.groups, "groups", 1, "`groups` of all hosts that measure at once, by default at --pace stream; their shares of a link are reported")
	flags.BoolVar(&f.besideTCP, "beside-tcp", false, "run a TCP stream from the first host to the last meanwhile, and report shares")
	flags.BoolVar(&f.tls, "tls", false, "use certificates and TLS between hosts; needs --transport host")
	flags.BoolVar(&f.kernel, "kernel", false, "switches reduce in their kernels what these can, such as sums of --type int32 or block32")
	flags.StringVar(&f.profiles, "cpuprofile", "", "`directory` for profiles for go tool pprof, one for each size and process, such as hosts-SIZE-h0.pprof")
	process.OneOf(cmd, &f.format, "format", "output `format`: csv, or json, a line each", "csv", "json")
	flags.StringVar(&f.trunkRate, "trunk-rate", "", "`rate` of the links between switches (default: --rate)")
	flags.StringVar(&f.prefix, "prefix", "cb", "`prefix` of the namespaces' names")
	f.bench.add(flags)
	f.scoll.add(flags)
	flags.Lookup("rate").Usage = "`rate` of every link in each direction, such as 200mbit; by default as fast as the machine"
	return cmd
}

// check reports what is wrong with the flags beside those of a measurement.
func (f *fabricFlags) check(c timing.Config) error {
	switch {
	case f.groups < 1 || f.groups > field.MaxGroups:
		return fmt.Errorf("%w --groups %d: 1 to %d can measure at once", errUsage, f.groups, field.MaxGroups)
	case f.tls && c.Transport != timing.Host:
		return fmt.Errorf("%w --tls: the fabric's manager has no certificate, so that it takes --transport host", errUsage)
	case (f.groups > 1 || f.besideTCP) && c.Rate == 0:
		return fmt.Errorf("%w --groups, --beside-tcp: there is no link to share without a --rate", errUsage)
	case (f.groups > 1 || f.besideTCP) && (c.Pace != timing.Stream || c.Collective != timing.Allreduce):
		return fmt.Errorf("%w --groups, --beside-tcp: shares are those of allreduces at --pace stream", errUsage)
	}
	return checkLoss(f.loss)
}

// config returns what fabric to run, by the program that this is.
func (f *fabricFlags) config(c timing.Config, log io.Writer) (field.Config, error) {
	program, err := os.Executable()
	if err != nil {
		return field.Config{}, err
	}
	trunks, err := netlab.ParseRate(f.trunkRate)
	if err != nil {
		return field.Config{}, fmt.Errorf("%w --trunk-rate: %w", errUsage, err)
	}
	return field.Config{
		Lab: netlab.Config{
			Prefix: f.prefix, HostsPerLeaf: f.hostsPerLeaf, Leaves: f.leaves, Spines: f.spines, HostRails: f.rails, Rate: c.Rate, TrunkRate: trunks,
		},
		Program: []string{program}, TLS: f.tls, Kernel: f.kernel, Loss: f.loss, Verbose: f.bench.verbose, Log: log,
	}, nil
}

func runFabric(cmd *cobra.Command, f *fabricFlags) error {
	c, err := f.bench.config()
	if err != nil {
		return err
	}
	if err := f.check(c); err != nil {
		return err
	}
	log := cmd.ErrOrStderr()
	fc, err := f.config(c, log)
	if err != nil {
		return err
	}
	if f.profiles != "" {
		if f.profiles, err = filepath.Abs(f.profiles); err != nil {
			return err
		}
		if err := os.MkdirAll(f.profiles, 0o755); err != nil {
			return err
		}
	}
	return f.on(cmd.Context(), fc, func(ctx context.Context, fabric *field.Fabric) error {
		return f.measure(ctx, cmd.OutOrStdout(), log, fabric, c)
	})
}

// on builds a fabric, has do use it for as long as a measurement may take, and
// removes it.
func (f *fabricFlags) on(ctx context.Context, fc field.Config, do func(context.Context, *field.Fabric) error) (err error) {
	ctx, cancel := f.bench.within(ctx)
	defer cancel()
	fmt.Fprintf(fc.Log, "building %d leaves with %d hosts each and %d spines, links of %s\n", f.leaves, f.hostsPerLeaf, f.spines, rateName(f.bench.rate))
	fabric, err := field.Start(fc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fabric.Close()) }()
	return do(ctx, fabric)
}

// measure runs the groups, and the stream, and writes what they report.
func (f *fabricFlags) measure(ctx context.Context, out, log io.Writer, fabric *field.Fabric, c timing.Config) error {
	w := &watch{ctx: ctx, fabric: fabric, cfg: c, clean: f.loss == 0, alone: f.groups == 1 && !f.besideTCP && (c.Stripes == 0 || c.Stripes == 1) && c.Roots <= 1, log: log}
	t := &teller{flags: f, fabric: fabric, cfg: c, out: out, log: log}
	if f.besideTCP {
		if err := fabric.StartStream(f.bench.timeout); err != nil {
			return err
		}
	}
	if f.format == "csv" {
		if _, err := fmt.Fprintln(out, report.Header); err != nil {
			return err
		}
	}
	end, err := f.startCuts(ctx, fabric, log)
	if err != nil {
		return err
	}
	err = fabric.Measure(ctx, field.Run{
		Args: f.bench.arguments(), Groups: f.groups, Profiles: f.profiles, Mark: w.mark, Take: t.take,
	})
	return errors.Join(err, w.err(), end())
}

func rateName(rate string) string {
	if rate == "" {
		return "no limit"
	}
	return rate
}

// teller writes what was measured.
type teller struct {
	flags    *fabricFlags
	fabric   *field.Fabric
	cfg      timing.Config
	out, log io.Writer
	together []field.Sample // of the groups, that have reported
}

// take is handed each group's part of each measurement.
func (t *teller) take(s field.Sample) error {
	g := t.fabric.Lab().Topology()
	m := report.Measurement{
		Kind:   report.KindMeasurement,
		Fabric: report.Fabric{Hosts: g.Hosts(), Switches: g.Switches(), Rate: t.cfg.Rate, Loss: t.flags.loss},
		Group:  s.Group, Groups: t.flags.groups, Pace: string(t.cfg.Pace), BesideTCP: t.flags.besideTCP, Row: s.Row,
		Elapsed: s.Elapsed, Hosts: s.Sides[field.Hosts], Switches: s.Sides[field.Switches], Machine: s.Machine,
	}
	if err := t.write(&m); err != nil {
		return err
	}
	t.together = append(t.together, s)
	if len(t.together) < t.flags.groups {
		return nil
	}
	defer func() { t.together = nil }()
	fmt.Fprint(t.log, m.Words())
	return t.share(m.Fabric)
}

// share reports how the groups and the stream have shared a link.
func (t *teller) share(fabric report.Fabric) error {
	if t.flags.groups == 1 && !t.flags.besideTCP {
		return nil
	}
	flows := make([]report.Flow, len(t.together))
	for _, s := range t.together {
		flows[s.Group] = report.Flow{Bytes: s.Row.Bytes, Spans: s.Spans}
	}
	c := report.Contention{
		Kind: report.KindContention, Fabric: fabric, Bytes: flows[0].Bytes, Shares: report.GroupShares(flows, fabric.Rate),
	}
	if t.flags.besideTCP {
		w := t.together[0].Window
		c.Shares = append(c.Shares, report.StreamShare(w.Sides[field.Stream].BytesIn, w.Elapsed.Seconds(), fabric.Rate))
	}
	c.Jain = report.Jain(c.Shares)
	fmt.Fprint(t.log, c.Words())
	if t.flags.format == "json" {
		return json.NewEncoder(t.out).Encode(&c)
	}
	return nil
}

func (t *teller) write(m *report.Measurement) error {
	if t.flags.format == "json" {
		return json.NewEncoder(t.out).Encode(m)
	}
	_, err := fmt.Fprintln(t.out, m)
	return err
}
