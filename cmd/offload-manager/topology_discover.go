package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/internal/whole/picture"
	"github.com/tributary-fabric/tributary/topology"
)

// errIncomplete: a map in which something is missing, or contradicts itself.
var errIncomplete = errors.New("the map is not complete")

const (
	quiet = time.Second            // the map is that of the fabric when nothing changes for so long
	look  = 100 * time.Millisecond // how often it is looked at
)

// discoverFlags are those of topology discover.
type discoverFlags struct {
	seeds, allow        []string
	port                uint16
	tls                 settings.TLS
	timeout             time.Duration
	as, output, picture string
	name                string
}

func newTopologyDiscover() *cobra.Command {
	f := &discoverFlags{}
	var config string
	cmd := &cobra.Command{
		Use:   "discover --seed ADDRESS | --config FILE",
		Short: "Discover a fabric without a manager, and write it as a topology file",
		Long: `discover connects to switch agents by gNMI, follows the addresses that their LLDP
neighbours announce, and writes the map as a topology file when nothing more is
found. It changes nothing. Progress, and what is missing or contradicts itself, is on
standard error; then the exit status is not 0. docs/discovery.md has the rules.

--config takes seeds, allowed prefixes, certificates and the operator's part from a
manager's configuration file; other flags come first.`,
		Example: "  offload-manager topology discover --seed 10.0.9.2:7410 --allow 10.0.9.0/24 --output fabric.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.configOf(config)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.seeds, "seed", nil, "`address` (host:port) of an agent where to begin; may be repeated")
	flags.StringSliceVar(&f.allow, "allow", nil, "`network` whose announced addresses may be dialled; may be repeated (default: the seeds' /24, of IPv6 /64)")
	flags.Uint16Var(&f.port, "port", 0, "TCP `port` of gNMI at switches without an agent (default: they are not dialled)")
	flags.StringVar(&config, "config", "", "configuration `file` of a manager")
	addTLS(flags, &f.tls)
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "write what is known after this `time`")
	flags.StringVar(&f.name, "name", "", "name of the fabric (default: discovered)")
	process.OneOf(cmd, &f.as, "as", "output format: yaml or json", "yaml", "json")
	flags.StringVar(&f.output, "output", "", "`file` to write (default: standard output)")
	flags.StringVar(&f.picture, "picture", "", "`file` for a picture as well, as SVG")
	return cmd
}

// configOf returns what to discover.
func (f *discoverFlags) configOf(config string) (discoverer.Config, error) {
	c := discoverer.Config{}
	if config != "" {
		m, err := settings.ReadManagerFile(config)
		if err != nil {
			return c, err
		}
		if d, err := m.Discovery.Config(); err != nil {
			return c, err
		} else if d != nil {
			c = *d
		}
		if m.Graph.Nodes() > 0 {
			c.Operator = m.Graph
		}
		if f.tls == (settings.TLS{}) {
			f.tls = m.TLS
		}
	}
	for _, s := range f.seeds {
		if err := settings.CheckAddress(s); err != nil {
			return c, fmt.Errorf("%w --seed: %w", errUsage, err)
		}
	}
	if len(f.seeds) > 0 {
		c.Core.Seeds = f.seeds
	}
	if len(c.Core.Seeds) == 0 {
		return c, fmt.Errorf("%w: no --seed, and none in a --config", errUsage)
	}
	for _, a := range f.allow {
		p, err := settings.ParsePrefix(a)
		if err != nil {
			return c, fmt.Errorf("%w --allow: %w", errUsage, err)
		}
		c.Core.Allow = append(c.Core.Allow, p)
	}
	if len(c.Core.Allow) == 0 {
		c.Core.Allow = near(c.Core.Seeds)
	}
	c.Core.Port = cmp.Or(f.port, c.Core.Port)
	c.Core.Confirm = quiet / 2 // what is missing then is missing
	c.Core.Settle = quiet / 4
	var err error
	c.Trust, err = trustOf(f.tls)
	return c, err
}

