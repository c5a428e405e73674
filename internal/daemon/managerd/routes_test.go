package managerd_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// routed is an agent that takes routes.
type routed struct {
	*agentd.Daemon
	given chan portmap.Assignment
}

func (r *routed) Watch(ctx context.Context, heartbeat time.Duration, event func(rpc.AgentEvent) error) error {
	return r.Daemon.Watch(ctx, heartbeat, func(e rpc.AgentEvent) error {
		if e.State != nil {
			e.State.TakesRoutes = true
		}
		return event(e)
	})
}

func (r *routed) SetRoutes(ctx context.Context, a portmap.Assignment) error {
	select {
	case r.given <- a:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// TestRoutes: an agent that takes routes is given the addresses of its ports and ways
// to all hosts as soon as it is met, and others when a link on them goes down.
func TestRoutes(t *testing.T) {
	r := &routed{given: make(chan portmap.Assignment, 16)}
	w := newWired(t, func(c *managerd.Config) {})
	r.Daemon = w.agents["leaf-0"]
	listener, err := rpc.Listen("127.0.0.1:0", rpc.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.Serve(listener, rpc.Services{Agent: r}, rpc.ServerConfig{})
	t.Cleanup(server.Kill)
	w.manager.Close()
	w.cfg.Agents["leaf-0"] = server.Addr().String()
	w.startManager()

	g := w.graph
	leaf, _ := g.Lookup("leaf-0")
	addresses, way := map[uint16]netip.Addr{}, map[netip.Addr]topology.LinkID{}
	byPort := map[uint16]topology.LinkID{}
	for _, l := range g.Adjacent(leaf) {
		e := g.Link(l).Ends
		port := uint16(e[0].Port)
		if e[0].Node != leaf {
			port = uint16(e[1].Port)
		}
		addresses[port], byPort[port] = g.AddressAt(l, leaf), l
	}
	far, _ := g.Lookup("h3")
	farAddress := g.AddressAt(g.Adjacent(far)[0], far)
	take := func(a portmap.Assignment) {
		t.Helper()
		if fmt.Sprint(a.Addresses) != fmt.Sprint(addresses) {
			t.Errorf("its ports are %v, want %v", a.Addresses, addresses)
		}
		clear(way)
		for _, x := range a.Routes {
			l := byPort[x.Port]
			if x.Prefix.Bits() != 32 || x.Next != g.AddressAt(l, g.Across(l, leaf)) {
				t.Errorf("route %+v", x)
			}
			way[x.Prefix.Addr()] = l
		}
		for n := range topology.NodeID(g.Hosts()) {
			if _, ok := way[g.AddressAt(g.Adjacent(n)[0], n)]; !ok {
				t.Errorf("no route to %s", g.Name(n))
			}
		}
	}
	take(<-r.given)
	first, ok := way[farAddress]
	if !ok || !slices.Contains(g.Adjacent(leaf), first) {
		t.Fatalf("no way to %v: %v", farAddress, way)
	}
	if err := w.manager.ChangeTopology(topology.LinkState(first, false)); err != nil {
		t.Fatal(err)
	}
	if take(<-r.given); way[farAddress] == first {
		t.Errorf("to %v by %s, which is down", farAddress, g.LinkName(first))
	}
	if err := w.manager.ChangeTopology(topology.LinkState(first, true)); err != nil {
		t.Fatal(err)
	}
	if take(<-r.given); way[farAddress] != first {
		t.Errorf("to %v by %s", farAddress, g.LinkName(way[farAddress]))
	}
}
