package field

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/topology"
)

// daemon is a manager or an agent.
type daemon interface {
	Done() <-chan struct{}
	Err() error
	Close()
}

// serve runs a daemon until ctx ends, or it does.
func serve(ctx context.Context, d daemon) error {
	select {
	case <-ctx.Done():
		d.Close()
		return nil
	case <-d.Done():
		return errors.Join(errors.New("it cannot be reached any more"), d.Err())
	}
}

// Manager runs a manager of the fabric in a file until ctx ends, with its state
// in another; c says where it listens, where the agents are, and how often it
// verifies.
func Manager(ctx context.Context, fabric, kept string, c managerd.Config) (err error) {
	g, err := topology.ReadFile(fabric)
	if err != nil {
		return err
	}
	s, err := store.Open(kept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c.Topology, c.Store, c.AllowPlaintext = g, s, true
	d, err := managerd.Start(c)
	if err != nil {
		return err
	}
	return serve(ctx, d)
}

// Agent runs the agent of a switch of the fabric in a file until ctx ends. Its
// trees lose the given share of the packets that they send. A measured one
// serves a gauge.
func Agent(ctx context.Context, fabric, name, listen string, loss float64, kernel agentd.Kernel, measured bool, log *slog.Logger) (err error) {
	g, err := topology.ReadFile(fabric)
	if err != nil {
		return err
	}
	n, ok := g.Lookup(name)
	if !ok || !g.IsSwitch(n) {
		return fmt.Errorf("the fabric in %s has no switch %q", fabric, name)
	}
	d, err := agentd.Start(agentd.Config{
		Switch: name, Capability: g.Capability(n), Listen: listen, Data: netip.IPv4Unspecified(), AllowPlaintext: true,
		Interfaces: nic.System(), Kernel: kernel, Faults: transport.Faults{Loss: loss, Seed: SeedOf(name)}, Log: log,
	})
	if err != nil {
		return err
	}
	if measured {
		stop, err := ServeGauge(switchTraffic(ctx, d))
		if err != nil {
			d.Close()
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	return serve(ctx, d)
}

// SeedOf returns a seed for the misfortunes of one node, the same each time.
func SeedOf(node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node)) // it never fails
	return h.Sum64()
}