// near returns the networks around addresses.
func near(seeds []string) (all []netip.Prefix) {
	for _, s := range seeds {
		host, _, _ := net.SplitHostPort(s) // which was checked
		a, err := netip.ParseAddr(host)
		if err != nil {
			continue // a name
		}
		bits := 24
		if a.Is6() {
			bits = 64
		}
		if p, err := a.Prefix(bits); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// run discovers, and writes the map.
func (f *discoverFlags) run(ctx context.Context, c discoverer.Config, out, errs io.Writer) error {
	if f.timeout <= 0 {
		return fmt.Errorf("%w --timeout %v: it must be positive", errUsage, f.timeout)
	}
	d, err := discoverer.Start(c)
	if err != nil {
		return err
	}
	defer d.Close()
	s, err := settle(ctx, d, f.timeout, errs)
	if err != nil {
		return err
	}
	g, down, err := s.Graph(cmp.Or(f.name, "discovered"))
	if err != nil {
		return err
	}
	if g.Nodes() > 0 { // otherwise there is nothing to write, and what was there stays
		if err := f.write(out, g, down, s.Alarms); err != nil {
			return err
		}
	}
	return summary(errs, g, s)
}

// settle waits until nothing changes any more, and reports how far it has come.
func settle(ctx context.Context, d *discoverer.Discoverer, timeout time.Duration, errs io.Writer) (s discoverer.State, err error) {
	start := time.Now()
	var last discovery.Counts
	still := start
	for {
		if s, err = d.State(ctx); err != nil {
			return s, err
		}
		now := time.Now()
		if s.Counts != last || !s.Settled {
			still = now
		}
		if s.Counts.Connected != last.Connected || s.Counts.Links != last.Links {
			fmt.Fprintf(errs, "%5.1f s: %d of %d targets connected, %d nodes, %d links\n", now.Sub(start).Seconds(), s.Counts.Connected, s.Counts.Targets, s.Counts.Nodes, s.Counts.Links)
		}
		last = s.Counts
		if now.Sub(still) >= quiet || now.Sub(start) >= timeout {
			return s, nil
		}
		if err := runner.Pause(ctx, look); err != nil {
			return s, err
		}
	}
}

// write writes the topology file, and the picture.
func (f *discoverFlags) write(out io.Writer, g *topology.Graph, down []topology.Change, alarms []discovery.Alarm) error {
	if f.picture != "" {
		o, err := topology.NewOverlay(g).With(down...)
		if err != nil {
			return err
		}
		scene := picture.Scene{View: o.View()}
		for _, a := range alarms {
			scene.Alarms = append(scene.Alarms, picture.Alarm{At: []string{a.Places[0].Node, a.Places[1].Node}, Text: a.String()})
		}
		var b bytes.Buffer
		if err := picture.SVG(&b, "Fabric "+g.Fabric(), scene); err != nil {
			return err
		}
		if err := process.WriteFile(f.picture, b.Bytes()); err != nil {
			return fmt.Errorf("--picture: %w", err)
		}
	}
	return (&importFlags{as: f.as, output: f.output}).write(out, g)
}

// summary reports what was found, and the error is what was not.
func summary(errs io.Writer, g *topology.Graph, s discoverer.State) error {
	for _, a := range s.Waiting {
		fmt.Fprintf(errs, "no answer: %s\n", a)
	}
	for i := range s.Alarms {
		fmt.Fprintln(errs, s.Alarms[i])
	}
	downs := 0
	for i := range s.Links {
		if !s.Links[i].Up {
			downs++
		}
	}
	fmt.Fprintf(errs, "%d hosts, %d switches of which %d have an agent, %d links of which %d are down\n",
		g.Hosts(), g.Switches(), len(s.Agents()), g.Links(), downs)
	switch {
	case len(s.Waiting) > 0 || len(s.Alarms) > 0:
		return fmt.Errorf("%w: %s without an answer, %s", errIncomplete, printable.Count(len(s.Waiting), "target", "targets"), printable.Count(len(s.Alarms), "alarm", "alarms"))
	case !s.Settled:
		return fmt.Errorf("%w: it still changes; give more --timeout", errIncomplete)
	}
	return nil
}
