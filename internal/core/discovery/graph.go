package discovery

import (
	"cmp"
	"fmt"
	"net/netip"

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

// Graph returns the map as a graph of a name, and what is down in it.
func (c *Core) Graph(name string) (*topology.Graph, []topology.Change, error) {
	b := &topology.Builder{Fabric: name}
	refs := make(map[string]topology.Ref, len(c.nodes))
	nodes, links := c.Nodes(), c.Links()
	for _, n := range nodes {
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
	ids := make(map[topology.LinkID]bool)
	for _, l := range links {
		id, err := b.Connect(refs[l.Ends[0].Node], l.Ends[0].Port, refs[l.Ends[1].Node], l.Ends[1].Port, l.LinkSpec)
		if err != nil {
			return nil, nil, fmt.Errorf("discovery: %v: %w", l.Ends, err)
		}
		if l.Addresses[0].IsValid() {
			_ = b.SetAddresses(id, l.Addresses[0], l.Addresses[1]) // one that another link has is not a link's own
		}
		if !l.Up {
			ids[id] = true
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, nil, fmt.Errorf("discovery: %w", err)
	}
	return g, c.down(g, nodes, ids), nil
}

func (c *Core) down(g *topology.Graph, nodes []Node, links map[topology.LinkID]bool) (down []topology.Change) {
	for _, n := range nodes {
		if id, ok := g.Lookup(n.Name); ok && !n.Up {
			down = append(down, topology.NodeState(id, false))
		}
	}
	for l := range g.AllLinks() {
		if links[l] {
			down = append(down, topology.LinkState(l, false))
		}
	}
	return down
}
