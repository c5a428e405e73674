package member

import (
	"bytes"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// renewed takes another record of a life that is known, if it was signed later, and passes it
// on: the certificate by which the earlier one was signed may be revoked.
func (c *Core) renewed(i Index, incarnation uint64, record []byte) {
	b := c.births[i]
	if b == nil || b.incarnation != incarnation || i == c.self || !c.cfg.Identity.Later(record, b.record) {
		return
	}
	if key, ok := c.cfg.Identity.Verify(c.dir.ID(i), incarnation, record); ok && key == b.key {
		b.record = record
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
// take some of the others' any more. These nodes are removed; neighbours find out themselves.
func (c *Core) recheck() {
	if !c.proves() {
		return
	}
	if own, record := c.births[c.self], c.cfg.Identity.Birth(); !bytes.Equal(own.record, record) {
		own.record = record
		c.spread(c.self)
	}
	for _, i := range slices.Sorted(maps.Keys(c.births)) {
		b := c.births[i]
		if i == c.self || b == nil { // forgotten with the history
			continue
		}
		if _, ok := c.cfg.Identity.Verify(c.dir.ID(i), b.incarnation, b.record); ok {
			continue
		}
		delete(c.births, i)
		c.disown(i)
		if c.view.has(i) {
			c.remove(i, c.Version(i), Suspected, gossip.Exit{})
		}
	}
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
