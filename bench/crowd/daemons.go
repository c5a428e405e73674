package crowd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/topology"
)

var (
	loopback = netip.MustParseAddr("127.0.0.1")
	anyPort  = netip.AddrPortFrom(loopback, 0).String()
)

// heartbeat is long: the death of an agent shows by its connection, and what holds
// up the machine is none.
const heartbeat = 10 * time.Second

// Switches serves as the process of all agents of a fabric.
func Switches(ctx context.Context, g *topology.Graph, in io.Reader, out io.Writer, log *slog.Logger) error {
	addresses := map[string]string{}
	for i := range g.Switches() {
		n := g.Switch(i)
		d, err := agentd.Start(agentd.Config{
			Switch: g.Name(n), Capability: g.Capability(n), Listen: anyPort, Data: loopback, Log: log,
		})
		if err != nil {
			return err
		}
		defer d.Close()
		addresses[g.Name(n)] = d.Addr()
	}
	return serve(ctx, in, out, map[string]verb{
		"addresses": func(context.Context, string) (any, error) { return addresses, nil },
	})
}

// Manager serves as the process of the manager of a fabric.
func Manager(ctx context.Context, g *topology.Graph, agents map[string]string, in io.Reader, out io.Writer, log *slog.Logger) error {
	d, err := managerd.Start(managerd.Config{Topology: g, Agents: agents, Listen: anyPort, Log: log, Heartbeat: heartbeat})
	if err != nil {
		return err
	}
	defer d.Close()
	return serve(ctx, in, out, map[string]verb{
		"address": func(ctx context.Context, _ string) (any, error) {
			return d.Addr(), connected(ctx, d, len(agents))
		},
		"slots": func(ctx context.Context, _ string) (any, error) { return slots(ctx, d) },
	})
}

// connected waits until the manager has so many agents.
func connected(ctx context.Context, m rpc.Manager, agents int) error {
	for {
		f, err := m.Topology(ctx)
		if err != nil {
			return err
		}
		up := 0
		for _, n := range f.Nodes {
			if n.Switch != nil && n.Switch.Connected {
				up++
			}
		}
		if up == agents {
			return nil
		}
		if err := runner.Pause(ctx, 10*time.Millisecond); err != nil {
			return errors.Join(errors.New("not all agents are connected"), err)
		}
	}
}

// slots returns the most slots that are held on a switch.
func slots(ctx context.Context, m rpc.Manager) (most int, err error) {
	f, err := m.Topology(ctx)
	for _, n := range f.Nodes {
		if n.Switch != nil {
			most = max(most, n.Switch.SlotsUsed)
		}
	}
	return most, err
}
