package manager

import (
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// firstWindow returns the window that a round for g begins with: that of the tree
// before, which its operations run with, or else a small one, which grows when they
// need it.
func (c *Core) firstWindow(g *group) uint32 {
	return c.within(g, max(g.window, c.cfg.StartWindow))
}

// within returns as much of a window as g may have: what it has asked for, and its
// quota.
func (c *Core) within(g *group, window uint32) uint32 {
	w := min(window, g.spec.Window)
	for c.cfg.GroupSlots > 0 && 2*int(w) > c.cfg.GroupSlots {
		w /= 2
	}
	return max(w, c.smallest(g))
}

// borne returns as much of a window as the queues of all switches on the packets'
// way bear, those that only forward included. What a new graph does not have counts as none, until the tree
// gives way for that.
func (c *Core) borne(t *pathsel.Tree, window uint32) uint32 {
	bears := func(n topology.NodeID) {
		if n == topology.NoNode || !c.graph.IsSwitch(n) {
			return
		}
		for most := c.device(n).capability.Window; most > 0 && int(window) > most; {
			window /= 2
		}
	}
	for _, v := range t.Vertices {
		bears(v.Switch)
	}
	for _, r := range t.Routes {
		for _, l := range r.Links {
			if l == topology.NoLink {
				continue
			}
			for _, end := range c.graph.Link(l).Ends {
				bears(end.Node)
			}
		}
	}
	return window
}

// smallest returns the smallest window that g is given.
func (c *Core) smallest(g *group) uint32 { return min(g.spec.Window, c.cfg.MinWindow) }

// leastFree returns the slots that g can have at each of its members' switches:
// of those that one host can choose among the most counts. Members that have
// none do not count: a tree has to do without their switches.
func (c *Core) leastFree(g *group) int {
	least := int(^uint(0) >> 1)
	for _, host := range g.hosts {
		most := 0
		for _, link := range c.graph.Adjacent(host) {
			if n := c.graph.Across(link, host); c.graph.IsSwitch(n) {
				if d := c.device(n); d.usable() && d.capability.CanReduce() {
					most = max(most, d.freeFor(g.id))
				}
			}
		}
		if most > 0 {
			least = min(least, most)
		}
	}
	return least
}
