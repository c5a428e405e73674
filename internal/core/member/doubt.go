package member

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// grounds are why a node is doubted.
type grounds uint8

const (
	silent    grounds = iota // a heartbeat is overdue, or a dial to a successor is not answered
	contested                // a neighbour holds it for dead
	broken                   // the link failed, or a dial to a successor
)

// doubt is a node that may have failed. It is probed, directly and by others,
// and suspected when it has not answered by the end.
type doubt struct {
	node    Index
	cause   grounds
	duty    duty
	about   Version // the version at which a neighbour holds it for dead; zero if none does
	nonce   uint32
	step    int
	next    core.Time // of the next probe
	pause   time.Duration
	end     core.Time
	relayed bool // others were asked to probe it
	nacked  bool // and one has answered that it cannot reach it either

	before  []Index // standby: one of these that answers reports in the core's place
	covered bool    // one has
}

// Probes follow each other by this part of Confirm; while there is time for more,
// each pause is twice the one before, up to this part of Grace.
const (
	probesInConfirm = 5
	probesInGrace   = 8
)

// The steps of a doubt at which others are asked, and how many are.
const (
	firstRelay, secondRelay = 1, 6
	helpers                 = 3
)

// patienceForLate is how many times the core's own lateness a node may take to
// answer.
const patienceForLate = 4

func (c *Core) doubted(i Index) *doubt {
	for k := range c.doubts {
		if c.doubts[k].node == i {
			return &c.doubts[k]
		}
	}
	return nil
}

// patience returns how long a node is probed. A core that is not well itself
// gives more time.
func (c *Core) patience(cause grounds) time.Duration {
	d := c.cfg.Grace
	if cause == broken { // not shorter than what steps were late by: others are served as slowly
		d = min(max(c.cfg.Confirm, patienceForLate*c.health.late), d)
	}
	return d * time.Duration(1+c.health.score)
}

// doubt begins to probe a node, or hastens it where it is doubted already. Who
// is suspected is probed again only where a neighbour holds it for dead.
func (c *Core) doubt(d doubt) {
	if !c.view.has(d.node) || d.cause != contested && c.suspects(d.node) {
		return
	}
	d.end = c.now.Add(c.patience(d.cause))
	if old := c.doubted(d.node); old != nil {
		if old.about.Before(d.about) { // an answer to what it was asked before does not refute that
			old.about, old.next, old.end = d.about, c.now, max(old.end, c.now.Add(c.cfg.Confirm))
		}
		if d.end < old.end {
			old.end, old.cause, old.next, old.pause = d.end, d.cause, c.now, c.cfg.Confirm/probesInConfirm
		}
		if d.duty != none && old.duty != watching {
			old.duty, old.before = d.duty, d.before
		}
		return
	}
	d.nonce, d.next, d.pause = uint32(c.random.uint64()), c.now, c.cfg.Confirm/probesInConfirm
	if d.cause == contested { // an update may be under way that ends it
		d.next, d.end = c.now.Add(2*c.cfg.Tau), d.end.Add(2*c.cfg.Tau)
		d.pause = c.cfg.Grace / probesInGrace
	}
	c.doubts = append(c.doubts, d)
}

// ask probes the doubted, and suspects who has not answered in time.
func (c *Core) ask() {
	var lost []doubt
	for k := 0; k < len(c.doubts); {
		d := &c.doubts[k]
		if d.end <= c.now {
			lost = append(lost, *d)
			c.doubts = slices.Delete(c.doubts, k, k+1)
			continue
		}
		if d.next <= c.now {
			c.probe(d)
		}
		k++
	}
	for i := range lost {
		c.suspect(&lost[i])
	}
}

// probe sends a doubted node the next probe.
func (c *Core) probe(d *doubt) {
	c.packet(d.node, &Message{Type: gossip.Probe, From: c.me(), Target: c.dir.Key(d.node), Nonce: d.nonce, About: Entry{d.node, d.about}})
	if d.step == 0 && d.duty == standby {
		for _, i := range d.before {
			if i != Nobody && i != c.self && c.view.has(i) {
				c.packet(i, &Message{Type: gossip.Probe, From: c.me(), Target: c.dir.Key(i), Nonce: d.nonce, About: Entry{Node: i}})
			}
		}
	}
	if d.step == firstRelay || d.step == secondRelay {
		c.askOthers(d)
	}
	d.step++
	d.next = c.now.Add(d.pause)
	if d.cause != broken {
		d.pause = min(2*d.pause, max(d.pause, c.cfg.Grace/probesInGrace))
	}
}

// askOthers has some members probe a node.
func (c *Core) askOthers(d *doubt) {
	m := &Message{Type: gossip.Relay, From: c.me(), Nonce: d.nonce, About: Entry{d.node, d.about}}
	ring := c.view.ring
	stride := max(1, len(ring)/helpers) // three that are far from each other
	for k, from := 0, c.random.below(len(ring)); k < min(helpers, len(ring)); k++ {
		if i := ring[(from+k*stride)%len(ring)]; i != c.self && c.doubted(i) == nil {
			c.packet(i, m)
			d.relayed = true
		}
	}
}

