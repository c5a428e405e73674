package member

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// flush sends the update to all neighbours, Tau after its first event.
func (c *Core) flush() {
	f := &c.fresh
	if f.empty() || f.due > c.now {
		return
	}
	m := &Message{Type: gossip.Update, Leaves: slices.Clone(f.leaves), Suspicions: slices.Clone(f.suspicions)}
	m.Alives = make([]Entry, 0, len(f.alives))
	for _, i := range f.alives {
		if n := &c.view.nodes[i]; n.fresh {
			n.fresh = false
			m.Alives = append(m.Alives, c.entry(i))
		}
	}
	f.leaves, f.alives, f.suspicions = shrink(f.leaves), shrink(f.alives), shrink(f.suspicions)
	if len(m.Leaves)+len(m.Alives)+len(m.Suspicions) == 0 {
		return
	}
	for i := range c.links {
		if l := &c.links[i]; l.state == standing {
			c.send(l, m)
		}
	}
}

// keepUpdate is how many events an update may have for its memory to be kept.
const keepUpdate = 64

func shrink[T any](s []T) []T {
	if cap(s) > keepUpdate {
		return nil
	}
	return s[:0]
}

// entries returns the view as it is now; it is shared and not to be changed.
func (c *Core) entries() []Entry {
	if c.snapshot == nil {
		c.snapshot = make([]Entry, len(c.view.ring))
		for k, i := range c.view.ring {
			c.snapshot[k] = c.entry(i)
		}
	}
	return c.snapshot
}

// sendBase sends a neighbour the view and the suspicions, and may ask for its.
func (c *Core) sendBase(l *link, answer bool) {
	c.send(l, &Message{Type: gossip.Base, Answer: answer, Alives: c.entries(), Suspicions: slices.Clone(c.reports)})
}

// base takes a neighbour's view. Of whom the neighbour holds alive and the
// core dead, at a version that is not older, the neighbour is notified: one of both
// is wrong, and no update will repair it.
func (c *Core) base(number Link, m *Message) {
	var dead []Entry
	for _, e := range m.Alives {
		if n := c.view.at(c.dir, e.Node); n.state == gone && !n.version.Before(e.Version) {
			dead = append(dead, Entry{Node: e.Node, Version: n.version})
		}
	}
	c.apply(m)
	l := c.link(number)
	if l != nil && len(dead) > 0 {
		c.send(l, &Message{Type: gossip.Dispute, Alives: dead})
	}
	if l != nil && m.Answer {
		c.sendBase(l, false)
	}
}

// disputed takes whom a neighbour holds dead. Who is there is asked, and raises
// its minor; who does not answer is suspected.
func (c *Core) disputed(m *Message) {
	for _, e := range m.Alives {
		switch n := c.view.at(c.dir, e.Node); {
		case e.Node == c.self:
			c.refute(e.Version)
		case n.state == alive && !e.Version.Before(n.version):
			if c.beyond(e.Node, e.Version) {
				e.Version = n.version
			}
			c.startProbing(suspect{node: e.Node, cause: contested, about: e.Version})
		}
	}
}
