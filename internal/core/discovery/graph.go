package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// addressesOf returns an address of each end in one subnet; invalid ones if there are none.
// Of several it is those of the smallest subnet, of IPv4 first.
func addressesOf(a, b *port) (pair [2]netip.Addr) {
	var best netip.Prefix
	for _, x := range a.facts.Addresses {
		for _, y := range b.reach(a) {
			s := x.Masked()
			if !s.Contains(y) || x.Addr() == y || !y.IsGlobalUnicast() || y.Zone() != "" {
				continue
			}
			if best.IsValid() && cmp.Or(cmp.Compare(s.Addr().BitLen(), best.Addr().BitLen()), cmp.Compare(best.Bits(), s.Bits()),
				x.Addr().Compare(pair[0]), y.Compare(pair[1])) >= 0 {
				continue
			}
			best, pair = s, [2]netip.Addr{x.Addr(), y}
		}
	}
	if !best.IsValid() && a.node.target == nil && b.node.target != nil {
		pair = addressesOf(b, a)
		pair[0], pair[1] = pair[1], pair[0]
	} else if !best.IsValid() {
		pair = unnumbered(a, b)
	}
	return pair
}

// unnumbered returns the only addresses of a link whose first end has no subnet, such as
// a port of a P4 target, which no system routes by; invalid ones if there are none.
func unnumbered(a, b *port) (pair [2]netip.Addr) {
	for _, x := range a.facts.Addresses {
		if !x.IsSingleIP() {
			continue
		}
		for _, y := range b.reach(a) {
			if y.Is4() != x.Addr().Is4() || y == x.Addr() || !y.IsGlobalUnicast() || y.Zone() != "" {
				continue
			}
			if pair[0].IsValid() {
				return [2]netip.Addr{} // of several, which it is cannot be known
			}
			pair = [2]netip.Addr{x.Addr(), y}
		}
	}
	return pair
}

// reach returns the addresses of a port: those of the interface, or those that the
// neighbour at the other end has heard of it.
func (p *port) reach(from *port) (all []netip.Addr) {
	for _, a := range p.facts.Addresses {
		all = append(all, a.Addr())
	}
	if p.node.target == nil {
		if k := claimOf(from, p); k != nil {
			all = append(all, k.neighbor.Management...)
		}
	}
	return all
}

// Map is a fabric as it is known at a moment.
type Map struct {
	Nodes []Node // by name
	Links []Link // by their ends
}

// Map returns the map.
func (c *Core) Map() Map { return c.Copy().Sorted() }

// Copy returns the map in no order, which takes less time.
func (c *Core) Copy() Map {
	m := Map{make([]Node, 0, len(c.nodes)), make([]Link, 0, len(c.links))}
	return Map{slices.AppendSeq(m.Nodes, maps.Values(c.nodes)), slices.AppendSeq(m.Links, maps.Values(c.links))}
}

// Sorted brings nodes and links into order.
func (m Map) Sorted() Map {
	slices.SortFunc(m.Nodes, func(a, b Node) int { return compareNames(a.Name, b.Name) })
	slices.SortFunc(m.Links, func(a, b Link) int { return compareEnds(a.Ends, b.Ends) })
	return m
}

// Agents returns "host:port" of each switch's agent, by the switch's name.
func (m Map) Agents() map[string]string {
	all := map[string]string{}
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Agent != "" && n.Kind == topology.Switch {
			all[n.Name] = n.Agent
		}
	}
	return all
}

// Graph returns the map as a graph of a name, and the state of everything in it that is
// down.
func (m Map) Graph(name string) (*topology.Graph, []topology.Change, error) {
	b := &topology.Builder{Fabric: name}
	refs := make(map[string]topology.Ref, len(m.Nodes))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		ref, err := topology.Ref(0), error(nil)
		if n.Kind == topology.Host {
			ref, err = b.AddHost(n.Name)
		} else {
			ref, err = b.AddSwitch(n.Name, n.Capability)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("discovery: %w", err)
		}
		refs[n.Name] = ref
	}
	var down []topology.Change
	for i := range m.Links {
		l := &m.Links[i]
		id, err := b.Connect(refs[l.Ends[0].Node], l.Ends[0].Port, refs[l.Ends[1].Node], l.Ends[1].Port, l.LinkSpec)
		if err != nil {
			return nil, nil, fmt.Errorf("discovery: %v: %w", l.Ends, err)
		}
		if l.Addresses[0].IsValid() {
			_ = b.SetAddresses(id, l.Addresses[0], l.Addresses[1]) // one that another link has is not a link's own
		}
		if !l.Up {
			down = append(down, topology.LinkState(id, false))
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, nil, fmt.Errorf("discovery: %w", err)
	}
	for i := range m.Nodes {
		if id, ok := g.Lookup(m.Nodes[i].Name); ok && !m.Nodes[i].Up {
			down = append(down, topology.NodeState(id, false))
		}
	}
	return g, down, nil
}
