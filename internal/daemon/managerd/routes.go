package managerd

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/planning/routing"
	"github.com/tributary-fabric/tributary/topology"
)

// assignment returns what the map says of a switch's ports and routes.
func assignment(v topology.View, n topology.NodeID) portmap.Assignment {
	g := v.Graph()
	a := portmap.Assignment{Addresses: map[uint16]netip.Addr{}}
	for _, l := range g.Adjacent(n) {
		if own := g.AddressAt(l, n); own.Is4() {
			a.Addresses[uint16(g.PortAt(l, n))] = own
		}
	}
	for _, r := range routing.Of(v, n) {
		next := g.AddressAt(r.Link, g.Across(r.Link, n))
		if r.Address.Is4() && next.Is4() {
			a.Routes = append(a.Routes, portmap.Route{Prefix: netip.PrefixFrom(r.Address, 32), Port: uint16(g.PortAt(r.Link, n)), Next: next})
		}
	}
	return a
}

// route gives the agent its ports and routes if they are others than those that it
// was given last. It is of one life of the connection, as given is.
func (l *link) route(ctx context.Context, given *portmap.Assignment) error {
	view := l.daemon.view()
	n, known := view.Graph().Lookup(l.name)
	if !known {
		return nil // the map has lost it, and it goes
	}
	now := assignment(view, n)
	if maps.Equal(now.Addresses, given.Addresses) && slices.Equal(now.Routes, given.Routes) {
		return nil
	}
	if err := l.client.SetRoutes(ctx, now); err != nil {
		return err
	}
	*given = now
	return nil
}

// reroute has all agents that take routes be given theirs, after a change of the map.
func (d *Daemon) reroute() {
	for _, l := range d.agentLinks() {
		if l.routed.Load() {
			l.put(request{routes: true})
		}
	}
}
