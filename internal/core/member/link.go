package member

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// linkState is how far a link has come.
type linkState uint8

const (
	dialing  linkState = iota // asked for
	greeting                  // connected, Hello sent
	awaiting                  // accepted, no Hello yet
	standing                  // greeted by both
)

// link is a connection, and the neighbour at its other end.
type link struct {
	number      Link
	peer        Index // Nobody while awaiting
	incarnation uint64
	state       linkState
	mine        gossip.Need // what the core needs it for
	theirs      gossip.Need
	since       core.Time // when it was dialled or accepted

	tag, peerTag uint32 // in heartbeats from and to the peer
	sent, seen   uint32 // the last heartbeats' sequence numbers

	ours    uint64 // the state that the peer's was compared with last
	differs bool   // a heartbeat since has reported another
	agreed  uint8  // heartbeats after that that have not

	duty   duty
	turns  uint8
	due    core.Time // watching: when the peer's silence is noticed
	probed bool      // it was

	claims     int     // that it was the first to make
	introduces bool    // it was dialled for the view of who has answered
	listed     bool    // the peer knows whether it watches the core
	before     []Index // those that the peer names before the core among its watchers and deputies
}

// next returns when the link wants a step.
func (l *link) next(c *Core) core.Time {
	switch {
	case l.state != standing:
		return l.since.Add(c.cfg.Connect)
	case l.watched() && !l.probed:
		return l.due
	}
	return core.Never
}

// watched reports whether the peer's silence is to be noticed: where it sends
// heartbeats, and where it ought to, since the core is its predecessor.
func (l *link) watched() bool { return l.duty == watching || l.mine&gossip.Ring != 0 }

func (c *Core) link(number Link) *link {
	return core.Find(c.links, func(l *link) bool { return l.number == number })
}

// linkTo returns the link to a node, or nil.
func (c *Core) linkTo(i Index) *link {
	return core.Find(c.links, func(l *link) bool { return l.peer == i })
}

func (c *Core) send(l *link, m *Message) { c.out.Sends = append(c.out.Sends, Send{l.number, m}) }

// dial begins a link to i.
func (c *Core) dial(i Index, need gossip.Need) {
	c.links = append(c.links, link{
		number: c.nextLink, peer: i, state: dialing, mine: need, since: c.now, tag: uint32(c.random.Uint64()),
	})
	c.out.Dials = append(c.out.Dials, Dial{c.nextLink, i})
	c.nextLink += 2
}

// connected greets who was dialled.
func (c *Core) connected(number Link) {
	if l := c.link(number); l != nil && l.state == dialing {
		l.state = greeting
		c.send(l, &Message{Type: gossip.Hello, From: c.me(), Target: c.dir.Key(l.peer), Need: l.mine, Tag: l.tag, Birth: c.record(c.self, c.version.Incarnation)})
	}
}

// frame takes what came on a link.
func (c *Core) frame(number Link, m *Message) {
	l := c.link(number)
	if l == nil {
		return
	}
	switch {
	case m.Type == gossip.Hello && l.state == awaiting:
		c.greeted(number, m)
	case m.Type == gossip.Welcome && l.state == greeting:
		c.welcomed(number, m)
	case m.Type == gossip.Refuse && l.state == greeting:
		c.refused(number, m)
	case m.Type == gossip.Probe && l.state == awaiting && !c.hiding(): // an inquiry
		c.probed(m, number)
	case l.state != standing:
		c.drop(l)
	case m.Type == gossip.Base:
		c.base(number, m)
	case m.Type == gossip.Update:
		c.apply(m)
	case m.Type == gossip.Dispute:
		c.disputed(m)
	case m.Type == gossip.Needs:
		l.theirs = m.Need
		c.release(l)
		c.topology.want(c, false)
	case m.Type == gossip.Watchers:
		c.appointed(l, m)
	case m.Type == gossip.Probe:
		c.probed(m, number)
	case m.Type == gossip.Echo:
		c.echoed(m)
	case m.Type == gossip.Relay:
		c.relay(m, number)
	case m.Type == gossip.Nack:
		c.nacked(m)
	case m.Type == gossip.Wants:
		c.serve(l, m)
	case m.Type == gossip.Births:
		c.born(number, m)
	case m.Type == gossip.Goodbye:
		c.out.Closes = append(c.out.Closes, l.number)
		c.forget(l)
	}
}

