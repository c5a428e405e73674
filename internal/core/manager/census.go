package manager

// Census counts what a manager has.
type Census struct {
	Groups [OnHosts + 1]int  // by State
	Trees  [TreeGone + 1]int // by Stage
}

// Census counts groups and trees.
func (c *Core) Census() Census {
	var n Census
	for _, id := range c.order {
		g := c.groups[id]
		n.Groups[g.state()]++
		for _, t := range g.trees() {
			n.Trees[t.stage]++
		}
	}
	return n
}
