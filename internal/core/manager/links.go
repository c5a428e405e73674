package manager

import "github.com/tributary-fabric/tributary/topology"

// place finds a group's members in the fabric, and what joins them to it.
func (c *Core) place(g *group) {
	g.hosts, g.absent = find(c.graph, g.spec.Members)
	g.linkRate = 0
	for rank, host := range g.hosts {
		rate := fastestLink(c.graph, host)
		if g.linkRate = min(g.linkRate, rate); rank == 0 {
			g.linkRate = rate
		}
	}
}

// fastestLink returns the bit/s of a host's fastest link; 0: the fabric lacks it, or its links.
func fastestLink(g *topology.Graph, host topology.NodeID) (rate int64) {
	if host == topology.NoNode {
		return 0
	}
	for _, l := range g.Adjacent(host) {
		rate = max(rate, g.Link(l).Bandwidth)
	}
	return rate
}

// notifyLinks reports to a group's lowest rank what joins its members' hosts to the fabric.
func (c *Core) notifyLinks(g *group) {
	if m := &g.members[0]; m.watching {
		c.out.Links = append(c.out.Links, Links{Group: g.id, Stream: m.stream, Rate: g.linkRate})
	}
}
