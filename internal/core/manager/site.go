package manager

import "github.com/tributary-fabric/tributary/topology"

// SiteState is one epoch of a group's tree on one of its switches.
type SiteState struct {
	Group, Epoch uint32
	Name         string          // of the group
	Window       uint32          // the group's largest, in chunks: what an epoch before had on its way may be there still
	ChunkBytes   int             // largest payload of a packet
	Up           topology.Port   // of the switch, to the parent; 0: this is the root
	Children     []topology.Port // to the children, by child index
}

// Sites returns the epochs that were committed on a switch, by group, and
// within a group by age.
func (c *Core) Sites(name string) []SiteState {
	d := c.named(name)
	if d == nil {
		return nil
	}
	var all []SiteState
	for _, h := range d.holdings {
		g := c.groups[h.Group]
		if g == nil {
			continue
		}
		for _, t := range g.trees() {
			if i := t.vertexOn(d); i >= 0 && t.links != nil && t.sites[i].phase >= committing && t.sites[i].phase < gone {
				all = append(all, SiteState{
					Group: g.id, Epoch: t.epoch, Name: g.spec.Name, Window: g.spec.Window, ChunkBytes: g.spec.ChunkBytes,
					Up: c.portOn(d, t.plan.Tree.Vertices[i].Up), Children: c.portsOn(d, t.links[i]),
				})
			}
		}
	}
	return all
}

// portOn returns the port that a link has at a switch; 0: the fabric has no such link.
func (c *Core) portOn(d *device, l topology.LinkID) topology.Port {
	if !c.graph.HasLink(l) {
		return 0
	}
	return c.graph.PortAt(l, d.node)
}

func (c *Core) portsOn(d *device, links []topology.LinkID) []topology.Port {
	all := make([]topology.Port, len(links))
	for i, l := range links {
		all[i] = c.portOn(d, l)
	}
	return all
}
