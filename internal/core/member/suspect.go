package member

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// grounds are why a node is probed.
type grounds uint8

const (
	silent    grounds = iota // a heartbeat is overdue, or a dial to a successor is not answered
	contested                // a neighbour holds it for dead
	broken                   // the link failed, or a dial to a successor
)

// suspect is a node that may have failed. It is probed by datagrams and over a
// connection, directly and by others. It is suspected when it has not answered in
// time, and others have not reached it either.
type suspect struct {
	node  Index
	cause grounds
	duty  duty
	about Version // the version at which a neighbour holds it for dead; zero if none does
	nonce uint32
	step  int
	since core.Time
	next  core.Time // of the next probe
	pause time.Duration
	end   core.Time // of the time that it has to answer

	open     bool         // that is over, and evidence is missing
	inquired bool         // it was asked over a connection in this round
	refused  bool         // nobody takes connections at its address
	silence  []gossip.Key // witnesses: others that cannot reach it either
	alone    bool         // the core decides for itself
	derived  bool         // it is probed since it did not answer about another
	asked    []Index      // to probe it, by the last datagrams

	before  []Index // standby: one of these that answers reports in the core's place
	covered bool    // one has
}

// Probes follow each other by this part of Confirm; while there is time for more,
// each pause is twice the one before, up to this part of Grace.
const (
	probesInConfirm = 5
	probesInGrace   = 8
)

// The steps of probing at which others are asked by datagrams, the node itself
// over a connection, and neighbours over their links.
const (
	firstRelay, secondRelay = 1, 6
	inquireAt               = 2
	relayOnLinks            = 3
)

// lonely is after how many times Grace a core decides without the evidence of
// others.
const lonely = 8

// patienceForLate is how many times the core's own lateness a node may take to
// answer.
const patienceForLate = 4

