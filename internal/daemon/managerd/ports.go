package managerd

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// ports are a switch's interfaces at the ends of its links, by port: those that have
// the address which the topology gives the end. Links without addresses have none.
func ports(g *topology.Graph, n topology.NodeID, all []nic.Interface) map[topology.Port]*nic.Interface {
	found := map[topology.Port]*nic.Interface{}
	for _, l := range g.Adjacent(n) {
		a := g.AddressAt(l, n)
		if !a.IsValid() {
			continue
		}
		for i := range all {
			if all[i].Has(a) {
				found[g.PortAt(l, n)] = &all[i]
				break
			}
		}
	}
	return found
}

// linkEnd is the end of a link at a switch.
type linkEnd struct {
	link    string // as linkName gives it
	address netip.Addr
}

// portMarks returns which links of the switch are down at its end, and which are
// not; a link is up when it is down at neither end. Some systems take the addresses
// of an interface that goes down away, and an interface may go altogether: a link
// whose end had one once and has none now is down, too. An agent that does not report its
// interfaces has no say. The caller holds fabric.
func (l *link) portMarks(g *topology.Graph) (marks []mark) {
	n, ok := g.Lookup(l.name)
	if !ok || !g.IsSwitch(n) {
		return nil
	}
	at := map[topology.Port]*nic.Interface{}
	if l.ports != nil {
		at = ports(g, n, l.ports.List)
	}
	for _, id := range g.Adjacent(n) {
		port := g.PortAt(id, n)
		m := mark{what: linkName(g, id), source: byAgent(l.name), up: true}
		here := linkEnd{m.what, g.AddressAt(id, n)}
		switch i := at[port]; {
		case i != nil:
			l.found[port] = here
			if m.up = i.Up; !m.up {
				m.why = fmt.Sprintf("interface %s is down", i.Name)
			}
		case l.found[port] == here && l.ports != nil:
			m.up, m.why = false, "the interface is gone, or its address"
		}
		marks = append(marks, m)
	}
	return marks
}

// interfaces takes what the agent says of its interfaces.
func (l *link) interfaces(x *rpc.Interfaces) error {
	d := l.daemon
	d.fabric.Lock()
	defer d.fabric.Unlock()
	if l.ports = x; x != nil && x.Unavailable != "" {
		l.ports = nil
	}
	return d.change(l.portMarks(d.overlay.View().Graph()))
}

// homeless logs the links whose address at this end is on none of the
// interfaces: what is sent to it cannot arrive.
func (l *link) homeless(x *rpc.Interfaces) {
	g := l.daemon.view().Graph()
	n, ok := g.Lookup(l.name)
	if !ok || x == nil || x.Unavailable != "" {
		return
	}
	at := ports(g, n, x.List)
	for _, id := range g.Adjacent(n) {
		if a := g.AddressAt(id, n); a.IsValid() && at[g.PortAt(id, n)] == nil {
			l.log.Warn("no interface of the switch has the address that the topology gives it on this link",
				slog.String("link", g.LinkName(id)), slog.String("address", a.String()))
		}
	}
}
