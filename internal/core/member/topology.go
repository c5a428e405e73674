package member

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// topology is when the neighbours are to be chosen anew.
type topology struct {
	at    core.Time // Never: all is as it should be
	last  core.Time
	open  core.Time // not before
	tried int       // how often in a row random neighbours were not found
	lost  bool      // a neighbour was lost
}

// rearrange is how many times in Tau the neighbours are chosen anew at most
// where nobody was lost.
const rearrange = 4

// want has the neighbours chosen anew: at once if one was lost.
func (t *topology) want(c *Core, lost bool) {
	if lost {
		t.lost = true
		t.soon(c)
		return
	}
	t.at = min(t.at, max(t.last.Add(c.cfg.Tau/rearrange), t.open, c.now))
}

// soon has the neighbours chosen anew at once.
func (t *topology) soon(c *Core) { t.at = min(t.at, max(t.open, c.now)) }

// arrange dials who is missing among the neighbours and releases who is not
// needed any more.
func (c *Core) arrange() {
	t := &c.topology
	if t.at > c.now {
		return
	}
	t.at, t.last = core.Never, c.now
	c.arrangeRing()
	c.arrangeRandom()
	c.appoint()
	t.lost = false
}

// successors returns the Ks next on the ring that the core does not suspect.
func (c *Core) successors() []Index {
	ring := c.view.ring
	at := c.view.place(c.dir, c.key)
	var next []Index
	for k := 1; k < len(ring) && len(next) < c.cfg.Ks; k++ {
		if i := ring[(at+k)%len(ring)]; !c.suspects(i) {
			next = append(next, i)
		}
	}
	return next
}

// before returns the n nodes before the core on the ring, the nearest first. Of the first
// Ks it is a successor.
func (c *Core) before(n int) []Index {
	ring := c.view.ring
	at := c.view.place(c.dir, c.key)
	var last []Index
	for k := 1; k < len(ring) && len(last) < n; k++ {
		last = append(last, ring[(at+len(ring)-k)%len(ring)])
	}
	return last
}

// suspects reports whether the core itself has reported i, at the version in the
// view.
func (c *Core) suspects(i Index) bool {
	return core.Find(c.reports, func(r *Suspicion) bool {
		return r.Suspect == i && r.Reporter == c.key && !r.Version.Before(c.view.nodes[i].version)
	}) != nil
}

// arrangeRing sees to the links to the successors. Links to those that were are
// kept until the new ones stand.
func (c *Core) arrangeRing() {
	next, complete := c.successors(), true
	for _, i := range next {
		switch l := c.linkTo(i); {
		case l == nil && c.probing(i) != nil:
			complete = false // it answers, or is replaced
		case l == nil:
			c.dial(i, gossip.Ring)
			complete = false
			if c.topology.lost { // who was watched by the lost alone is looked after at once
				c.startProbing(suspect{node: i, cause: silent, duty: watching})
			}
		case l.state != standing:
			l.mine |= gossip.Ring
			complete = false
		case l.mine&gossip.Ring == 0:
			c.need(l, l.mine|gossip.Ring)
			if l.duty != watching {
				l.due, l.probed = c.expected(c.cfg.Ks+c.cfg.Kr+1), false
				if c.topology.lost {
					l.due = c.now
				}
			}
		}
	}
	for k := len(c.links) - 1; k >= 0 && complete; k-- {
		if l := &c.links[k]; l.mine&gossip.Ring != 0 && !slices.Contains(next, l.peer) && (l.state == standing || !l.introduces) {
			c.need(l, l.mine&^gossip.Ring)
		}
	}
}

// need changes what a link is needed for, and reports that to the other end.
func (c *Core) need(l *link, need gossip.Need) {
	if l.mine == need {
		return
	}
	l.mine = need
	switch {
	case l.state != standing:
		if need == 0 {
			c.drop(l)
		}
	case need|l.theirs == 0:
		c.release(l)
	default:
		c.send(l, &Message{Type: gossip.Needs, Need: need})
	}
}

// arrangeRandom chooses random neighbours until there are Kr, or all.
func (c *Core) arrangeRandom() {
	have := 0
	for i := range c.links {
		if c.links[i].mine&gossip.Random != 0 {
			have++
		}
	}
	others := len(c.view.ring) - 1
	for tries := 4 * c.cfg.Kr; have < min(c.cfg.Kr, others) && tries > 0; tries-- {
		i := c.view.ring[c.random.Below(len(c.view.ring))]
		if i == c.self || c.probing(i) != nil || c.suspects(i) {
			continue
		}
		switch l := c.linkTo(i); {
		case l == nil:
			c.dial(i, gossip.Random)
		case l.mine&gossip.Random != 0, others > len(c.links):
			continue // there are others, with whom the overlay is denser
		case l.state == standing:
			c.need(l, l.mine|gossip.Random)
		default:
			l.mine |= gossip.Random
		}
		have++
	}
	if have < min(c.cfg.Kr, others) && c.topology.tried < maxTries {
		c.topology.tried++
		c.topology.want(c, false)
	} else if have >= min(c.cfg.Kr, others) {
		c.topology.tried = 0
	}
}

// maxTries is how often in a row random neighbours are looked for in a view that
// has them but may have none to spare.
const maxTries = 8
