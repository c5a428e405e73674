package manager

import (
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// place finds a group's members in the fabric, and what joins them to it.
func (c *Core) place(g *group) {
	g.hosts, g.absent = find(c.graph, g.spec.Members)
	g.links = linksOf(c.graph, g.hosts)
}

// linksOf returns what joins hosts to the fabric, as in Links.
func linksOf(g *topology.Graph, hosts []topology.NodeID) (all pathsel.Links) {
	leaves := map[topology.NodeID]int{}
	for _, host := range hosts {
		l := fastestLink(g, host)
		if l == topology.NoLink {
			return pathsel.Links{}
		}
		leaves[g.Across(l, host)]++
		if rate := g.Link(l).Bandwidth; all.Rate == 0 || rate < all.Rate {
			all.Rate = rate
		}
	}
	if len(leaves) == 1 {
		return all
	}
	for leaf, members := range leaves {
		uplink := int64(0)
		for _, l := range g.Adjacent(leaf) {
			if g.IsSwitch(g.Across(l, leaf)) {
				uplink += g.Link(l).Bandwidth
			}
		}
		uplink /= int64(members)
		if uplink > 0 && (all.Uplink == 0 || uplink < all.Uplink || uplink == all.Uplink && members > all.Leaf) {
			all.Uplink, all.Leaf = uplink, members
		}
	}
	return all
}

// fastestLink returns the fastest link of a host, of several the one of the lowest port.
func fastestLink(g *topology.Graph, host topology.NodeID) topology.LinkID {
	fastest, rate := topology.NoLink, int64(0)
	if host == topology.NoNode {
		return fastest
	}
	for _, l := range g.Adjacent(host) {
		if is := g.Link(l).Bandwidth; is > rate {
			fastest, rate = l, is
		}
	}
	return fastest
}

// notifyLinks reports to a group's lowest rank what joins its members' hosts to the fabric.
func (c *Core) notifyLinks(g *group) {
	if m := &g.members[0]; m.watching {
		c.out.Links = append(c.out.Links, Links{Group: g.id, Stream: m.stream, Links: g.links})
	}
}