// suspect reports a node that has not answered, to the monitors at once where
// that is the core's to do.
func (c *Core) suspect(d *doubt) {
	if d.relayed && !d.nacked {
		c.health.worse(c)
	}
	if !c.view.has(d.node) {
		return
	}
	s := Suspicion{c.key, d.node, c.view.nodes[d.node].version}
	c.processSuspicion(s)
	if d.duty == watching || d.duty == standby && !d.covered {
		c.tellMonitors(&Message{Type: gossip.Update, Suspicions: []Suspicion{s}}, d.node)
	}
	if c.view.has(d.node) && d.held(s.Version) {
		c.remove(d.node, d.about, Suspected, gossip.Exit{})
		c.convict()
	}
}

// held reports whether a neighbour holds the node for dead as it is at v. The
// neighbour has had reporters enough, if of another view; who has not, and finds
// the node silent itself, takes its word. Otherwise two views could stay
// different, as what has convicted a node at one may never come to the other:
// reporters leave, and views of different sizes take different numbers of them.
func (d *doubt) held(v Version) bool { return d.about != Version{} && !d.about.Before(v) }

// settle ends a doubt: the node is there. That it is held for dead by a neighbour
// only a newer version ends.
func (c *Core) settle(i Index) {
	c.doubts = slices.DeleteFunc(c.doubts, func(d doubt) bool { return d.node == i && !d.held(c.Version(i)) })
	l := c.linkTo(i)
	switch {
	case l == nil:
		c.topology.soon(c) // it has just answered: it is dialled, and not doubted again
	case l.doubted:
		l.doubted = false
		for turn := time.Duration(max(1, l.turns)) * c.cfg.beat(); l.due <= c.now; {
			l.due = l.due.Add(turn) // its turns stay where they were
		}
	}
}

// probed answers a probe that means the core. Who asks may hold it for dead.
func (c *Core) probed(m *Message) {
	if m.Type == gossip.Probe && m.Target != c.key {
		return // it means who was at this endpoint before
	}
	c.refute(m.About.Version)
	if c.claimed(m.About.Version); c.stopped {
		return
	}
	c.packet(m.From.Node, &Message{Type: gossip.Echo, From: c.me(), Nonce: m.Nonce})
}

// echoed takes the news that a node has answered. What answers nothing that the
// core has asked lately may be repeated by anybody, long after the node died and
// was forgotten, and is no news.
func (c *Core) echoed(m *Message) {
	who := m.From.Node
	for k := range c.doubts {
		switch d := &c.doubts[k]; {
		case d.nonce != m.Nonce:
		case d.node == who:
			if c.processAlive(who, m.From.Version); !c.stopped {
				c.settle(who)
			}
			return
		case slices.Contains(d.before, who):
			d.covered = true
			c.processAlive(who, m.From.Version)
			return
		}
	}
	for k := range c.relays {
		if r := c.relays[k]; r.nonce == m.Nonce && r.about == who {
			c.processAlive(who, m.From.Version)
			c.relays = slices.Delete(c.relays, k, k+1)
			if c.letGo(r); r.asker != c.self {
				c.packet(r.asker, &Message{Type: gossip.Echo, From: m.From, Nonce: r.theirs})
			}
			return
		}
	}
}

// nacked takes the news that another cannot reach a doubted node either.
func (c *Core) nacked(m *Message) {
	for k := range c.doubts {
		if d := &c.doubts[k]; d.nonce == m.Nonce && d.relayed {
			d.nacked = true
		}
	}
}

// relay is a probe on behalf of another; or of the core itself, about somebody
// who is not in the view.
type relay struct {
	asker, about  Index
	theirs, nonce uint32
	end           core.Time
}

// The bounds of the probes at a time that are on behalf of others, and of those
// of who asks for discovery.
const (
	maxRelays  = 64
	maxCallers = 4096
)

// relay probes a node for another.
func (c *Core) relay(m *Message) {
	if m.About.Node == c.self {
		c.probed(m)
		return
	}
	if len(c.relays)-c.callers() < maxRelays {
		c.probeFor(m.From.Node, m.About, m.Nonce, c.cfg.Confirm/2)
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
		c.probeFor(c.self, Entry{i, c.view.at(c.dir, i).version}, 0, c.cfg.Grace)
	}
}

// probeFor probes a node, which may be dead at a version, for who has asked.
func (c *Core) probeFor(asker Index, about Entry, theirs uint32, patience time.Duration) {
	r := relay{asker, about.Node, theirs, uint32(c.random.uint64()), c.now.Add(patience)}
	c.relays = append(c.relays, r)
	c.dir.Hold(r.asker)
	c.dir.Hold(r.about)
	c.packet(r.about, &Message{Type: gossip.Probe, From: c.me(), Target: c.dir.Key(r.about), Nonce: r.nonce, About: about})
}

func (c *Core) letGo(r relay) {
	c.dir.Release(r.asker)
	c.dir.Release(r.about)
}

// expireRelays tells who has asked that there was no answer.
func (c *Core) expireRelays() {
	c.relays = slices.DeleteFunc(c.relays, func(r relay) bool {
		if r.end > c.now {
			return false
		}
		if c.letGo(r); r.asker != c.self {
			c.packet(r.asker, &Message{Type: gossip.Nack, From: c.me(), Nonce: r.theirs})
		}
		return true
	})
}
