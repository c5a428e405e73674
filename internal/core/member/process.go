package member

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// fresh is the update that is being gathered.
type fresh struct {
	leaves     []Departure
	alives     []Index // node.fresh is set, or the node has left since
	suspicions []Suspicion
	due        core.Time
}

func (f *fresh) empty() bool { return len(f.leaves)+len(f.alives)+len(f.suspicions) == 0 }

// event begins the aggregation interval where the update was empty.
func (c *Core) event() {
	if c.fresh.empty() {
		c.fresh.due = c.now.Add(c.cfg.Tau)
	}
}

func (c *Core) freshAlive(i Index) {
	if n := &c.view.nodes[i]; !n.fresh {
		c.event()
		n.fresh = true
		c.fresh.alives = append(c.fresh.alives, i)
	}
}

func (c *Core) freshLeave(d Departure) {
	c.event()
	c.fresh.leaves = append(c.fresh.leaves, d)
}

func (c *Core) freshSuspicion(s Suspicion) {
	c.event()
	c.fresh.suspicions = append(c.fresh.suspicions, s)
}

// apply takes what a message reports. Leaves come first and suspicions last: so an
// alive that refutes a suspicion is known before it, and a node that came back
// after it left is not taken out again.
func (c *Core) apply(m *Message) {
	for i := range m.Leaves {
		c.processLeave(&m.Leaves[i])
	}
	for i := range m.Alives {
		if c.processAlive(m.Alives[i]); c.stopped {
			return
		}
	}
	for i := range m.Suspicions {
		c.processSuspicion(m.Suspicions[i])
	}
}

// processAlive takes the news that a node is there at a version.
func (c *Core) processAlive(e Entry) {
	if e.Node == c.self {
		c.claimed(e)
		return
	}
	n := c.view.at(c.dir, e.Node)
	if n.state != unknown && !n.version.Before(e.Version) || !c.proven(&e) {
		return
	}
	i, v := e.Node, e.Version
	if b := c.births[i]; b != nil {
		b.minor = e.Proof
	}
	if n.state != alive {
		c.health.hears(c.now, c.dir.Key(i), v)
		c.view.enter(c, i, v)
		c.freshAlive(i)
		c.notice(Notice{Kind: Join, Node: i, Version: v, Life: c.Life(i)})
		c.topology.want(c, false)
		if c.namesake(i) {
			c.startProbing(suspect{node: i, cause: silent, duty: watching})
		}
		return
	}
	c.freshAlive(i)
	c.health.hears(c.now, c.dir.Key(i), v)
	c.refuted(i, v)
	if n.version.Incarnation == v.Incarnation {
		c.view.renew(c, i, v)
		return
	}
	was, life := n.version, c.Life(i)
	c.view.renew(c, i, v)
	c.notice(Notice{Kind: Leave, Cause: Restarted, Node: i, Version: was, Life: life})
	c.notice(Notice{Kind: Join, Node: i, Version: v, Life: c.Life(i)})
	c.reborn(i, v.Incarnation)
}

// refuted removes the suspicions of i that are older than v.
func (c *Core) refuted(i Index, v Version) {
	before := len(c.reports)
	c.reports = slices.DeleteFunc(c.reports, func(s Suspicion) bool { return s.Suspect == i && s.Version.Before(v) })
	if len(c.reports) < before {
		c.topology.want(c, false)
	}
}

// processLeave takes the news that a node has left in order.
func (c *Core) processLeave(d *Departure) {
	if d.Node == c.self {
		if c.provenLeave(d) {
			c.refute(d.Version)
		}
		return
	}
	n := c.view.at(c.dir, d.Node)
	if n.state == alive && d.Version.Before(n.version) || n.state == gone && !n.version.Before(d.Version) || !c.provenLeave(d) {
		return
	}
	switch {
	case n.state == alive:
		c.freshLeave(*d)
		c.remove(d.Node, d.Version, Departed, d.Exit)
	case n.state == gone:
		n.version = d.Version
		c.view.history[n.place].at = c.now
		c.freshLeave(*d)
	}
}

// processSuspicion takes a report that a node has failed.
func (c *Core) processSuspicion(s Suspicion) {
	if s.Suspect == c.self {
		if c.attested(&s) {
			c.refute(s.Version)
		}
		return
	}
	n := c.view.at(c.dir, s.Suspect)
	if n.state != alive || s.Version.Before(n.version) || c.beyond(s.Suspect, s.Version) || c.reported(&s) || !c.attested(&s) {
		return
	}
	c.report(s)
	c.freshSuspicion(s)
	if d := c.probing(s.Suspect); d != nil && s.Reporter != c.key {
		c.testifies(d, s.Reporter)
	}
	if s.Reporter == c.key {
		c.topology.want(c, true) // its place among the successors is another's
	}
	c.convict()
}

