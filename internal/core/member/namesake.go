package member

import (
	"bytes"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// namesakes are other nodes of the core's name, at other addresses. One that does
// not answer is an earlier life of the core, or nobody's, and is found dead. One
// that answers is a mistake in somebody's configuration: a core that started
// lately gives way to it, any other reports.
type namesakes struct {
	answers  Index       // one that has just answered; Nobody if none has
	reported gossip.Life // the one that was reported last
}

// newcomer is for how long after its start a core gives way.
const newcomer = 10 * time.Second

// namesake reports whether a node is another one of the core's name.
func (c *Core) namesake(i Index) bool {
	own := c.dir.raw(c.self)
	name := own[:bytes.IndexByte(own, '@')+1]
	return i != c.self && bytes.HasPrefix(c.dir.raw(i), name)
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
