package manager

import (
	"slices"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// beginReviews has every tree that was planned while something was missing, or
// that shares links with a sister's, compared with what the fabric has now that it
// is quiet. They are so one after the other: groups without a tree must not wait for
// them.
func (c *Core) beginReviews() {
	c.reviews = c.reviews[:0]
	for _, id := range c.order {
		if g := c.groups[id]; g.active != nil && (g.active.makeshift || c.crowded(g)) {
			c.reviews = append(c.reviews, id)
		}
	}
	c.nextReview()
}

// rethink has the trees on a switch of another speed than before reviewed, too.
func (c *Core) rethink(n topology.NodeID) {
	for _, number := range c.places.OnNode(n) {
		c.tenants[number].tree.makeshift = true
	}
}

// crowded reports whether g's tree shares links with those of its sisters.
func (c *Core) crowded(g *group) bool {
	others := g.apartFrom()
	return len(others) > 0 && pathsel.Shared(c.graph, g.active.plan.Tree, others) > 0
}

// nextReview asks for the next one, unless one is out.
func (c *Core) nextReview() {
	for c.reviewing == 0 && len(c.reviews) > 0 {
		g := c.groups[c.reviews[0]]
		c.reviews = c.reviews[1:]
		if g == nil || g.active == nil || g.active.unwanted || !g.active.makeshift && !c.crowded(g) {
			continue
		}
		g.review = true
		if !c.wantsPlan(g) || c.now < g.notBefore {
			g.review = false // it is busy, or was a moment ago
			continue
		}
		c.planAgain(g)
		c.reviewing = g.plan
	}
}

// reviewed reports whether the tree that a review has found is to be made: it is
// another one than the active, and so better by more than the planner keeps an
// old one for.
func (c *Core) reviewed(g *group, in *Planned) bool {
	if in.Err != nil {
		return false
	}
	t := g.active
	t.makeshift = g.round.impaired
	if same(&in.Chosen.Tree, &t.plan.Tree) {
		return false
	}
	c.note(g, "epoch %d to be replaced: %s", t.epoch, in.Chosen.Reason)
	return true
}

// same reports whether two trees are on the same switches and links.
func same(a, b *pathsel.Tree) bool {
	return slices.Equal(a.Vertices, b.Vertices) && slices.Equal(a.Leaves, b.Leaves) &&
		slices.EqualFunc(a.Routes, b.Routes, func(x, y pathsel.Route) bool {
			return x.Vertex == y.Vertex && x.Rank == y.Rank && slices.Equal(x.Links, y.Links)
		})
}
