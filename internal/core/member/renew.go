package member

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// renewalPause is how long a record of a life is kept at least: nodes sign theirs again every few seconds at most.
const renewalPause = time.Second

// renewed takes another record of a life that is known, and passes it on: the certificate by which the earlier
// one was signed may be revoked. It is one that was signed later, or any that counts where the known one does
// not.
func (c *Core) renewed(i Index, incarnation uint64, record []byte) {
	b := c.births[i]
	if b == nil || b.incarnation != incarnation || i == c.self || bytes.Equal(record, b.record) {
		return
	}
	if _, isUnproven := c.unproven[i]; !isUnproven && (c.now < b.kept || !c.cfg.Identity.Later(record, b.record)) {
		return
	}
	if key, ok := c.cfg.Identity.Verify(c.dir.ID(i), incarnation, record); ok && key == b.key {
		b.record, b.kept = record, c.now.Add(renewalPause)
		delete(c.unproven, i)
		c.spread(i)
	}
}

// spread sends a node's birth to all neighbours but the one of whom it came.
func (c *Core) spread(i Index) {
	b := c.births[i]
	m := &Message{Type: gossip.Births, Births: []Birth{{i, b.incarnation, b.record}}}
	for k := range c.links {
		if l := &c.links[k]; l.state == standing && l.number != c.source && l.peer != i {
			c.send(l, m)
		}
	}
}

// recheck takes that the identity has another record of the core's own birth, or does not
// take some of the others' any more. The neighbours are asked for records of these that count.
func (c *Core) recheck() {
	if !c.proves() {
		return
	}
	if own, record := c.births[c.self], c.cfg.Identity.Birth(); !bytes.Equal(own.record, record) {
		own.record = record
		c.spread(c.self)
	}
	var unproven []Entry
	for _, i := range slices.Sorted(maps.Keys(c.births)) {
		b := c.births[i]
		if i == c.self {
			continue
		}
		if _, ok := c.cfg.Identity.Verify(c.dir.ID(i), b.incarnation, b.record); ok {
			delete(c.unproven, i)
			continue
		}
		if !c.view.has(i) {
			c.disprove(i)
			continue
		}
		if _, is := c.unproven[i]; !is {
			c.unproven[i] = c.now.Add(c.cfg.askedFor())
		}
		c.wants = min(c.wants, c.unproven[i])
		unproven = append(unproven, Entry{Node: i, Version: Version{Incarnation: b.incarnation}})
	}
	for k := range c.links {
		if l := &c.links[k]; l.state == standing && len(unproven) > 0 {
			c.send(l, &Message{Type: gossip.Wants, Alives: unproven})
		}
	}
}

// dropUnproven removes the nodes of which nobody has sent a birth that counts in time; neighbours find out
// themselves.
func (c *Core) dropUnproven() {
	removes := false
	for _, i := range slices.Sorted(maps.Keys(c.unproven)) {
		if c.unproven[i] > c.now {
			c.wants = min(c.wants, c.unproven[i])
			continue
		}
		delete(c.unproven, i)
		if c.births[i] == nil { // forgotten with the history
			continue
		}
		c.disprove(i)
		if c.view.has(i) {
			c.remove(i, c.Version(i), Suspected, gossip.Exit{})
			removes = true
		}
	}
	if removes {
		c.convict() // of a smaller view fewer suspicions are enough
	}
}

// disprove forgets a birth that does not count any more.
func (c *Core) disprove(i Index) {
	delete(c.births, i)
	c.disown(i)
}

// disown forgets whom a node has accused, whose word cannot be checked any more.
func (c *Core) disown(i Index) {
	c.reports = slices.DeleteFunc(c.reports, func(s Suspicion) bool { return s.Reporter == c.dir.Key(i) })
}

// Records returns the births that are known.
func (c *Core) Records() [][]byte {
	all := make([][]byte, 0, len(c.births))
	for _, b := range c.births {
		all = append(all, b.record)
	}
	return all
}
