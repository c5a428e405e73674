package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/peers"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// peersFlags are the flags of peers as they are written.
type peersFlags struct {
	cfg            peers.Config
	rows           []string
	format, prefix string
	window         uint32
	processes      int
	lab            netlab.Config
	timeout        time.Duration
	verbose        bool
}

func newPeers() *cobra.Command {
	f := peersFlags{cfg: peers.DefaultConfig()}
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "Compare with Open MPI, MPICH and Gloo (as root)",
		Long: `peers builds a fabric for each rate, as the command fabric does, and runs Tributary,
Open MPI (default algorithm, ring, Rabenseifner), MPICH and Gloo (ring and bcube)
on it, over TCP. All start once and take turns for each row, round after round;
the others block. Rows of other collectives than allreduce have Tributary, Open MPI
and MPICH: reduce, broadcast, barrier, and gather, scatter and alltoall by the size of
a piece, allgather, reduce-scatter and scan by that of the vector. tributary-hosts is
Tributary by algorithms of hosts (hostlib.OnHosts). It reports medians, tails, hosts' processor time, and the ratio
of Tributary's median to that of the best peer of the row.

The selected peers need Debian's openmpi-bin libopenmpi-dev mpich libmpich-dev
libgloo-dev gcc g++. A peer that fails, or exceeds --limit, is left out. All rows
and peers take less than ten minutes, half of it for MPICH, which polls.`,
		Example: `  collbench peers
  collbench peers --peers openmpi,gloo --rows 16MiB@200mbit --rounds 5
  collbench peers --peers openmpi --rows allgather:1MiB@200mbit,alltoall:64KiB@200mbit,barrier:8@unshaped
  collbench peers --format json > peers.json; collbench report peers.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPeers(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.rows, "rows", peers.AllRows, "`rows` to measure, each a size and a rate of links, and before them perhaps a collective and a colon")
	flags.StringSliceVar(&f.cfg.Peers, "peers", f.cfg.Peers, "`peers` to compare with")
	flags.BoolVar(&f.cfg.SkipMissing, "skip-missing", false, "leave out peers that are not installed")
	flags.BoolVar(&f.cfg.Protected, "protected", false, "measure Tributary with plain (tree), authenticated and encrypted packets, each on a communicator of its own, too")
	flags.BoolVar(&f.cfg.Kernel, "kernel", false, "measure Tributary on switches that reduce in their kernels, on a fabric of their own, too")
	flags.BoolVar(&f.cfg.Numbers, "numbers", false, "measure Tributary with plain (tree), reproducible and compressed sums, each on a communicator of its own, too")
	flags.IntVar(&f.cfg.Rounds, "rounds", f.cfg.Rounds, "turns of each contestant in each row: one `number`")
	flags.DurationVar(&f.cfg.Turn, "turn", f.cfg.Turn, "approximate `time` of a turn; at least one operation is timed")
	flags.DurationVar(&f.cfg.Limit, "limit", f.cfg.Limit, "`time` after which a silent peer is left out")
	process.OneOf(cmd, &f.format, "format", "output `format`: text, csv, or json, a line each", "text", "csv", "json")
	flags.IntVar(&f.lab.HostsPerLeaf, "hosts-per-leaf", 4, "`hosts` at each leaf")
	flags.IntVar(&f.lab.Leaves, "leaves", 2, "`leaves`")
	flags.IntVar(&f.lab.Spines, "spines", 2, "`spines`")
	flags.IntVar(&f.processes, "processes", 1, "`processes` of each host, 1 to 64, which share memory; with --peers openmpi alone")
	flags.StringVar(&f.lab.Prefix, "prefix", "cbp", "`prefix` of the namespaces' names")
	flags.Uint32Var(&f.window, "window", 0, "most `chunks` of Tributary's in flight, a power of two; 0: the library's default")
	flags.DurationVar(&f.timeout, "timeout", 20*time.Minute, "give up after this `time`")
	flags.BoolVar(&f.verbose, "verbose", false, "report what all parts of the fabric do")
	return cmd
}

func runPeers(cmd *cobra.Command, f *peersFlags) (err error) {
	if f.cfg.Rows, err = peers.ParseRows(f.rows, process.ParseSize); err != nil {
		return err
	}
	if f.processes < 1 || f.processes > 64 {
		return fmt.Errorf("%w --processes %d: want 1 to 64", errUsage, f.processes)
	}
	if others := slices.ContainsFunc(f.cfg.Peers, func(p string) bool { return p != "openmpi" }); f.processes > 1 && others {
		return fmt.Errorf("%w --processes: only --peers openmpi has several processes of a host", errUsage)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	b := benchFlags{timeout: f.timeout}
	ctx, cancel := b.within(cmd.Context())
	defer cancel()
	fc := field.Config{Lab: f.lab, Processes: f.processes, Program: []string{program}, Verbose: f.verbose, Log: cmd.ErrOrStderr()}
	args := []string{"--transport", string(timing.Offload), "--timeout", f.timeout.String(), "--window", fmt.Sprint(f.window)}
	begun := time.Now()
	err = peers.Compare(ctx, f.cfg, fc, args, writerOf(f.format, cmd.OutOrStdout()))
	fmt.Fprintf(cmd.ErrOrStderr(), "it took %v\n", time.Since(begun).Round(time.Second))
	return err
}

// writerOf returns what writes comparisons in a format.
func writerOf(format string, out io.Writer) func(*report.Comparison) error {
	switch format {
	case "json":
		return func(c *report.Comparison) error { return json.NewEncoder(out).Encode(c) }
	case "csv":
		head := report.ComparisonHeader + "\n"
		return func(c *report.Comparison) error {
			_, err := io.WriteString(out, head+c.CSV())
			head = ""
			return err
		}
	}
	return func(c *report.Comparison) error {
		_, err := io.WriteString(out, c.Text())
		return err
	}
}

func newNodeShell() *cobra.Command {
	var namespaces string
	cmd := &cobra.Command{
		Use: "shell", Short: "Run a command on a host, as a remote shell does",
		RunE: func(_ *cobra.Command, words []string) error {
			known, err := readNamespaces(namespaces)
			if err != nil {
				return err
			}
			return field.Shell(known, words)
		},
	}
	cmd.Flags().StringVar(&namespaces, "namespaces", "", "`file` with a line for each host: its address, its namespace")
	return cmd
}

func readNamespaces(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 2 {
			return nil, errors.New(path + ": want an address and a namespace in each line")
		}
		all[words[0]] = words[1]
	}
	return all, nil
}
