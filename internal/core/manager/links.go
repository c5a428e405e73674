package manager

import "github.com/tributary-fabric/tributary/pathsel"

// place finds a group's members in the fabric, and what joins them to it.
func (c *Core) place(g *group) {
	g.hosts, g.absent = find(c.graph, g.spec.Members)
	g.links = pathsel.LinksOf(c.graph, g.hosts)
}

// notifyLinks reports to a group's lowest rank what joins its members' hosts to the fabric.
func (c *Core) notifyLinks(g *group) {
	if m := &g.members[0]; m.watching {
		c.out.Links = append(c.out.Links, Links{Group: g.id, Stream: m.stream, Links: g.links})
	}
}