// greeted takes the first frame of who has connected.
func (c *Core) greeted(number Link, m *Message) {
	if reason, at := c.judge(m); reason != 0 {
		c.send(c.link(number), &Message{
			Type: gossip.Refuse, From: c.me(), Reason: reason,
			About: Entry{Node: m.From.Node, Version: at}, Birth: c.record(m.From.Node, at.Incarnation),
		})
		c.drop(c.link(number))
		return
	}
	need := gossip.Need(0)
	if old := c.linkTo(m.From.Node); old != nil {
		need = old.mine
		c.drop(old)
	}
	l := c.link(number)
	l.peer, l.incarnation, l.mine, l.theirs = m.From.Node, m.From.Version.Incarnation, need, m.Need
	l.peerTag, l.tag = m.Tag, uint32(c.random.Uint64())
	c.send(l, &Message{Type: gossip.Welcome, From: c.me(), Need: l.mine, Tag: l.tag, Birth: c.record(c.self, c.version.Incarnation)})
	c.stand(l)
}

// judge returns why a link is refused, 0 if it is not, and for Dead the version
// at which the other is held dead.
func (c *Core) judge(m *Message) (gossip.Reason, Version) {
	from := m.From.Node
	if m.Target != c.key || from == c.self || c.hiding() {
		return gossip.Stranger, Version{}
	}
	c.meet(m)
	if c.view.at(c.dir, from).state == unknown {
		return gossip.Stranger, Version{}
	}
	if !c.view.has(from) {
		return gossip.Dead, c.view.nodes[from].version
	}
	if c.view.nodes[from].version.Incarnation != m.From.Version.Incarnation {
		return gossip.Dead, c.view.nodes[from].version
	}
	old := c.linkTo(from)
	if old != nil && c.key < c.dir.Key(from) && old.number&1 == 0 && (old.state != standing || c.now.Sub(old.since) < 2*c.cfg.Connect) {
		return gossip.Crossed, Version{} // also where the other's Hello was under way when ours was taken
	}
	if old == nil && m.Need == gossip.Random && c.chosen() >= 2*c.cfg.Kr {
		return gossip.Full, Version{}
	}
	return 0, Version{}
}

// meet takes who is at the other end of a link.
func (c *Core) meet(m *Message) {
	if c.acquaint(m.From.Node, m.From.Version.Incarnation, m.Birth) {
		c.believe(m.From.Node, m.From.Version.Incarnation)
	}
	c.processAlive(m.From)
}

// chosen counts who has chosen the core as a random neighbour.
func (c *Core) chosen() int {
	n := 0
	for i := range c.links {
		if c.links[i].theirs&gossip.Random != 0 {
			n++
		}
	}
	return n
}

// welcomed takes the answer that makes a link stand.
func (c *Core) welcomed(number Link, m *Message) {
	l := c.link(number)
	if m.From.Node != l.peer {
		c.drop(l)
		return
	}
	l.incarnation, l.theirs, l.peerTag = m.From.Version.Incarnation, m.Need, m.Tag
	c.meet(m)
	if l = c.link(number); l == nil {
		return
	}
	if n := c.view.at(c.dir, l.peer); n.state != alive { // let it refute that
		if n.state == gone {
			c.send(l, &Message{Type: gossip.Update, Suspicions: []Suspicion{c.accuse(l.peer, n.version)}})
		}
		c.drop(l)
		return
	}
	c.stand(l)
}

// stand makes a link stand.
func (c *Core) stand(l *link) {
	l.state = standing
	c.out.Neighbours = append(c.out.Neighbours, Neighbour{true, l.peer, l.number})
	c.sendBase(l, false)
	c.answerAbout(l.peer)
	c.settle(l.peer)
	c.topology.want(c, false)
}

