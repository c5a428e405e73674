package manager

import (
	"math/bits"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// reserve is the share of a switch's slots, one of so many, that windows do not
// grow into: it is for first trees, so that a new group need not wait for others to
// give back.
const reserve = 16

// Resizes count the windows that were changed.
type Resizes struct {
	Grown  uint64 // were begun, as are those below
	Shrunk uint64
}

// Resizes returns how often windows were changed so far.
func (c *Core) Resizes() Resizes { return c.resizes }

// demands takes note of the window that g can use.
func (c *Core) demands(g *group, rank, demand uint32) {
	if rank != 0 || demand == 0 {
		return
	}
	demand = uint32(1) << bits.Len32(min(demand, g.spec.Window)-1)
	if demand != g.demand {
		g.demand, g.demanded = demand, c.now
		c.weigh(g)
	}
}

// wants returns the window that g would have if there were room.
func (c *Core) wants(g *group) uint32 {
	w := g.spec.Window
	if g.demand != 0 {
		w = g.demand
	}
	w = c.within(g, w)
	if g.active != nil {
		w = c.borne(&g.active.plan.Tree, w)
	}
	return w
}

// weigh has the next round look at g if its window is not what it could use. If it is,
// others may have waited until g is steady and can give back.
func (c *Core) weigh(g *group) {
	if g.active != nil && g.active.window != c.wants(g) && !g.uneven {
		g.uneven = true
		c.uneven = append(c.uneven, g)
	}
	c.shareSoon()
}

// shareSoon has slots be shared out after Config.Share, if anybody waits for that.
func (c *Core) shareSoon() {
	if len(c.uneven)+len(c.starving) > 0 {
		c.shareAt(c.now.Add(c.cfg.Share))
	}
}

func (c *Core) shareAt(at core.Time) {
	if !c.sharing.Running() || at < c.sharing.At {
		c.timers.Set(&c.sharing, at)
	}
}

// settled notes that g has the tree t.
func (c *Core) settled(g *group, t *tree) {
	switch {
	case g.window == 0 || t.window == g.window:
	case t.window < g.window:
		g.shrinks, g.grows = c.now.Add(c.cfg.Hold), c.now.Add(2*c.cfg.Hold)
	default:
		g.shrinks, g.grows = c.now.Add(c.cfg.Hold), c.now.Add(c.cfg.Hold)
	}
	g.window = t.window
	c.weigh(g)
	c.shareSoon() // what it waited for is there, or not needed any more
}

// steady reports whether g can be given a tree with another window: it has one,
// which every member has entered, and nothing is under way.
func (c *Core) steady(g *group) bool {
	t := g.active
	return t != nil && !t.unwanted && g.building == nil && g.plan == 0 && !g.review && !g.released &&
		len(g.draining) == 0 && t.inside == len(g.members) && g.watching == len(g.members)
}

// shareOut gives slots to who can use them: windows grow, the smallest first, into
// what is free; where that does not do, larger windows are made smaller.
func (c *Core) shareOut() {
	c.shared++
	r := sharing{Core: c, next: core.Never}
	growers := r.collect()
	r.feed()
	r.raise(growers)
	for _, g := range growers {
		if g.share == g.active.window && g.share < c.wants(g) && r.affords(g) {
			r.press(g, r.lacking(g), 2*g.share, func(d *device) int { return 2*int(g.share) - r.ledger(d).free })
		}
	}
	r.change()
	if r.next != core.Never {
		c.shareAt(max(r.next, c.now.Add(c.cfg.Share)))
	}
}

// starve notes the switches that g lacks slots on: those of its members, and the one
// that its refusal names; and those of its refusals before, or what has become free
// there would be taken while it waits for others.
func (c *Core) starve(g *group, why *Refusal) {
	if g.active != nil {
		return // it runs meanwhile
	}
	for _, d := range g.round.full {
		if slices.Contains(g.starved, d) {
			continue
		}
		beside := func(l topology.LinkID) bool { return slices.Contains(g.hosts, c.graph.Across(l, d.node)) }
		if d.name == why.Switch || slices.ContainsFunc(c.graph.Adjacent(d.node), beside) {
			g.starved = append(g.starved, d)
		}
	}
	if len(g.starved) > 0 && !slices.Contains(c.starving, g) {
		c.starving = append(c.starving, g)
	}
}
