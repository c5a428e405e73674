package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/collbench/bench"
	"github.com/tributary-fabric/tributary/cmd/collbench/field"
	"github.com/tributary-fabric/tributary/internal/netlab"
	"github.com/tributary-fabric/tributary/pathsel"
)

// fabricFlags are the flags of fabric as they are written.
type fabricFlags struct {
	bench                        benchFlags
	prefix                       string
	hostsPerLeaf, leaves, spines int
	loss                         float64
}

func newFabric() *cobra.Command {
	var f fabricFlags
	cmd := &cobra.Command{
		Use:   "fabric",
		Short: "Measure on a fabric of network namespaces (as root)",
		Long: `fabric builds a leaf-spine fabric out of this machine's network namespaces, with
links that carry --rate in each direction, and runs an offload manager, an agent
for every switch and a member for every host in it, each a process of its own.
It tells what the kernel counted on the tree's links and on the others, and
removes everything in the end, also when it is interrupted, and what a run that
was killed has left.`,
		Example: "  collbench fabric --hosts-per-leaf 4 --leaves 2 --spines 2 --rate 200mbit --bytes 8,65536,1MiB,16MiB --iterations 200,30,10,3",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runFabric(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.hostsPerLeaf, "hosts-per-leaf", 4, "`hosts` at each leaf")
	flags.IntVar(&f.leaves, "leaves", 2, "`leaves`")
	flags.IntVar(&f.spines, "spines", 2, "`spines`")
	flags.Float64Var(&f.loss, "loss", 0, "`share` of the packets of trees that is lost wherever one is sent, from 0 to 1")
	flags.StringVar(&f.prefix, "prefix", "cb", "`prefix` of the namespaces' names")
	f.bench.add(flags)
	flags.Lookup("rate").Usage = "`rate` of every link in each direction, such as 200mbit; by default as fast as the machine"
	return cmd
}

// config returns what fabric to run, by the program that this is.
func (f *fabricFlags) config(c bench.Config, log io.Writer) (field.Config, error) {
	if err := checkLoss(f.loss); err != nil {
		return field.Config{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return field.Config{}, err
	}
	return field.Config{
		Lab: netlab.Config{
			Prefix: f.prefix, HostsPerLeaf: f.hostsPerLeaf, Leaves: f.leaves, Spines: f.spines, Rate: c.Rate,
		},
		Program: []string{program}, Loss: f.loss, Verbose: f.bench.verbose, Log: log,
	}, nil
}

func runFabric(cmd *cobra.Command, f *fabricFlags) (err error) {
	c, err := f.bench.config()
	if err != nil {
		return err
	}
	log := cmd.ErrOrStderr()
	fc, err := f.config(c, log)
	if err != nil {
		return err
	}
	ctx, cancel := f.bench.within(cmd.Context())
	defer cancel()
	fmt.Fprintf(log, "building %d leaves with %d hosts each and %d spines, links of %s\n", f.leaves, f.hostsPerLeaf, f.spines, rateName(f.bench.rate))
	fabric, err := field.Start(fc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fabric.Close()) }()
	w := &watch{ctx: ctx, fabric: fabric, cfg: c, clean: f.loss == 0, log: log}
	err = fabric.Measure(ctx, f.bench.arguments(), w.mark, func(line string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
		return err
	})
	return errors.Join(err, w.err())
}

func rateName(rate string) string {
	if rate == "" {
		return "no limit"
	}
	return rate
}

// errMisplaced: a link's traffic is not that of the tree.
var errMisplaced = errors.New("the tree is not where it was planned")

// watch compares what links carry with where the tree is.
type watch struct {
	ctx    context.Context
	fabric *field.Fabric
	cfg    bench.Config
	clean  bool // no packet is lost on purpose
	log    io.Writer

	sizes  int // measurements so far
	before netlab.Counts
	tree   pathsel.Tree
	noTree error
	alarms int
}

// mark is told when a measurement begins and ends.
func (w *watch) mark(size int, begins bool) (err error) {
	if begins {
		fmt.Fprintf(w.log, "measuring %d bytes\n", size)
		w.tree, w.noTree = pathsel.Tree{}, field.ErrNoTree
		if w.cfg.Way != bench.Host {
			w.tree, w.noTree = w.fabric.Tree(w.ctx)
		}
		w.before, err = w.fabric.Lab().Counts()
		return err
	}
	after, err := w.fabric.Lab().Counts()
	if err != nil {
		return err
	}
	iterations := w.cfg.Iterations[min(w.sizes, len(w.cfg.Iterations)-1)]
	w.sizes++
	w.account(after.Since(w.before), uint64(size)*uint64(iterations))
	return nil
}

// Slack of the links, for barriers, probes, and the host tree's connections.
const (
	slackBytes = 256 << 10
	slackShare = 16 // of what was carried, one of so many
)

// account tells what links carried of so many bytes of vectors.
func (w *watch) account(counts netlab.Counts, payload uint64) {
	if w.noTree != nil {
		fmt.Fprintf(w.log, "  no tree: %v\n", w.noTree)
		return
	}
	g := w.fabric.Lab().Topology()
	on := map[int]bool{}
	for l := range w.tree.Links() {
		on[int(l)] = true
	}
	carried := make([]pathsel.Carried, len(counts))
	least, most, stray, dropped := ^uint64(0), uint64(0), uint64(0), uint64(0)
	for l, ends := range counts {
		carried[l] = pathsel.Carried{ends[0].Bytes, ends[1].Bytes}
		dropped += ends[0].Dropped + ends[1].Dropped
		if on[l] {
			least, most = min(least, ends[0].Bytes, ends[1].Bytes), max(most, ends[0].Bytes, ends[1].Bytes)
		} else {
			stray = max(stray, ends[0].Bytes, ends[1].Bytes)
		}
	}
	fmt.Fprintf(w.log, "  tree with root %s: each of its links carried %d to %d bytes in each direction, others %d at most; %d packets found a queue full\n",
		g.Name(w.tree.Root()), least, most, stray, dropped)
	if payload == 0 || w.cfg.Collective != bench.Allreduce {
		return
	}
	fmt.Fprintf(w.log, "  that is %.4f to %.4f of the vectors' bytes\n", float64(least)/float64(payload), float64(most)/float64(payload))
	for _, m := range pathsel.Audit(g, []pathsel.Tree{w.tree}, carried, pathsel.AuditBounds{
		Least: payload, Stray: payload/slackShare + slackBytes,
	}) {
		w.alarms++
		fmt.Fprintf(w.log, "  ALARM: %v\n", m)
	}
}

// err reports that a link's traffic was not that of the tree, where it had to
// be.
func (w *watch) err() error {
	if w.alarms > 0 && w.clean && w.cfg.Way == bench.Offload {
		return fmt.Errorf("%w: %d alarms", errMisplaced, w.alarms)
	}
	return nil
}
