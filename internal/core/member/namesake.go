package member

import (
	"bytes"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// namesakes are other nodes of the core's name, at other addresses. One that does
// not answer is an earlier life of the core, or nobody's, and is found dead. One
// that answers is a mistake in somebody's configuration: a core that started
// lately gives way to it, any other reports.
type namesakes struct {
	answers  Index       // one that has just answered; Nobody if none has
	reported gossip.Life // the one that was reported last
	asked    Index       // one of which others have spoken; Nobody
	until    core.Time   // when it should have answered
}

// newcomer is for how long after its start a core gives way.
const newcomer = 10 * time.Second

// namesake reports whether a node is another one of the core's name.
func (c *Core) namesake(i Index) bool { return c.sameName(i, c.self) }

func (c *Core) sameName(i, j Index) bool {
	id := c.dir.raw(j)
	name := id[:bytes.IndexByte(id, '@')+1]
	return i != j && bytes.HasPrefix(c.dir.raw(i), name)
}

// namesakesOf returns another member of a node's name, if there is one.
func (c *Core) namesakesOf(i Index) []Entry {
	for _, j := range c.view.ring {
		if c.sameName(j, i) {
			return []Entry{c.entry(j)}
		}
	}
	return nil
}

// yields asks another of the core's name, of which a reply says, before the core connects to
// anybody, who would take it for the other one. It reports whether an answer may yet come.
func (c *Core) yields(others []Entry) bool {
	n := &c.namesakes
	if len(others) == 0 || !c.namesake(others[0].Node) {
		return false
	}
	if i := others[0].Node; n.asked != i {
		if n.asked != Nobody {
			c.dir.Release(n.asked)
		}
		c.dir.Hold(i)
		n.asked, n.until = i, c.now.Add(c.cfg.Grace)
	}
	if c.now >= n.until {
		return false
	}
	c.packet(n.asked, &Message{Type: gossip.DiscoveryRequest, From: c.me(), Nonce: c.expect(n.asked), Boot: true})
	return true
}

// giveWay reports a namesake that has answered, and leaves where the core is
// the one that came later.
func (c *Core) giveWay() {
	i := c.namesakes.answers
	c.namesakes.answers = Nobody
	if i == Nobody || !c.view.has(i) || c.namesakes.reported == c.Life(i) {
		return
	}
	c.namesakes.reported = c.Life(i)
	c.notice(Notice{Kind: Namesake, Node: i, Version: c.Version(i), Life: c.Life(i)})
	if c.now.Sub(c.started) < newcomer {
		c.depart(gossip.Exit{})
	}
}
