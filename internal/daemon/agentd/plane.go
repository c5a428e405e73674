package agentd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/kernel"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/soft"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// planeConfigured reports what is wrong with the configuration of what reduces.
func (c Config) planeConfigured() error {
	if c.Target == nil {
		return c.soft().Validate()
	}
	if err := c.pipeline().Validate(); err != nil {
		return err
	}
	for i := range c.Ports {
		if err := c.Ports[i].Check(); err != nil {
			return err
		}
	}
	switch {
	case len(c.Target.Ports)+len(c.Ports) == 0:
		return fmt.Errorf("P4 target %s: no ports: give the interfaces that are its ports, or number, address and mac of each (ports)", c.Target.Address)
	case c.discovers() && c.Trust == nil && !c.AllowPlaintext:
		return fmt.Errorf("P4 target %s: its ports have addresses of a network: %w", c.Target.Address, rpc.ErrPlaintext)
	}
	remote, err := c.Target.Remote()
	switch open := remote && c.Target.TLS == nil; {
	case err != nil:
	case open && !c.AllowPlaintext:
		err = fmt.Errorf("P4Runtime server %s is not on this machine, and is talked to without encryption: give it certificates (p4runtime: tls), or allow that by plaintext", c.Target.Address)
	case open && c.Target.Login != (p4rt.Login{}):
		err = fmt.Errorf("P4Runtime server %s is not on this machine, and a password is not sent to it without encryption: give it certificates (p4runtime: tls)", c.Target.Address)
	}
	return err
}

// addresses returns those at which packets of trees arrive.
func (c Config) addresses() []netip.Addr {
	if c.Target == nil {
		return []netip.Addr{c.Data}
	}
	var all []netip.Addr
	for _, p := range c.Target.Ports {
		all = append(all, p.Addr)
	}
	return all
}

func (c Config) soft() soft.Config {
	return soft.Config{
		Switch: c.Switch, Data: c.Data, ReceiveBuffer: c.ReceiveBuffer, Chunk: c.Capability.Chunk,
		Without: c.Without, Faults: c.Faults,
	}
}

func (c Config) pipeline() pipeline.Config {
	return pipeline.Config{Target: *c.Target, Capability: c.Capability}
}

// offer is what the switch can do, and why not.
type offer struct {
	capability topology.Capability
	unusable   string
}

func (d *Daemon) offered() offer { return offer{d.core.Capability(), d.core.Unusable()} }

// begin reports to the core, before its loop runs, that a target is still to be met.
func (d *Daemon) begin() {
	if d.cfg.Target != nil {
		unusable := agent.Offer{Unusable: "the P4 target " + d.cfg.Target.Address + " has not been reached yet"}
		d.core.Step(d.clock.Now(), []agent.Input{unusable}, new(agent.Output))
	}
	d.reported = d.offered()
}

// newPlane makes what reduces.
func (d *Daemon) newPlane() (dataplane.Plane, error) {
	notify := func(e dataplane.Event) { d.mail.Put(e) }
	if d.cfg.Target != nil {
		c := d.cfg.pipeline()
		c.Clock, c.Log, c.Notify = d.clock, d.log, notify
		return pipeline.Start(c)
	}
	c := d.cfg.soft()
	c.Clock, c.Log, c.Notify = d.clock, d.log, notify
	accelerator, err := d.accelerator()
	if err != nil {
		return nil, err
	}
	c.Accelerator = accelerator
	plane, err := soft.New(c)
	if err != nil && accelerator != nil {
		accelerator.Close()
	}
	return plane, err
}

// accelerator makes what reduces before the agent does, if anything is to.
func (d *Daemon) accelerator() (soft.Accelerator, error) {
	if d.cfg.Kernel == NoKernel {
		return nil, nil
	}
	interfaces := d.cfg.Interfaces
	if interfaces == nil {
		interfaces = nic.System()
	}
	o, err := kernel.New(kernel.Config{Data: d.cfg.Data, Interfaces: interfaces, Log: d.log})
	if err == nil {
		return o, nil
	}
	if d.cfg.Kernel == NeedsKernel {
		return nil, err
	}
	d.log.Info("the agent reduces by itself, not the kernel", slog.Any("reason", err))
	return nil, nil
}

// act does what the agent core wants of a tree, in its loop.
func (d *Daemon) act(a *agent.Action) {
	switch a.Kind {
	case agent.Open:
		d.plane.Open(a.Socket, a.Group)
	case agent.Install:
		d.commits.begin(a)
		d.plane.Install(a.Socket, a.Config)
	case agent.Retire:
		d.plane.Retire(a.Socket, a.Epoch)
	case agent.Close:
		d.plane.Shut(a.Socket)
	}
}

// deliver hands the plane's events to the agent core, one after the other.
func (d *Daemon) deliver() {
	ctx := context.Background() // the box is closed at the end
	for {
		events, err := d.mail.Take(ctx)
		if err != nil {
			return
		}
		for _, e := range events {
			if d.handle(ctx, e) != nil {
				return // the loop has ended
			}
		}
	}
}

func (d *Daemon) handle(ctx context.Context, event dataplane.Event) error {
	switch e := event.(type) {
	case dataplane.Opened:
		in := agent.Bound{Socket: e.Socket, Addr: e.Addr}
		if e.Err != nil {
			in.Failed = e.Err.Error()
			d.log.Error("opening a tree", slog.Any("error", e.Err))
		}
		return d.loop.Post(ctx, in)
	case dataplane.Installed:
		if e.Err == nil {
			if err := d.loop.Post(ctx, agent.Installed{Socket: e.Socket, Epoch: e.Epoch, Reducer: e.Reducer}); err != nil {
				return err
			}
		} else {
			// The core has it as committed, and must not any more when the
			// manager hears of it.
			if err := d.loop.Post(ctx, agent.Expired{Socket: e.Socket, Epoch: e.Epoch, Lost: true}); err != nil {
				return err
			}
		}
		return d.loop.Do(ctx, func() { d.installed(e) })
	case dataplane.Ended:
		if e.Err != nil {
			d.log.Warn("the data plane has lost an epoch", slog.Uint64("epoch", uint64(e.Epoch)), slog.Any("error", e.Err))
		}
		return d.loop.Post(ctx, agent.Expired{Socket: e.Socket, Epoch: e.Epoch, Lost: e.Err != nil})
	case dataplane.Offer:
		if d.network != nil {
			d.network.hears(!e.Deaf)
		}
		return d.loop.Post(ctx, agent.Offer{Capability: e.Capability, Unusable: e.Unusable})
	}
	return nil
}
