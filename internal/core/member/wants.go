package member

import (
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// want is news of a life that is not proven.
type want struct {
	Entry
	left []Departure // one at most: it has left since
}

// asking is that a neighbour was asked for a birth.
type asking struct {
	incarnation uint64
	link        Link
	until       core.Time
}

// maxWanted bounds the lives of which a neighbour has spoken without proof.
const maxWanted = 1 << 16

// askedFor is how long a neighbour has for its answer before another one is asked.
func (s *Settings) askedFor() time.Duration { return s.Connect }

// miss notes news that came on a link, of a life that is not proven.
func (c *Core) miss(e Entry) {
	l := c.link(c.source)
	if l == nil || l.state != standing {
		return
	}
	w, ok := l.wanted[e.Node]
	switch {
	case ok && !w.Version.Before(e.Version), !ok && len(l.wanted) >= maxWanted:
		return
	case !ok:
		if l.wanted == nil {
			l.wanted = map[Index]want{}
		}
		c.dir.Hold(e.Node)
	}
	if w.Version.Incarnation != e.Version.Incarnation {
		w.left = nil
	}
	w.Entry = e
	l.wanted[e.Node] = w
	c.askBirth(l, e)
}

// askBirth asks for a birth with the next message, unless another is being asked.
func (c *Core) askBirth(l *link, e Entry) {
	if a := c.asking[e.Node]; a.incarnation == e.Version.Incarnation && c.now < a.until {
		c.wants = min(c.wants, a.until)
		return
	}
	until := c.now.Add(c.cfg.askedFor())
	c.asking[e.Node] = asking{e.Version.Incarnation, l.number, until}
	c.wants = min(c.wants, until)
	c.query = append(c.query, Entry{Node: e.Node, Version: Version{Incarnation: e.Version.Incarnation}})
}

// askBirths sends what is to be asked.
func (c *Core) askBirths(number Link) {
	if l := c.link(number); l != nil && len(c.query) > 0 {
		c.send(l, &Message{Type: gossip.Wants, Alives: c.query})
	}
	c.query = nil
}

// askElsewhere asks others who spoke of a life where one has not proven it in time, and
// forgets what that one said.
func (c *Core) askElsewhere() {
	if c.wants > c.now {
		return
	}
	c.wants = core.Never
	maps.DeleteFunc(c.asking, func(i Index, a asking) bool {
		if a.until > c.now {
			return false
		}
		if l := c.link(a.link); l != nil && l.wanted[i].Version.Incarnation == a.incarnation {
			c.unwant(l, i)
		}
		return true
	})
	for k := range c.links {
		l := &c.links[k]
		for _, i := range slices.Sorted(maps.Keys(l.wanted)) {
			c.askBirth(l, l.wanted[i].Entry)
		}
		c.askBirths(l.number)
	}
}

// unwant forgets news of a life.
func (c *Core) unwant(l *link, i Index) {
	if _, ok := l.wanted[i]; ok {
		delete(l.wanted, i)
		c.dir.Release(i)
	}
	if len(l.wanted) == 0 {
		l.wanted = nil
	}
}

// unwantAll forgets what came on a link that ends. Others are asked.
func (c *Core) unwantAll(l *link) {
	for i := range l.wanted {
		c.dir.Release(i)
	}
	l.wanted = nil
	for i, a := range c.asking {
		if a.link == l.number {
			a.until = c.now
			c.asking[i] = a
			c.wants = c.now
		}
	}
}

// born takes births that a neighbour was asked for, and the news that waited for them.
func (c *Core) born(number Link, m *Message) {
	for _, b := range m.Births {
		l := c.link(number)
		if l == nil {
			return // it was one of them
		}
		w, ok := l.wanted[b.Node]
		if !ok || w.Version.Incarnation != b.Incarnation {
			continue
		}
		if !c.acquaint(b.Node, b.Incarnation, b.Record) {
			if c.stopped {
				return
			}
			c.unwant(l, b.Node)
			delete(c.asking, b.Node)
			c.wants = c.now // others may prove it
			continue
		}
		delete(c.asking, b.Node)
		c.believe(b.Node, b.Incarnation)
	}
}

// believe takes the news that waited for a birth.
func (c *Core) believe(i Index, incarnation uint64) {
	c.dir.Hold(i)
	var news []want
	for k := range c.links {
		l := &c.links[k]
		if w, ok := l.wanted[i]; ok && w.Version.Incarnation <= incarnation {
			c.unwant(l, i)
			if w.Version.Incarnation == incarnation {
				news = append(news, w)
			}
		}
	}
	for k := range news {
		c.processAlive(news[k].Entry)
	}
	for k := range news {
		for j := range news[k].left {
			c.processLeave(&news[k].left[j])
		}
	}
	c.dir.Release(i)
}