func (c *Core) probing(i Index) *suspect {
	return core.Find(c.suspected, func(d *suspect) bool { return d.node == i })
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

// startProbing begins to probe a node, or hastens it where it is probed already. Who
// is suspected is probed again only where a neighbour holds it for dead.
func (c *Core) startProbing(d suspect) {
	if !c.view.has(d.node) || d.cause != contested && c.suspects(d.node) {
		return
	}
	d.since, d.end = c.now, c.now.Add(c.patience(d.cause))
	if old := c.probing(d.node); old != nil {
		if old.about.Before(d.about) { // an answer to what it was asked before does not refute that
			old.about, old.next, old.end = d.about, c.now, max(old.end, c.now.Add(c.cfg.Confirm))
		}
		if d.end < old.end {
			old.end, old.cause, old.next, old.pause = d.end, d.cause, c.now, c.cfg.Confirm/probesInConfirm
			old.inquired = false
		}
		if d.duty != none && old.duty != watching {
			old.duty, old.before = d.duty, d.before
		}
		return
	}
	d.nonce, d.next, d.pause = uint32(c.random.Uint64()), c.now, c.cfg.Confirm/probesInConfirm
	if d.cause == contested { // an update may be under way that ends it
		d.next, d.end = c.now.Add(2*c.cfg.Tau), d.end.Add(2*c.cfg.Tau)
		d.pause = c.cfg.Grace / probesInGrace
	}
	c.suspected = append(c.suspected, d)
}

// ask probes the suspects, and suspects who has not answered in time where there
// is evidence enough.
func (c *Core) ask() {
	var lost []suspect
	var dumb []Index
	others := c.others()
	for k := range c.suspected {
		d := &c.suspected[k]
		if d.end <= c.now && !c.convincing(d, others) {
			dumb = append(dumb, d.dumb()...)
			c.prolong(d)
		}
		switch {
		case d.end <= c.now:
			lost = append(lost, *d)
		case d.next <= c.now:
			c.probe(d)
		}
	}
	c.suspected = slices.DeleteFunc(c.suspected, func(d suspect) bool { return d.end <= c.now })
	for i := range lost {
		c.suspect(&lost[i])
	}
	for _, i := range dumb {
		c.startProbing(suspect{node: i, cause: silent, derived: true})
	}
}

// others returns how many members can be asked about the probed: those that are
// not suspected, nor probed for so long that their own time to answer is over.
func (c *Core) others() int {
	n := len(c.view.ring) - 1
	for k := range c.suspected {
		if d := &c.suspected[k]; d.late(c.now) {
			n--
		}
	}
	for k := range c.reports {
		s := &c.reports[k]
		if d := c.probing(s.Suspect); s.Reporter == c.key && (d == nil || !d.late(c.now)) && c.suspects(s.Suspect) {
			n--
		}
	}
	return max(n, 0)
}

// late reports whether a node has not answered in time.
func (d *suspect) late(now core.Time) bool { return d.open || d.end <= now }

// convincing reports whether there is evidence enough against a node that has
// not answered in time: that its address refuses connections, if its link broke a
// moment ago, and the word of others that they cannot reach it either. A core that
// nobody answers may be the one that is cut off, or deaf. It decides alone and for
// itself: late, or at once where nobody is left to be asked.
func (c *Core) convincing(d *suspect, others int) bool {
	switch {
	case d.held(c.view.nodes[d.node].version):
		return true
	case d.cause == broken && !d.refused:
		return false
	case others > 0 && len(d.silence) >= min(c.health.witnesses(c.now), others):
		return true
	}
	d.alone = others == 0 || c.now.Sub(d.since) >= lonely*c.cfg.Grace
	return d.alone
}

// prolong has a node that has not answered be asked once more, as evidence is
// missing. What comes of it from now on counts at once.
func (c *Core) prolong(d *suspect) {
	if d.cause == broken && !d.refused {
		d.cause = silent
		if end := d.since.Add(c.patience(silent)); end > c.now {
			d.end = end
			return
		}
	}
	if d.open {
		c.health.worse(c) // nobody has answered a whole round
	}
	d.open, d.inquired, d.step = true, false, firstRelay
	d.next, d.pause, d.end = c.now, c.cfg.Confirm/probesInConfirm, c.now.Add(c.cfg.Grace)
}

// dumb returns who was asked about a node and said nothing. Where many fail at
// once they may be among them, and those who can be asked fewer than it seems.
func (d *suspect) dumb() []Index {
	if d.derived || len(d.silence) > 0 || d.cause == broken && !d.open {
		return nil
	}
	return d.asked
}

// testifies takes the word of another that it cannot reach a probed node either.
// However often it says so, it is one witness.
func (c *Core) testifies(d *suspect, witness gossip.Key) {
	if !slices.Contains(d.silence, witness) {
		d.silence = append(d.silence, witness)
	}
	c.evidence(d)
}

// evidence looks at what speaks against a node whose time is over.
func (c *Core) evidence(d *suspect) {
	if d.open && c.convincing(d, c.others()) {
		d.end = c.now
	}
}

// probe sends a probed node the next probe.
func (c *Core) probe(d *suspect) {
	c.packet(d.node, c.question(d.node, d.nonce, d.about))
	if d.step == 0 && d.duty == standby {
		for _, i := range d.before {
			if i != Nobody && i != c.self && c.view.has(i) {
				c.packet(i, c.question(i, d.nonce, Version{}))
			}
		}
	}
	if d.step == firstRelay || d.step == secondRelay {
		c.askOthers(d)
	}
	if d.step == relayOnLinks {
		c.askNeighbours(d)
	}
	if !d.inquired && (d.cause == broken || d.step >= inquireAt) {
		d.inquired = true
		c.inquire(d.node, d.nonce, d.about)
	}
	d.step++
	d.next = c.now.Add(d.pause)
	if d.cause != broken || d.open {
		d.pause = min(2*d.pause, max(d.pause, c.cfg.Grace/probesInGrace))
	}
}

// suspect reports a node that has not answered, to the monitors at once where
// that is the core's to do. A core that decides alone does not: its neighbours are
// asked to find out themselves.
func (c *Core) suspect(d *suspect) {
	if !c.view.has(d.node) {
		return
	}
	v := c.view.nodes[d.node].version
	if d.alone {
		m := &Message{Type: gossip.Dispute, Alives: []Entry{{Node: d.node, Version: v}}}
		for k := range c.links {
			if l := &c.links[k]; l.state == standing && l.peer != d.node {
				c.send(l, m)
			}
		}
		c.remove(d.node, v, Suspected, gossip.Exit{})
		c.convict()
		return
	}
	s := c.accuse(d.node, v)
	c.health.accuses(c.now, c.dir.Key(d.node), v)
	c.processSuspicion(s)
	if d.duty == watching || d.duty == standby && !d.covered {
		c.informMonitors(&Message{Type: gossip.Update, Suspicions: []Suspicion{s}}, d.node)
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
func (d *suspect) held(v Version) bool { return d.about != Version{} && !d.about.Before(v) }

// settle ends the probing: the node is there. That it is held for dead by a neighbour
// only a newer version ends.
func (c *Core) settle(i Index) {
	c.suspected = slices.DeleteFunc(c.suspected, func(d suspect) bool { return d.node == i && !d.held(c.Version(i)) })
	if c.namesake(i) {
		c.namesakes.answers = i
	}
	l := c.linkTo(i)
	switch {
	case l == nil:
		c.topology.soon(c) // it has just answered: it is dialled, and not probed again
	case l.probed:
		l.probed = false
		for turn := time.Duration(max(1, l.turns)) * c.cfg.beat(); l.due <= c.now; {
			l.due = l.due.Add(turn) // its turns stay where they were
		}
	}
}
