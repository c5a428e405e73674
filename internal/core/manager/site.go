package manager

import "github.com/tributary-fabric/tributary/topology"

// SiteState is one epoch of a group's tree on one of its switches.
type SiteState struct {
	Group, Epoch uint32
	Name         string            // of the group
	Window       uint32            // the group's largest, in chunks: what an epoch before had on its way may be there still
	ChunkBytes   int               // largest payload of a packet
	Up           topology.LinkID   // to the parent; topology.NoLink: this is the root
	Children     []topology.LinkID // to the children, by child index; not to be changed
}

// Sites returns the epochs that were committed on switch n, by group, and
// within a group by age.
func (c *Core) Sites(n topology.NodeID) []SiteState {
	if !c.graph.IsSwitch(n) {
		return nil
	}
	d := c.device(n)
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
					Up: t.plan.Tree.Vertices[i].Up, Children: t.links[i],
				})
			}
		}
	}
	return all
}
