package peering

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
)

// stage is how far a pending connection has got.
type stage uint8

const (
	silent stage = iota
	spoken
	verified
)

// stranger is a connection that is not authenticated.
type stranger struct {
	id     ID
	source netip.Prefix
	stage  stage
	until  core.Time
}

// strangers are the connections that are not authenticated, the oldest first.
type strangers struct {
	all []stranger
	of  map[netip.Prefix]int // how many a source has; those that have one
}

// admit takes a new one, in place of another if there are too many.
func (c *Core) admit(id ID, source netip.Prefix) {
	c.counters.Arrived++
	p := &c.strangers
	p.of[source]++ // it counts with those from where it comes
	if p.of[source] > c.cfg.PendingOfSource {
		c.evict(p.victim(source))
	} else if len(p.all) >= c.cfg.Pending {
		c.evict(p.victim(p.heaviest()))
	}
	p.all = append(p.all, stranger{id: id, source: source, until: c.now.Add(c.cfg.GreetWithin)})
}

// heaviest returns the source that has most, of several the one that has the oldest.
func (p *strangers) heaviest() netip.Prefix {
	most, source := 0, netip.Prefix{}
	for i := range p.all {
		if n := p.of[p.all[i].source]; n > most {
			most, source = n, p.all[i].source
		}
	}
	return source
}

// victim returns the place of the one of a source that has got least far, of several
// the oldest.
func (p *strangers) victim(source netip.Prefix) int {
	at := -1
	for i := range p.all {
		if s := &p.all[i]; s.source == source && (at < 0 || s.stage < p.all[at].stage) {
			at = i
		}
	}
	return at
}

func (c *Core) evict(at int) {
	c.counters.Evicted++
	c.act(Action{Do: Close, ID: c.strangers.take(at).id, Err: ErrEvicted})
}

// find returns the place of a connection, or -1.
func (p *strangers) find(id ID) int {
	return slices.IndexFunc(p.all, func(s stranger) bool { return s.id == id })
}

// take removes one.
func (p *strangers) take(at int) stranger {
	s := p.all[at]
	p.all = slices.Delete(p.all, at, at+1)
	if p.of[s.source]--; p.of[s.source] == 0 {
		delete(p.of, s.source)
	}
	return s
}

// advance notes how far a connection has got.
func (p *strangers) advance(id ID, to stage) {
	if at := p.find(id); at >= 0 {
		p.all[at].stage = max(p.all[at].stage, to)
	}
}

// expireStrangers closes those whose time is over.
func (c *Core) expireStrangers() {
	p := &c.strangers
	for len(p.all) > 0 && p.all[0].until <= c.now {
		c.counters.Slow++
		c.act(Action{Do: Close, ID: p.take(0).id, Err: fmt.Errorf("%w: no greeting within %v", ErrSlow, c.cfg.GreetWithin)})
	}
}

// next returns when the time of one is over.
func (p *strangers) next() core.Time {
	if len(p.all) == 0 {
		return core.Never
	}
	return p.all[0].until
}
