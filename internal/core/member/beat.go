package member

import (
	"cmp"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// duty is what a neighbour has asked the core to do for it.
type duty uint8

const (
	none     duty = iota
	watching      // it expects heartbeats, and reports to the monitors
	standby       // it reports to the monitors if none of those before it can
)

// beats are the core's own heartbeats, to its watchers in turn.
type beats struct {
	watchers []Index // Ks + Kr at most
	deputies []Index // the other neighbours
	next     core.Time
	turn     int
}

// slack is how late a heartbeat may be, in parts of the interval.
const slack = 25

// beat returns the time between two heartbeats that a node sends.
func (s *Settings) beat() time.Duration { return s.Heartbeat / time.Duration(s.Ks+s.Kr) }

// list returns the message that says to a neighbour who watches the core.
func (b *beats) list() *Message {
	return &Message{Type: gossip.Watchers, Watchers: slices.Concat(b.watchers, b.deputies)}
}

// appoint chooses the watchers among the neighbours: the next predecessors, and
// random neighbours, of whom those stay that are. The others are deputies: each
// stands in for all before it.
func (c *Core) appoint() {
	b := &c.beats
	was, posts := *b, c.candidates()
	n := min(c.cfg.Ks+c.cfg.Kr, len(posts))
	b.watchers, b.deputies = inOrder(was.watchers, posts[:n]), inOrder(was.deputies, posts[n:])
	switch {
	case n == 0:
		b.next = core.Never
		return
	case b.next == core.Never:
		b.next = c.now.Add(time.Duration(c.random.Below(int(c.cfg.beat()))))
	}
	var m *Message
	for i := range c.links {
		if l := &c.links[i]; l.state == standing && b.news(&was, l) {
			if m == nil {
				m = b.list()
			}
			l.listed = true
			c.send(l, m)
		}
	}
}

// candidates returns the neighbours, the best watchers first.
func (c *Core) candidates() []Index {
	var posts []Index
	for i := range c.links {
		if l := &c.links[i]; l.state == standing {
			posts = append(posts, l.peer)
		}
	}
	rank := func(i Index) uint64 {
		l := c.linkTo(i)
		switch {
		case l.theirs&gossip.Ring != 0:
			return uint64(c.key-c.dir.Key(i)) >> 2 // by distance
		case slices.Contains(c.beats.watchers, i):
			return 1 << 62
		case (l.mine|l.theirs)&gossip.Random != 0:
			return 1<<62 + 1
		}
		return 1<<62 + 2
	}
	slices.SortStableFunc(posts, func(i, j Index) int { return cmp.Compare(rank(i), rank(j)) })
	return posts
}

// inOrder returns those of posts that were there in the order in which they
// were, and then the others.
func inOrder(was, posts []Index) []Index {
	var list []Index
	for _, i := range was {
		if slices.Contains(posts, i) {
			list = append(list, i)
		}
	}
	for _, i := range posts {
		if !slices.Contains(was, i) {
			list = append(list, i)
		}
	}
	return list
}

// news reports whether a neighbour must know of the new list: its own duty has
// changed, or it stands in for others than before.
func (b *beats) news(was *beats, l *link) bool {
	at := slices.Index(b.deputies, l.peer)
	before := slices.Index(was.deputies, l.peer)
	if !l.listed || at < 0 != (before < 0) {
		return true
	}
	if at < 0 {
		return false // it watches, as it did
	}
	for _, i := range slices.Concat(b.watchers, b.deputies[:at]) {
		if !slices.Contains(was.watchers, i) && !slices.Contains(was.deputies[:before], i) {
			return true
		}
	}
	return len(b.watchers)+at != len(was.watchers)+before
}

// pulse sends the heartbeat that is due.
func (c *Core) pulse() {
	b := &c.beats
	if b.next > c.now {
		return
	}
	if b.next = b.next.Add(c.cfg.beat()); b.next <= c.now {
		b.next = c.now.Add(c.cfg.beat())
	}
	b.turn = (b.turn + 1) % len(b.watchers)
	if l := c.linkTo(b.watchers[b.turn]); l != nil && l.state == standing {
		l.sent++
		c.out.Pulses = append(c.out.Pulses, Pulse{l.peer, gossip.Pulse{
			Tag: l.peerTag, Sequence: l.sent, Turns: uint8(len(b.watchers)), View: quarter(c.fingerprint(), l.sent),
		}})
	}
}

// appointed takes who watches a neighbour.
func (c *Core) appointed(l *link, m *Message) {
	at := slices.Index(m.Watchers, c.self)
	l.before = m.Watchers[:max(at, 0)]
	most := min(c.cfg.Ks+c.cfg.Kr, len(m.Watchers))
	was := l.duty
	switch {
	case at < 0:
		l.duty = none
	case at >= most:
		l.duty = standby
	default:
		l.duty = watching
	}
	if (l.duty == watching) != (was == watching) {
		l.turns = uint8(most)
		l.due, l.probed = c.expected(most+1), false
	}
}

// expected returns when so many heartbeats from now are overdue.
func (c *Core) expected(turns int) core.Time {
	return c.now.Add(time.Duration(turns)*c.cfg.beat() + c.cfg.Heartbeat/slack)
}

// heard takes a heartbeat.
func (c *Core) heard(p *gossip.Pulse) {
	for i := range c.links {
		l := &c.links[i]
		if l.tag != p.Tag || l.state != standing {
			continue
		}
		if int32(p.Sequence-l.seen) <= 0 {
			return
		}
		l.seen, l.turns = p.Sequence, min(max(1, p.Turns), maxWatchers)
		l.due = c.expected(int(l.turns))
		if l.probed {
			c.settle(l.peer)
		}
		c.compare(l, p)
		return
	}
}

// fingerprint returns a digest of the view and of what is suspected of it. While
// Theta reporters are wanted, views that are equal must have equal suspicions to
// stay so.
func (c *Core) fingerprint() uint64 {
	digest := c.view.digest
	for i := range c.reports {
		s := &c.reports[i]
		life := c.dir.Key(s.Suspect).Life(s.Version.Incarnation)
		digest ^= uint64(s.Reporter.Life(uint64(gossip.Key(life).Life(uint64(s.Version.Minor)))))
	}
	return digest
}

// quarters is how many heartbeats to a neighbour report it the whole digest.
const quarters = 4

// quarter returns the part of a digest that the heartbeat of a number carries.
func quarter(digest uint64, sequence uint32) uint16 {
	return uint16(digest >> (16 * (sequence % quarters)))
}

// compare takes a quarter of a neighbour's fingerprint. Where two quarters differ
// while ours stays as it is, and fewer than all have agreed between them, views
// are exchanged: what one of both has missed no update will bring. Updates get lost
// with links that break, and a leave that overtakes its join is forgotten.
func (c *Core) compare(l *link, p *gossip.Pulse) {
	ours := c.fingerprint()
	if l.ours != ours {
		l.ours, l.differs, l.agreed = ours, false, 0
	}
	if quarter(ours, p.Sequence) == p.View {
		if l.agreed++; l.agreed >= quarters {
			l.differs, l.agreed = false, 0
		}
		return
	}
	if l.agreed = 0; l.differs {
		c.sendBase(l, true)
	}
	l.differs = !l.differs
}

// watch probes the neighbours whose heartbeat is overdue.
func (c *Core) watch() {
	for i := range c.links {
		if l := &c.links[i]; l.state == standing && l.watched() && !l.probed && l.due <= c.now {
			l.probed = true
			c.startProbing(suspect{node: l.peer, cause: silent, duty: watching})
		}
	}
}