// refused takes the answer that a link does not stand.
func (c *Core) refused(number Link, m *Message) {
	l := c.link(number)
	peer, need := l.peer, l.mine
	c.drop(l)
	switch m.Reason {
	case gossip.Dead:
		c.refute(m.About.Version)
		if c.acquaint(c.self, m.About.Version.Incarnation, m.Birth); !c.stopped {
			c.claimed(Entry{Node: c.self, Version: m.About.Version})
		}
	case gossip.Stranger:
		c.unreached(peer, need, broken)
	}
}

// broke takes the end of a link that nobody has said goodbye on.
func (c *Core) broke(number Link) {
	l := c.link(number)
	if l == nil {
		return
	}
	was := *l
	c.forget(l)
	switch was.state {
	case standing:
		c.startProbing(suspect{node: was.peer, cause: broken, duty: was.duty, before: was.before})
	case dialing, greeting:
		c.unreached(was.peer, was.mine, broken)
	}
}

// unreached takes a failed dial. Only that of a successor is a suspicion: others
// are simply replaced.
func (c *Core) unreached(peer Index, need gossip.Need, cause grounds) {
	if need&gossip.Ring != 0 && slices.Contains(c.successors(), peer) {
		c.startProbing(suspect{node: peer, cause: cause, duty: watching})
	}
}

// expireLinks ends dials and greetings that take too long.
func (c *Core) expireLinks() {
	for k := 0; k < len(c.links); {
		l := &c.links[k]
		if l.state == standing || l.since.Add(c.cfg.Connect) > c.now {
			k++
			continue
		}
		peer, need := l.peer, l.mine
		c.drop(l)
		if peer != Nobody {
			c.unreached(peer, need, silent)
		}
		k = 0
	}
}

// release closes a link that neither end needs.
func (c *Core) release(l *link) {
	if l.state == standing && l.mine|l.theirs == 0 {
		c.drop(l)
	}
}

// part ends the links to who leaves the view. Who is suspected is reported, so that
// it can refute.
func (c *Core) part(i Index, v Version, why Cause) {
	for l := c.linkTo(i); l != nil; l = c.linkTo(i) {
		if l.state == standing && why == Suspected {
			c.send(l, &Message{Type: gossip.Update, Suspicions: []Suspicion{c.accuse(i, v)}})
		}
		c.drop(l)
	}
}

// reborn ends what there was with earlier incarnations of i.
func (c *Core) reborn(i Index, incarnation uint64) {
	c.suspected = slices.DeleteFunc(c.suspected, func(d suspect) bool { return d.node == i })
	if c.proves() {
		c.disown(i)
	}
	for k := range c.links {
		if l := &c.links[k]; l.peer == i && l.state == standing && l.incarnation != incarnation {
			c.drop(l)
			break
		}
	}
	c.topology.want(c, true)
}

// drop closes a link on purpose: a neighbour that is not reported would probe the
// core. The link may stand at the other end before it does here.
func (c *Core) drop(l *link) {
	if l.state == standing || l.state == greeting {
		c.send(l, &Message{Type: gossip.Goodbye})
	}
	c.out.Closes = append(c.out.Closes, l.number)
	c.forget(l)
}

// forget removes a link. A neighbour is replaced at once; who has not become one
// takes its time, so that two nodes do not refuse each other without end.
func (c *Core) forget(l *link) {
	c.topology.want(c, l.state == standing)
	if l.state == standing {
		c.out.Neighbours = append(c.out.Neighbours, Neighbour{false, l.peer, l.number})
	}
	if c.unasked(l.number); l.introduces {
		c.dir.Release(l.peer)
	}
	at := slices.IndexFunc(c.links, func(k link) bool { return k.number == l.number })
	c.links = slices.Delete(c.links, at, at+1)
	if len(c.links) < cap(c.links)/4 {
		c.links = slices.Clip(slices.Clone(c.links)) // many were introduced at once
	}
}
