package managerd

import (
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// ports are a switch's interfaces at the ends of its links: those that have the
// address which the topology gives the end. Links without addresses have none.
func ports(g *topology.Graph, n topology.NodeID, all []nic.Interface) map[topology.LinkID]*nic.Interface {
	found := map[topology.LinkID]*nic.Interface{}
	for _, l := range g.Adjacent(n) {
		a := g.AddressAt(l, n)
		if !a.IsValid() {
			continue
		}
		for i := range all {
			if all[i].Has(a) {
				found[l] = &all[i]
				break
			}
		}
	}
	return found
}

// down returns the links of the switch that are down at its end. Some systems
// take the addresses of an interface that goes down away, and an interface may
// go altogether: a link that had one once and has none now is down, too.
func (l *link) down(x *rpc.Interfaces) (down []topology.LinkID) {
	if x == nil || x.Unavailable != "" {
		return nil
	}
	g := l.daemon.cfg.Topology
	at := ports(g, l.node, x.List)
	for _, id := range g.Adjacent(l.node) {
		i := at[id]
		switch {
		case i != nil:
			l.found[id] = true
			if !i.Up {
				down = append(down, id)
			}
		case l.found[id]:
			down = append(down, id)
		}
	}
	return down
}

// interfaces takes what the agent says of its interfaces.
func (l *link) interfaces(x *rpc.Interfaces) error {
	return l.daemon.downAt(l.node, l.down(x))
}

// homeless logs the links whose address at this end is on none of the
// interfaces: what is sent to it cannot arrive.
func (l *link) homeless(x *rpc.Interfaces) {
	if x == nil || x.Unavailable != "" {
		return
	}
	g := l.daemon.cfg.Topology
	at := ports(g, l.node, x.List)
	for _, id := range g.Adjacent(l.node) {
		if a := g.AddressAt(id, l.node); a.IsValid() && at[id] == nil {
			l.log.Warn("no interface of the switch has the address that the topology gives it on this link",
				slog.String("link", g.LinkName(id)), slog.String("address", a.String()))
		}
	}
}

// downAt says which links of switch n are down at its end; all others of its
// links are not. A link is up when it is down at neither end.
func (d *Daemon) downAt(n topology.NodeID, down []topology.LinkID) error {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	g := d.cfg.Topology
	is := map[topology.LinkID]bool{}
	for _, l := range down {
		is[l] = true
	}
	var changes []topology.Change
	for _, l := range g.Adjacent(n) {
		before := d.ends[l]
		after := before
		after[end(g, l, n)] = is[l]
		if after == before {
			continue
		}
		d.ends[l] = after
		if up := after == [2]bool{}; up != (before == [2]bool{}) {
			changes = append(changes, topology.LinkState(l, up))
			d.log.Warn("link changed", slog.String("link", g.LinkName(l)), slog.Bool("up", up), slog.String("switch", g.Name(n)))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return d.change(changes...)
}

// end returns which end of l node n is.
func end(g *topology.Graph, l topology.LinkID, n topology.NodeID) int {
	if g.Link(l).Ends[0].Node == n {
		return 0
	}
	return 1
}
