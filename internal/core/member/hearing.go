package member

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// question is a probe of a node, which may be held for dead at a version.
func (c *Core) question(i Index, nonce uint32, about Version) *Message {
	return &Message{Type: gossip.Probe, From: c.me(), Target: c.dir.Key(i), Nonce: nonce, About: Entry{Node: i, Version: about}}
}

// How many are asked to probe a node: by datagrams, and over links.
const (
	helpers        = 3
	helpersOnLinks = 4
)

// askOthers has some members probe a node.
func (c *Core) askOthers(d *suspect) {
	m := &Message{Type: gossip.Relay, From: c.me(), Nonce: d.nonce, About: Entry{Node: d.node, Version: d.about}}
	ring := c.view.ring
	stride := max(1, len(ring)/helpers) // three that are far from each other
	d.asked = nil
	for k, from := 0, c.random.Below(len(ring)); k < min(helpers, len(ring)); k++ {
		if i := ring[(from+k*stride)%len(ring)]; i != c.self && i != d.node && c.answers(i) {
			c.packet(i, m)
			d.asked = append(d.asked, i)
		}
	}
}

// askNeighbours has some neighbours probe a node, over links: datagrams from and
// to the core may get lost, all of them.
func (c *Core) askNeighbours(d *suspect) {
	m := &Message{Type: gossip.Relay, From: c.me(), Nonce: d.nonce, About: Entry{Node: d.node, Version: d.about}}
	if len(c.links) == 0 {
		return
	}
	left := helpersOnLinks
	for k, from := 0, c.random.Below(len(c.links)); k < len(c.links) && left > 0; k++ {
		if l := &c.links[(from+k)%len(c.links)]; l.state == standing && l.peer != d.node && c.answers(l.peer) {
			c.send(l, m)
			left--
		}
	}
}

// answers reports whether it makes sense to ask a node about another: it is not
// one that has not answered itself.
func (c *Core) answers(i Index) bool {
	d := c.probing(i)
	return d == nil || !d.late(c.now)
}

// inquiry is a connection that was dialled to ask whether a node is there.
type inquiry struct {
	link  Link
	about Index
	nonce uint32 // of the suspect or the relay that it is for
	dead  Version
	end   core.Time
}

// inquire asks a node over a connection: over the link that there is, which is
// as good as an answer once it stands, or one that is dialled for that.
func (c *Core) inquire(i Index, nonce uint32, dead Version) {
	if l := c.linkTo(i); l != nil {
		if l.state == standing {
			c.send(l, c.question(i, nonce, dead))
		}
		return
	}
	q := inquiry{c.nextLink, i, nonce, dead, c.now.Add(min(c.cfg.Grace, c.cfg.Connect/2))}
	c.nextLink += 2
	c.inquiries = append(c.inquiries, q)
	c.dir.Hold(i)
	c.out.Dials = append(c.out.Dials, Dial{q.link, i})
}

// inquired takes what has happened to a connection of an inquiry, and reports
// whether it is one.
func (c *Core) inquired(number Link, kind InputKind, m *Message) bool {
	k := slices.IndexFunc(c.inquiries, func(q inquiry) bool { return q.link == number })
	if k < 0 {
		return false
	}
	q := c.inquiries[k]
	switch kind {
	case Connected:
		c.out.Sends = append(c.out.Sends, Send{number, c.question(q.about, q.nonce, q.dead)})
	case Received:
		if m.Type == gossip.Echo {
			c.echoed(m)
		}
	default: // nobody is there who would answer
		c.endInquiry(k)
		c.refusedInquiry(q.nonce)
	}
	return true
}

// refusedInquiry notes that nobody takes connections where a node should be.
func (c *Core) refusedInquiry(nonce uint32) {
	for k := range c.suspected {
		if d := &c.suspected[k]; d.nonce == nonce {
			d.refused = true
			c.evidence(d)
		}
	}
	for k := range c.relays {
		if r := &c.relays[k]; r.nonce == nonce {
			r.end = max(r.least, c.now)
		}
	}
}

func (c *Core) endInquiry(k int) {
	c.dir.Release(c.inquiries[k].about)
	c.inquiries = slices.Delete(c.inquiries, k, k+1)
}

// closeInquiries ends the connections of inquiries whose time is over, or that
// nobody wants to know of any more.
func (c *Core) closeInquiries() {
	for k := len(c.inquiries) - 1; k >= 0; k-- {
		q := &c.inquiries[k]
		wanted := slices.ContainsFunc(c.suspected, func(d suspect) bool { return d.nonce == q.nonce }) ||
			slices.ContainsFunc(c.relays, func(r relay) bool { return r.nonce == q.nonce })
		if !wanted || q.end <= c.now {
			c.out.Closes = append(c.out.Closes, q.link)
			c.endInquiry(k)
		}
	}
}

// probed answers a probe that means the core, on the link that it came on, 0 for
// a datagram. Who asks may hold it for dead.
func (c *Core) probed(m *Message, on Link) {
	if m.Type == gossip.Probe && m.Target != c.key {
		return // it means who was at this endpoint before
	}
	c.refute(m.About.Version)
	if c.claimed(Entry{Node: c.self, Version: m.About.Version}); c.stopped {
		return
	}
	c.reply(m.From.Node, on, &Message{Type: gossip.Echo, From: c.me(), Nonce: m.Nonce})
}

// reply answers on a link, or by a datagram where the question came by one.
func (c *Core) reply(to Index, on Link, m *Message) {
	if on == 0 {
		c.packet(to, m)
	} else if l := c.link(on); l != nil {
		c.send(l, m)
	}
}

