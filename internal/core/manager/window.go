package manager

// What a tree may take of a switch, so that one group with a large window does
// not leave the next ones without slots.
const (
	// slotShare is the share of the free slots of its members' switches that a
	// tree takes at the most, one of so many.
	slotShare = 8
	// ampleWindow is a window that a tree may have whatever else is free: it
	// covers the way through a data centre.
	ampleWindow = 64
)

// firstWindow returns the window that a round for g begins with: that of the
// group, halved until a tree takes no more than its share.
func (c *Core) firstWindow(g *group) uint32 {
	w, free := g.spec.Window, c.leastFree(g)
	for w > ampleWindow && 2*int(w) > free/slotShare {
		w /= 2
	}
	return max(w, min(g.spec.Window, c.cfg.MinWindow))
}

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
