package manager

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// comeback is that a host got links back. Trees that were planned without one are reviewed
// sooner than after other changes of the fabric, since nobody else's are; and the later, the
// more often that has come of late.
type comeback struct {
	last  core.Time
	times int       // within Config.Settle of each other
	due   core.Time // of the review; core.Never: it was made
}

// comesBack has the trees of a host's groups reviewed after a while.
func (c *Core) comesBack(host string) {
	b := c.returns[host]
	if b == nil {
		b = &comeback{due: core.Never}
		if c.returns == nil {
			c.returns = map[string]*comeback{}
		}
		c.returns[host] = b
	}
	if b.due == core.Never { // else both ends of a link, or several members of the host, say so
		if c.now.Sub(b.last) > c.cfg.Settle {
			b.times = 0
		}
		b.times++
	}
	wait := c.cfg.RailSettle
	for i := 1; i < b.times && wait < c.cfg.Settle; i++ {
		wait *= 2
	}
	b.last, b.due = c.now, c.now.Add(min(wait, c.cfg.Settle))
	c.awaitReturns()
}

// awaitReturns sets the timer, and forgets what was long ago.
func (c *Core) awaitReturns() {
	at := core.Never
	for host, b := range c.returns {
		if b.due == core.Never && c.now.Sub(b.last) > c.cfg.Settle {
			delete(c.returns, host)
		}
		at = at.Earlier(b.due)
	}
	c.timers.Set(&c.returning, at)
}

// reviewReturns reviews the trees of the hosts whose time has come. Those of a group that
// is busy are reviewed later.
func (c *Core) reviewReturns() {
	due := map[string]*comeback{}
	for host, b := range c.returns {
		if b.due <= c.now {
			due[host], b.due = b, core.Never
		}
	}
	for _, id := range c.order {
		g := c.groups[id]
		if g.active == nil && g.building == nil || slices.Contains(c.reviews, id) {
			continue
		}
		for _, name := range g.spec.Members {
			if b := due[name]; b == nil {
				continue
			} else if g.active == nil || c.now < g.notBefore || c.isBusy(g) {
				b.due = c.now.Add(c.cfg.RailSettle)
			} else if g.active.makeshift || c.crowded(g) {
				c.reviews = append(c.reviews, id)
			}
			break
		}
	}
	c.awaitReturns()
	c.nextReview()
}

// compareRails takes what has become of a member's rails: one that is down explains that
// the member has lost a tree, so that no switch is suspected; one that is back may serve
// trees again.
func (c *Core) compareRails(g *group, rank uint32, before []Rail) {
	m := &g.members[rank]
	faults := func(rails []Rail, r *Rail) (is, known bool) {
		i := slices.IndexFunc(rails, func(o Rail) bool { return o.Address == r.Address })
		return i >= 0 && rails[i].Fault != "", i >= 0
	}
	for i := range m.rails {
		r := &m.rails[i]
		was, known := faults(before, r)
		switch {
		case r.Fault != "":
			c.trustBeneath(g, rank, r)
		case was || !known && len(before) > 0:
			c.comesBack(g.spec.Members[rank])
		}
	}
}

// trustBeneath has nobody suspect the switch at the other end of a member's rail any more,
// for what the member has said.
func (c *Core) trustBeneath(g *group, rank uint32, r *Rail) {
	host := g.hosts[rank]
	if host == topology.NoNode {
		return
	}
	for _, l := range c.graph.Adjacent(host) {
		if to := c.graph.Across(l, host); c.graph.AddressAt(l, host) == r.Address && c.graph.IsSwitch(to) {
			g.suspects = slices.DeleteFunc(g.suspects, func(s suspect) bool { return s.rank == rank && s.on == c.device(to) })
		}
	}
}
