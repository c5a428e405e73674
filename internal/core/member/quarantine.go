package member

import (
	"math/bits"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// stealth is the time after a start in which a node reads what is reported and reports
// nothing, so that others find its former life dead before they meet the new
// one.
type stealth struct {
	on    bool
	known bool // others hold its former life for dead
	size  int  // of the group, as others say
	next  core.Time
}

func (c *Core) hiding() bool { return c.stealth.on }

func (c *Core) hide() {
	c.stealth = stealth{on: true, next: c.now}
}

// cycles returns how many times Tau the core hides in a group as large as the
// one that it knows.
func (c *Core) cycles() int {
	return c.cfg.Stealth * bits.Len(uint(max(c.stealth.size, len(c.bootstrap)+1)))
}

// quarantine asks one of the bootstrap set for its view, once each Tau, until the time
// of stealth is over.
func (c *Core) quarantine() {
	s := &c.stealth
	if s.known || c.now.Sub(c.started) >= time.Duration(c.cycles())*c.cfg.Tau || len(c.bootstrap) == 0 {
		c.emerge()
		return
	}
	if s.next > c.now {
		return
	}
	target := c.bootstrap[c.random.Below(len(c.bootstrap))]
	c.packet(target, &Message{Type: gossip.DiscoveryRequest, From: c.me(), Nonce: c.expect(target), Stealth: true, Boot: true})
	s.next = c.now.Add(c.cfg.Tau)
}

// mostCycles bounds for how many times Stealth Tau anybody can make the core hide.
const mostCycles = 20

// overheard takes the size of a view, and perhaps the news that the former life is held
// for dead.
func (c *Core) overheard(m *Message) {
	c.stealth.known = c.stealth.known || m.About.Version != (Version{})
	c.stealth.size = max(c.stealth.size, min(m.Size, 1<<mostCycles-1))
}

// emerge ends the time of stealth.
func (c *Core) emerge() {
	c.stealth.on = false
	c.search.next, c.search.lost = c.now, c.now
	c.topology.open = c.now
	c.topology.want(c, true)
	c.pass()
}