// echoed takes the news that a node has answered. What answers nothing that the
// core has asked lately may be repeated by anybody, long after the node died and
// was forgotten, and is no news.
func (c *Core) echoed(m *Message) {
	who := m.From.Node
	if who == Nobody {
		return
	}
	for k := range c.suspected {
		switch d := &c.suspected[k]; {
		case d.nonce != m.Nonce:
		case d.node == who:
			if c.processAlive(m.From); !c.stopped {
				c.settle(who)
			}
			return
		case slices.Contains(d.before, who):
			d.covered = true
			c.processAlive(m.From)
			return
		}
	}
	for k := range c.relays {
		if r := c.relays[k]; r.nonce == m.Nonce && r.about == who {
			c.processAlive(m.From)
			c.relays = slices.Delete(c.relays, k, k+1)
			if c.letGo(r); r.asker != c.self {
				c.reply(r.asker, r.on, &Message{Type: gossip.Echo, From: m.From, Nonce: r.theirs})
			}
			return
		}
	}
}

// nacked takes the news that another cannot reach a probed node either.
func (c *Core) nacked(m *Message) {
	for k := range c.suspected {
		d := &c.suspected[k]
		if d.nonce == m.Nonce && d.step > firstRelay && m.From.Node != Nobody && c.says(m.From.Node, c.silence(m.Nonce, c.self, d.node), m.Proof) {
			c.testifies(d, c.dir.Key(m.From.Node))
		}
	}
}

// relay is a probe on behalf of another; or of the core itself, about somebody
// who is not in the view.
type relay struct {
	asker, about  Index
	on            Link // that the answer goes on; 0: a datagram
	theirs, nonce uint32
	dead          Version
	left          int // further probes
	next          core.Time
	least, end    core.Time // of the time that the node has to answer
}

func (r *relay) due() core.Time {
	if r.left > 0 {
		return min(r.next, r.end)
	}
	return r.end
}

// The bounds of the probes at a time that are on behalf of others, and of those
// of who asks for discovery.
const (
	maxRelays  = 64
	maxCallers = 4096
)

// A relay is this many probes, this part of Confirm apart; for who asks over a
// link, the node is asked over a connection, too, for this part of Grace.
const (
	probesInRelay = 3
	relayPause    = 8
	relayOnLink   = 4
)

// relay probes a node for another, over the kind of connection that it was asked
// over, too.
func (c *Core) relay(m *Message, on Link) {
	switch about := m.About.Node; {
	case about == c.self:
		c.probed(m, on)
	case on == 0 && !c.view.has(m.From.Node): // anybody may have named its address
	case about != Nobody && len(c.relays)-c.callers() < maxRelays:
		r := relay{asker: m.From.Node, on: on, about: about, dead: m.About.Version, theirs: m.Nonce, left: probesInRelay - 1}
		r.least = c.now.Add(c.cfg.Confirm / 2)
		if r.end = r.least; on != 0 {
			r.end = max(r.least, c.now.Add(c.cfg.Grace/relayOnLink))
		}
		c.probeFor(r)
	}
}

// callers returns how many of those who ask for discovery are being probed.
func (c *Core) callers() (n int) {
	for i := range c.relays {
		if c.relays[i].asker == c.self {
			n++
		}
	}
	return n
}

// callBack probes who asks for discovery and is not in the view: only its answer
// brings it there, since a request may be a copy of an old one.
func (c *Core) callBack(i Index) {
	asked := func(r relay) bool { return r.asker == c.self && r.about == i }
	if c.callers() < maxCallers && !slices.ContainsFunc(c.relays, asked) {
		end := c.now.Add(c.cfg.Grace)
		c.probeFor(relay{asker: c.self, about: i, dead: c.view.at(c.dir, i).version, least: end, end: end})
	}
}

// probeFor probes a node, which may be dead at a version, for who has asked.
func (c *Core) probeFor(r relay) {
	r.nonce, r.next = uint32(c.random.Uint64()), c.now.Add(c.cfg.Confirm/relayPause)
	c.relays = append(c.relays, r)
	c.dir.Hold(r.asker)
	c.dir.Hold(r.about)
	c.packet(r.about, c.question(r.about, r.nonce, r.dead))
	if r.on != 0 {
		c.inquire(r.about, r.nonce, r.dead)
	}
}

// answerAbout answers those who asked about a node with which a link stands now.
func (c *Core) answerAbout(i Index) {
	e := c.entry(i)
	c.relays = slices.DeleteFunc(c.relays, func(r relay) bool {
		if r.about != i || r.asker == c.self || r.dead != (Version{}) && !r.dead.Before(e.Version) {
			return false
		}
		c.letGo(r)
		c.reply(r.asker, r.on, &Message{Type: gossip.Echo, From: e, Nonce: r.theirs})
		return true
	})
}

func (c *Core) letGo(r relay) {
	c.dir.Release(r.asker)
	c.dir.Release(r.about)
}

// askOn repeats the probes on behalf of others, and reports who has asked where
// there was no answer.
func (c *Core) askOn() {
	c.relays = slices.DeleteFunc(c.relays, func(r relay) bool {
		if r.end > c.now {
			return false
		}
		if c.letGo(r); r.asker != c.self {
			m := &Message{Type: gossip.Nack, From: c.me(), Nonce: r.theirs}
			m.Proof = c.sign(c.silence(r.theirs, r.asker, r.about))
			c.reply(r.asker, r.on, m)
		}
		return true
	})
	for k := range c.relays {
		if r := &c.relays[k]; r.left > 0 && r.next <= c.now {
			r.left--
			r.next = c.now.Add(c.cfg.Confirm / relayPause)
			c.packet(r.about, c.question(r.about, r.nonce, r.dead))
		}
	}
}
