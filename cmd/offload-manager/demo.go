package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/demo"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// errUsage is wrapped by errors about flags.
var errUsage = process.ErrUsage

// demoFlags are the flags of demo as they are written.
type demoFlags struct {
	config  demo.Config
	bytes   process.Size
	timeout time.Duration
}

func newDemo() *cobra.Command {
	d := demo.DefaultConfig()
	f := demoFlags{bytes: process.Size(d.Bytes)}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run allreduces in the switches of a fabric in this process, and kill a switch",
		Long: `demo runs a whole fabric in this process: an offload manager, an agent for every
switch and a host library for every host, with real sockets on loopback. It runs
an allreduce that the switches reduce, a second one during which it kills the root
switch, and a third over hosts, checks every result, and reports the transports
and times. The exit status is 1 if a result is wrong.

--topology is a file (docs/topology.md), or one of

` + indented(topology.Specs),
		Example: "  offload-manager demo\n" +
			"  offload-manager demo --topology leaf-spine:4,4,2 --function max --type int64 --bytes 1MiB --picture tree.svg",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config.Fabric, "topology", d.Fabric, "the fabric: a specification or a `file`")
	process.FormerFlag(flags, "fabric", "topology")
	process.Parsed(flags, &f.config.Function, "function", d.Function.String(), "reduction `function`: "+listed(topology.AllFunctions().List()), reduce.ParseFunction)
	process.Parsed(flags, &f.config.Type, "type", d.Type.String(), "element `type`: "+listed(demo.Types()), reduce.ParseType)
	flags.Var(&f.bytes, "bytes", "`size` of each host's vector, such as 65536, 64KiB or 4MiB")
	flags.Uint64Var(&f.config.Seed, "seed", d.Seed, "seed of the vectors' elements")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "give up after this `time`")
	completeFabric(cmd)
	process.Choices(cmd, "type", names(demo.Types())...)
	process.Choices(cmd, "function", names(topology.AllFunctions().List())...)
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if f.timeout <= 0 {
			return fmt.Errorf("%w --timeout %v: it must be positive", errUsage, f.timeout)
		}
		f.config.Bytes = int(f.bytes)
		if err := f.config.Validate(); err != nil {
			return err
		}
		if err := o.begin(); err != nil {
			return err
		}
		defer o.end(&err)
		return runDemo(cmd, f.config, f.timeout, o)
	}
	return cmd
}

// grace is the time that a run which gave up has to end.
const grace = 5 * time.Second

func runDemo(cmd *cobra.Command, c demo.Config, timeout time.Duration, o *output) error {
	c.Progress = progress(cmd.ErrOrStderr())
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("it was not done within %v (--timeout)", timeout))
	defer cancel()
	report, err := within(ctx, func() (*demo.Report, error) { return demo.Run(ctx, c) })
	if err != nil {
		return err
	}
	err = o.write(cmd.OutOrStdout(), answer{report, report.WriteText, report.SVG})
	return errors.Join(err, report.Err())
}

// within runs f until ctx ends and, to end in good order, a little longer.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() { // it ends with the process, if not by itself
		v, err := f()
		done <- result{v, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		select {
		case r = <-done:
		case <-time.After(grace):
			r.err = ctx.Err()
		}
	}
	if r.err != nil && ctx.Err() != nil {
		r.err = fmt.Errorf("%w: %w", context.Cause(ctx), r.err)
	}
	return r.value, r.err
}

// progress returns what writes lines with the time since now before them.
func progress(w io.Writer) func(string) {
	begun := time.Now()
	return func(line string) {
		fmt.Fprintf(w, "%7.3f s  %s\n", time.Since(begun).Seconds(), line)
	}
}

func indented(lines string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(lines, "\n"), "\n", "\n  ")
}

func listed[T fmt.Stringer](all []T) string {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.String()
	}
	return strings.Join(names, ", ")
}
