package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// errUsage is wrapped by errors about flags.
var errUsage = process.ErrUsage

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "collbench",
		Short: "Time collective operations, and check their results",
		Long: `collbench times collective operations and checks their results. The commands
embedded, run and fabric write a line of CSV for each size to standard output:

  ` + timing.Header + `

An operation's time is that of its slowest member; goodput is the vector's bits
divided by the median time, as a share of a member's link. Progress goes to
standard error. The exit status is 1 if a result is wrong.`,
		SilenceUsage:  true,
		SilenceErrors: true, // main writes them
	}
	root.AddCommand(newEmbedded(), newRun(), newFabric(), newPeers(), newCosts(), newPingpong(), newBandwidth(), newRails(), newRevoke(), newReport(), newNode(), newMembership(), newGroups(), newPlan(), newScaling())
	return process.Root(root)
}

// benchFlags are the flags that say what is measured.
type benchFlags struct {
	timing.Config
	collective, transport, pace, rate string
	bytes                             []string
	window                            uint32
	timeout                           time.Duration
	verbose                           bool
}

func (f *benchFlags) add(flags *pflag.FlagSet) {
	d := timing.DefaultConfig()
	flags.SortFlags = false
	flags.StringVar(&f.collective, "function", string(d.Collective), "collective `function`: allreduce, reduce, broadcast or barrier; gather, scatter, allgather, alltoall, reduce-scatter or scan; form, the forming of a communicator of hosts that have just joined; or scoll-broadcast, a server collective")
	process.Parsed(flags, &f.Function, "reduction", d.Function.String(), "reduction `function`, such as sum, min or bxor", reduce.ParseFunction)
	process.Parsed(flags, &f.Type, "type", d.Type.String(), "element `type`: "+listed(topology.AllTypes().List()), reduce.ParseType)
	flags.StringSliceVar(&f.bytes, "bytes", []string{"8", "65536", "1MiB", "16MiB"}, "`sizes` of each member's vector, such as 8,64KiB,16MiB")
	flags.IntSliceVar(&f.Iterations, "iterations", d.Iterations, "timed operations of each size: one `number`, or one a size")
	flags.StringVar(&f.transport, "transport", string(d.Transport), "`transport` that operations must use: offload, host or auto")
	flags.StringVar(&f.pace, "pace", string(d.Pace), "checked: check each result; steady: reuse vectors without checks; stream: also without a barrier before each operation")
	flags.StringVar(&f.rate, "rate", "", "`rate` of a member's link, such as 200mbit, for the goodput")
	flags.Uint64Var(&f.Seed, "seed", d.Seed, "seed of the vectors' elements")
	flags.Uint32Var(&f.window, "window", 0, "most `chunks` in flight, a power of two; 0: the library's default")
	flags.IntVar(&f.Stripes, "stripes", 1, "collection `trees` (stripes) for long vectors, over disjoint links between switches; -1: one over each rail of the hosts")
	flags.IntVar(&f.Roots, "roots", 1, "`roots` for a reduction, each for a part of the members")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "give up after this `time`")
	flags.BoolVar(&f.verbose, "verbose", false, "log the activity of all parts of the fabric")
}

// config turns the flags into what they ask for.
func (f *benchFlags) config() (c timing.Config, err error) {
	c = f.Config
	c.Collective, c.Transport, c.Pace = timing.Collective(f.collective), timing.Transport(f.transport), timing.Pace(f.pace)
	if f.transport == "host-tree" { // as results call it
		c.Transport = timing.Host
	}
	if c.Rate, err = netlab.ParseRate(f.rate); err != nil {
		return c, fmt.Errorf("%w --rate: %w", errUsage, err)
	}
	if c.Bytes, err = parseSizes(f.bytes); err != nil {
		return c, err
	}
	if c.Stripes > manager.MaxBundle || c.Roots > manager.MaxBundle {
		return c, fmt.Errorf("%w: %d stripes, %d roots, want %d at most", errUsage, c.Stripes, c.Roots, manager.MaxBundle)
	}
	if err := checkWindow(f.window); err != nil {
		return c, err
	}
	if f.timeout <= 0 {
		return c, fmt.Errorf("%w --timeout %v: it must be positive", errUsage, f.timeout)
	}
	return c, c.Validate()
}

// arguments returns the flags as they are given to another process.
func (f *benchFlags) arguments() []string {
	return []string{
		"--function", f.collective, "--reduction", f.Function.String(), "--type", f.Type.String(), "--bytes", strings.Join(f.bytes, ","),
		"--iterations", commas(f.Iterations), "--transport", f.transport, "--pace", f.pace, "--rate", f.rate,
		"--seed", fmt.Sprint(f.Seed), "--window", fmt.Sprint(f.window),
		"--stripes", fmt.Sprint(f.Stripes), "--roots", fmt.Sprint(f.Roots), "--timeout", f.timeout.String(),
	}
}

// commas returns numbers as a flag has them.
func commas(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// within returns a context that ends after the time that the flags allow.
func (f *benchFlags) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("it was not done within %v (--timeout)", f.timeout))
}

// logger returns where parts of the fabric log: warnings, or all.
func (f *benchFlags) logger(cmd *cobra.Command) *slog.Logger { return newLogger(cmd, f.verbose) }

func newLogger(cmd *cobra.Command, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// checkWindow reports a window that no group can have; 0 is the library's default.
func checkWindow(n uint32) error {
	if n&(n-1) != 0 || n > switchreduce.MaxWindow {
		return fmt.Errorf("%w --window %d: a window is a power of two up to %d", errUsage, n, switchreduce.MaxWindow)
	}
	return nil
}

// late says that it was --timeout that ended what failed, if it was.
func late(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// parseSizes reads --bytes.
func parseSizes(texts []string) (all []int, err error) {
	for _, text := range texts {
		n, err := process.ParseSize(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%w --bytes: %w", errUsage, err)
		}
		all = append(all, n)
	}
	return all, nil
}

func listed[T fmt.Stringer](all []T) string {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.String()
	}
	return strings.Join(names, ", ")
}

// checkLoss reports a share of packets that is none.
func checkLoss(p float64) error {
	if !(p >= 0 && p < 1) {
		return fmt.Errorf("%w --loss %v: it must be at least 0 and less than 1", errUsage, p)
	}
	return nil
}