// reported reports whether a suspicion is known.
func (c *Core) reported(s *Suspicion) bool {
	r := c.reportOf(s)
	return r != nil && !r.Version.Before(s.Version)
}

// reportOf returns what is known of a reporter about a suspect.
func (c *Core) reportOf(s *Suspicion) *Suspicion {
	for at := c.reportsOf(s.Suspect); at < len(c.reports) && c.reports[at].Suspect == s.Suspect; at++ {
		if r := &c.reports[at]; r.Reporter == s.Reporter {
			return r
		}
	}
	return nil
}

// reportsOf returns where those of a suspect begin, or would.
func (c *Core) reportsOf(suspect Index) int {
	at, _ := slices.BinarySearchFunc(c.reports, suspect, func(r Suspicion, suspect Index) int { return int(r.Suspect) - int(suspect) })
	return at
}

// report stores a suspicion that is new.
func (c *Core) report(s Suspicion) {
	if r := c.reportOf(&s); r != nil {
		*r = s
		return
	}
	at := c.reportsOf(s.Suspect)
	for at < len(c.reports) && c.reports[at].Suspect == s.Suspect {
		at++
	}
	c.reports = slices.Insert(c.reports, at, s)
}

// threshold returns how many reporters it takes now. Suspects do not report, so
// that a view gives no more reporters than it has members who are not suspected:
// in a view that is too small, or where many fail at once, all of these are
// enough, and one always is.
func (c *Core) threshold(suspects int) int {
	return max(1, min(c.cfg.Theta, len(c.view.ring)-suspects))
}

// convict removes whoever is suspected by enough.
func (c *Core) convict() {
	for k := 0; k < len(c.reports); {
		suspects, first, most := 0, 0, 0
		var worst Index
		var version Version
		for from := 0; from < len(c.reports); from = first {
			s := c.reports[from].Suspect
			suspects++
			v := c.reports[from].Version
			for first = from; first < len(c.reports) && c.reports[first].Suspect == s; first++ {
				if v.Before(c.reports[first].Version) {
					v = c.reports[first].Version
				}
			}
			if first-from > most {
				most, worst, version = first-from, s, v
			}
		}
		if most < c.threshold(suspects) {
			return
		}
		c.remove(worst, version, Suspected, gossip.Exit{})
		k = 0
	}
}

// remove takes i out of the view.
func (c *Core) remove(i Index, v Version, why Cause, exit gossip.Exit) {
	c.part(i, v, why)
	life := c.Life(i)
	c.view.leave(c, i, v)
	c.reports = slices.DeleteFunc(c.reports, func(s Suspicion) bool { return s.Suspect == i })
	c.suspected = slices.DeleteFunc(c.suspected, func(d suspect) bool { return d.node == i })
	c.notice(Notice{Kind: Leave, Cause: why, Node: i, Version: v, Life: life, Exit: exit})
	c.view.prune(c)
	c.search.again(c)
	c.topology.want(c, true)
	if c.cfg.Theta > 1 && why == Departed {
		c.convict()
	}
}

// claimed takes what others hold of the core's own node.
func (c *Core) claimed(e Entry) {
	switch {
	case e.Version.Incarnation > c.version.Incarnation && c.proves():
		c.miss(e)
	case e.Version.Incarnation > c.version.Incarnation:
		c.supersede(e.Version)
	case c.version.Before(e.Version):
		c.refute(e.Version)
	}
}

// supersede ends a core whose node has a later life.
func (c *Core) supersede(v Version) {
	c.notice(Notice{Kind: Superseded, Node: c.self, Version: v})
	c.stop()
}

// refute raises the core's own minor above v, which others hold it for dead at,
// and reports it. What is older was refuted before; what is newer nobody can have proven.
func (c *Core) refute(v Version) {
	if v.Incarnation == c.version.Incarnation && !v.Before(c.version) && !c.beyond(c.self, v) {
		c.raise(v.Minor + 1)
	}
}

// raise raises the core's own minor. One that is as large as it can be leaves
// the core nothing but to start anew.
func (c *Core) raise(minor uint32) {
	if minor > gossip.MaxMinor {
		c.supersede(c.version)
		return
	}
	c.version.Minor = minor
	if b := c.births[c.self]; b != nil {
		b.minor = c.sign(statement(saysMinor, uint64(minor)))
	}
	c.view.renew(c, c.self, c.version)
	c.freshAlive(c.self)
}

func (c *Core) notice(n Notice) {
	n.Deaths = c.view.nodes[n.Node].deaths
	c.out.Notices = append(c.out.Notices, n)
}
