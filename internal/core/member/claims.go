package member

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// life is one of a node's.
type life struct {
	node        Index
	incarnation uint64
}

// claim is what neighbours say of a life that is not proven. One of them is asked for the
// birth, and after a while the next one.
type claim struct {
	news  Entry       // at the latest minor
	left  []leaveSaid // it has left since, as they say
	by    []Link      // who has not been asked yet
	asked Link
	until core.Time // when the next one is to be asked
	first Link      // of whose claims it is one
}

// leaveSaid is a leave, as a neighbour says.
type leaveSaid struct {
	by Link
	Departure
}

// Bounds of what is kept without proof.
const (
	maxClaims       = 1 << 16 // of all neighbours,
	maxClaimsOfLink = 1 << 13 // of those the first to have spoken of them
	sureClaims      = 64      // that a neighbour may have though all others have many
	maxLefts        = 4       // of a claim, each by another neighbour
)

// mayClaim reports whether a neighbour may speak of one more life that is not proven.
func (c *Core) mayClaim(l *link) bool {
	return l.claims < sureClaims || l.claims < maxClaimsOfLink && len(c.claims) < maxClaims
}

// askedFor is how long a neighbour has for its answer before another one is asked.
func (s *Settings) askedFor() time.Duration { return 2 * s.Connect }

// miss notes news that came on a link, of a life that is not proven.
func (c *Core) miss(e Entry) *claim {
	l := c.link(c.source)
	if l == nil || l.state != standing {
		return nil
	}
	key := life{e.Node, e.Version.Incarnation}
	k := c.claims[key]
	switch {
	case k == nil && !c.mayClaim(l):
		return nil
	case k == nil:
		c.dir.Hold(e.Node)
		k = &claim{news: e, asked: l.number, first: l.number, until: c.now.Add(c.cfg.askedFor())}
		c.claims[key] = k
		l.claims++
		c.query = append(c.query, Entry{Node: e.Node, Version: Version{Incarnation: e.Version.Incarnation}})
	case k.asked != l.number && !slices.Contains(k.by, l.number):
		k.by = append(k.by, l.number)
	}
	if k.news.Version.Before(e.Version) {
		k.news = e
	}
	c.wants = min(c.wants, k.until)
	return k
}

// askBirths asks for births on the link on which the lives were spoken of.
func (c *Core) askBirths(number Link) {
	if l := c.link(number); l != nil && len(c.query) > 0 {
		c.send(l, &Message{Type: gossip.Wants, Alives: c.query})
	}
	c.query = nil
}

// Claims returns how many lives wait for their births.
func (c *Core) Claims() int { return len(c.claims) + len(c.unproven) }

// dropClaim forgets a claim.
func (c *Core) dropClaim(key life) {
	if k := c.claims[key]; k != nil {
		delete(c.claims, key)
		c.dir.Release(key.node)
		if l := c.link(k.first); l != nil {
			l.claims--
		}
	}
}

// askElsewhere asks the next ones where somebody has not proven in time what it said.
// Claims of whom nobody is left to be asked are forgotten.
func (c *Core) askElsewhere() {
	if c.wants > c.now {
		return
	}
	c.wants = core.Never
	var late []life
	for key, k := range c.claims {
		if k.until <= c.now {
			late = append(late, key)
		} else {
			c.wants = min(c.wants, k.until)
		}
	}
	slices.SortFunc(late, func(a, b life) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.incarnation, b.incarnation))
	})
	ask := map[Link][]Entry{}
	for _, key := range late {
		k := c.claims[key]
		var l *link
		for len(k.by) > 0 && l == nil {
			l, k.by = c.link(k.by[0]), k.by[1:]
		}
		if l == nil {
			c.dropClaim(key)
			continue
		}
		k.asked, k.until = l.number, c.now.Add(c.cfg.askedFor())
		c.wants = min(c.wants, k.until)
		ask[l.number] = append(ask[l.number], Entry{Node: key.node, Version: Version{Incarnation: key.incarnation}})
	}
	for _, number := range slices.Sorted(maps.Keys(ask)) {
		c.query = ask[number]
		c.askBirths(number)
	}
	c.dropUnproven()
}

// unasked has others be asked for what a link was asked that ends.
func (c *Core) unasked(number Link) {
	for _, k := range c.claims {
		if k.asked == number {
			k.until, c.wants = c.now, c.now
		}
	}
}

// born takes births that a neighbour was asked for, and others of lives that are known.
func (c *Core) born(number Link, m *Message) {
	for _, b := range m.Births {
		k := c.claims[life{b.Node, b.Incarnation}]
		switch {
		case k == nil || k.asked != number:
			c.renewed(b.Node, b.Incarnation, b.Record)
		case c.acquaint(b.Node, b.Incarnation, b.Record):
			c.believe(b.Node, b.Incarnation)
		default:
			k.until, c.wants = c.now, c.now // others may prove it
		}
		if c.stopped {
			return
		}
	}
}

// believe takes the news that waited for a birth.
func (c *Core) believe(i Index, incarnation uint64) {
	key := life{i, incarnation}
	k := c.claims[key]
	if k == nil {
		return
	}
	c.processAlive(k.news)
	for j := range k.left {
		c.processLeave(&k.left[j].Departure)
	}
	c.dropClaim(key)
}
