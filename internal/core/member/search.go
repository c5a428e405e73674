package member

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// search is the discovery of nodes that are not in the view: those of the
// bootstrap set, and those of the history, which may be behind a partition.
type search struct {
	next   core.Time
	lost   core.Time  // when the view last lost somebody
	sent   [8]request // the last requests; each is answered for a while
	taken  [64]answered
	count  [2]int // of sent and of taken, ever
	raised uint32 // the nonce for which the core's minor was raised
}

// request is a discovery request that was sent.
type request struct {
	nonce  uint32
	target Index
	until  core.Time
}

// answered is a discovery request that was answered: a copy of it is not.
type answered struct {
	from  Index
	nonce uint32
}

// answerable is how long after a request its answers are taken.
const answerable = 10 * time.Second

// expect makes a request's number, by which its answers are known.
func (c *Core) expect(target Index) uint32 {
	s := &c.search
	r := &s.sent[s.count[0]%len(s.sent)]
	s.count[0]++
	*r = request{uint32(c.random.Uint64()), target, c.now.Add(answerable)}
	return r.nonce
}

// requested returns the request of a number, nil if there was none lately.
func (c *Core) requested(nonce uint32) *request {
	return core.Find(c.search.sent[:], func(r *request) bool { return r.nonce == nonce && c.now < r.until })
}

// repeated reports whether a request was answered before, and notes it.
func (s *search) repeated(from Index, nonce uint32) bool {
	a := answered{from, nonce}
	if slices.Contains(s.taken[:min(s.count[1], len(s.taken))], a) {
		return true
	}
	s.taken[s.count[1]%len(s.taken)] = a
	s.count[1]++
	return false
}

// again has the search go on where somebody was lost.
func (s *search) again(c *Core) {
	s.lost = c.now
	s.next = c.now.Add(c.pause(false))
}

// discover sends the request that is due.
func (c *Core) discover() {
	s := &c.search
	if s.next > c.now {
		return
	}
	target, boot := c.target()
	if target == Nobody {
		s.next = core.Never
		return
	}
	c.packet(target, &Message{Type: gossip.DiscoveryRequest, From: c.me(), Nonce: c.expect(target), Boot: boot})
	s.next = c.now.Add(c.pause(boot))
}

// pause draws the time to the next request: from nothing to twice the mean, so
// that the nodes of a view do not ask together.
func (c *Core) pause(boot bool) time.Duration {
	d := c.cfg.Discovery
	mean := min(max(c.now.Sub(c.search.lost)/time.Duration(d.Share), d.First), d.Last)
	if !boot {
		mean *= time.Duration(len(c.view.ring))
	}
	return time.Duration(c.random.Below(int(2*mean/time.Microsecond)+1)) * time.Microsecond
}

// target draws from the bootstrap set without the view, and the history. It
// returns Nobody if there is none.
func (c *Core) target() (i Index, boot bool) {
	var missing []Index
	for _, i := range c.bootstrap {
		if c.view.at(c.dir, i).state == unknown {
			missing = append(missing, i)
		}
	}
	n := len(missing) + len(c.view.history)
	if n == 0 {
		return Nobody, false
	}
	if k := c.random.Below(n); k < len(missing) {
		return missing[k], true
	} else {
		return c.view.history[k-len(missing)].node, false
	}
}

// asked answers a discovery request. Who asks somebody out of its history was
// asked, or is, out of the other's: a new minor makes each known to the other.
func (c *Core) asked(m *Message) {
	if m.From.Node == c.self {
		if r := c.requested(m.Nonce); r != nil {
			c.met(r.target, c.self)
		}
		return
	}
	if c.search.repeated(m.From.Node, m.Nonce) {
		return
	}
	reply := &Message{Type: gossip.DiscoveryReply, Nonce: m.Nonce, Boot: m.Boot}
	if !m.Stealth {
		if !m.Boot {
			c.raise(c.version.Minor + 1)
		}
		if c.view.has(m.From.Node) {
			c.processAlive(m.From)
		} else {
			c.callBack(m.From.Node)
		}
	}
	if n := c.view.at(c.dir, m.From.Node); n.state == gone {
		reply.About.Version = n.version
	}
	reply.From, reply.Size, reply.Alives = c.me(), len(c.view.ring), c.namesakesOf(m.From.Node)
	c.proveIn(reply)
	c.packet(m.From.Node, reply)
}

// found takes the answer. The view comes over a link.
func (c *Core) found(m *Message) {
	r := c.requested(m.Nonce)
	if r == nil {
		return // nobody has asked, or somebody repeats what was answered to another
	}
	c.met(r.target, m.From.Node)
	if c.hiding() {
		c.overheard(m)
		return
	}
	if !m.Boot && c.search.raised != m.Nonce {
		c.search.raised = m.Nonce
		c.raise(c.version.Minor + 1)
	}
	c.refute(m.About.Version)
	if c.meet(m); c.stopped || m.From.Node == c.self {
		return
	}
	switch {
	case c.namesake(m.From.Node):
		if c.view.has(m.From.Node) {
			c.namesakes.answers = m.From.Node
		}
	case !c.yields(m.Alives) && c.linkTo(m.From.Node) == nil:
		c.introduce(m.From.Node)
	}
}

// proveIn adds the core's birth to a reply that has room for it.
func (c *Core) proveIn(reply *Message) {
	record, size := c.record(c.self, c.version.Incarnation), len(c.dir.raw(c.self))
	for _, e := range reply.Alives {
		size += len(c.dir.raw(e.Node))
	}
	if len(record)+size <= gossip.MaxReply {
		reply.Birth = record
	}
}

// introduce dials who has answered, which need not be proven yet. The link stands until it
// has brought the view.
func (c *Core) introduce(i Index) {
	c.dial(i, gossip.Ring)
	c.dir.Hold(i)
	c.links[len(c.links)-1].introduces = true
}

// met learns who is at the address that was asked, where only that was known.
func (c *Core) met(asked, i Index) {
	k := slices.Index(c.bootstrap, asked)
	if k < 0 || i == c.bootstrap[k] || !c.dir.ID(c.bootstrap[k]).Anonymous() {
		return
	}
	c.dir.Release(c.bootstrap[k])
	if i == c.self || slices.Contains(c.bootstrap, i) {
		c.bootstrap = slices.Delete(c.bootstrap, k, k+1)
		return
	}
	c.dir.Hold(i)
	c.bootstrap[k] = i
}
