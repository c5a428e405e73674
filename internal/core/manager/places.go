package manager

import (
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// tenant is a tree in Core.places.
type tenant struct {
	group *group
	tree  *tree
}

// enlist notes where a tree is.
func (c *Core) enlist(g *group, t *tree) {
	if n := len(c.vacant); n > 0 {
		t.number, c.vacant = c.vacant[n-1], c.vacant[:n-1]
		c.tenants[t.number] = tenant{g, t}
	} else {
		t.number = uint32(len(c.tenants))
		c.tenants = append(c.tenants, tenant{g, t})
	}
	t.listed = true
	c.places.Add(t.number, t.plan.Tree)
}

// delist forgets it.
func (c *Core) delist(t *tree) {
	t.listed = false
	c.places.Remove(t.number, t.plan.Tree)
	c.tenants[t.number] = tenant{}
	c.vacant = append(c.vacant, t.number)
}

// touched returns the numbers of the trees that lead over what went down, the
// groups in their order, and of a group the older tree first.
func (c *Core) touched(delta *topology.Delta) []uint32 {
	var all []uint32
	for _, n := range delta.NodesDown {
		all = append(all, c.places.OnNode(n)...)
	}
	for _, l := range delta.LinksDown {
		all = append(all, c.places.OnLink(l)...)
	}
	slices.SortFunc(all, func(x, y uint32) int {
		a, b := c.tenants[x], c.tenants[y]
		if a.group != b.group {
			return int(int64(a.group.id) - int64(b.group.id))
		}
		return int(int64(a.tree.epoch) - int64(b.tree.epoch))
	})
	return slices.Compact(all)
}
