package attribute

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// digest is the beginning of the request stage: UPON-ATTUPDATE.
func (c *Core) digest(now core.Time, from attributes.Life, m *attributes.Digest) {
	if !c.isNeighbour(from) {
		return
	}
	for _, offer := range m.Maps {
		switch {
		case offer.Life == c.cfg.Self || offer.Life == 0:
			// The owner alone writes: nobody has news of its map for it.
		case c.Has(offer.Life):
			c.offered(from, offer)
		default:
			c.pending.add(now, offer.Life, pendingOffer{from: from, version: offer.Version})
		}
	}
}

// offered asks a neighbour for a version that it offers, where that is newer
// than what is known and what is pending.
func (c *Core) offered(from attributes.Life, offer attributes.Map) {
	known := uint64(0)
	if r := c.replica(offer.Life); r != nil {
		if known = r.version; offer.Version <= r.pending {
			return
		}
	}
	if offer.Version <= known {
		return
	}
	slot := c.slot(offer.Life)
	c.replicas[slot].pending, c.replicas[slot].target = offer.Version, from
	c.wants = append(c.wants, want{from, offer.Life})
}

// request sends what the inputs of a step have given rise to: one request to
// each neighbour that offers something, and one push to all.
func (c *Core) request(out *Output) {
	if len(c.wants) > 0 {
		for _, to := range c.neighbours {
			// What a later input of the step has made void is not asked for.
			asks := c.asks(func(w want) bool {
				r := c.replica(w.life)
				return w.of == to && r != nil && r.pending > 0 && r.target == to
			})
			for part := range slices.Chunk(asks, c.mapsInMessage()) {
				c.send(out, to, &attributes.Request{Maps: part})
			}
		}
		pushes := c.asks(func(w want) bool {
			r := c.replica(w.life)
			return w.of == 0 && c.Has(w.life) && (r == nil || r.pending == 0)
		})
		for part := range slices.Chunk(pushes, c.mapsInMessage()) {
			c.sendAll(out, &attributes.Request{Push: true, Maps: part})
		}
	}
	c.wants = c.wants[:0]
}

// asks returns those of the step's wants that count, each life once, with what
// is known of it now.
func (c *Core) asks(counts func(want) bool) []attributes.Map {
	var asks []attributes.Map
	for _, w := range c.wants {
		if counts(w) {
			asks = append(asks, attributes.Map{Life: w.life, Version: c.Version(w.life)})
		}
	}
	slices.SortFunc(asks, byLife)
	return slices.Compact(asks)
}

// reply is the reply stage: UPON-ATTREQUEST. Entries of one message's size go
// out upon one request; of further maps there is only said that they are there.
func (c *Core) reply(to attributes.Life, m *attributes.Request, out *Output) {
	if !c.isNeighbour(to) {
		return
	}
	part := &attributes.Reply{}
	size, room := part.Size(), c.cfg.MessageBytes
	for _, ask := range m.Maps {
		s := c.section(ask)
		if s.Version == 0 && m.Push {
			continue
		}
		if room -= s.Size(); room < part.Size() && len(s.Entries) > 0 {
			room += s.Size()
			s = attributes.Section{Life: s.Life, Version: s.Version}
		}
		if size += s.Size(); size > c.cfg.MessageBytes {
			c.send(out, to, part)
			part = &attributes.Reply{}
			size = part.Size() + s.Size()
		}
		part.Sections = append(part.Sections, s)
	}
	if len(part.Sections) > 0 {
		c.send(out, to, part)
	}
}

// section returns what is newer here than was asked.
func (c *Core) section(ask attributes.Map) attributes.Section {
	s := attributes.Section{Life: ask.Life}
	r := c.replica(ask.Life)
	if r == nil || r.version <= ask.Version {
		return s
	}
	if s.Base = ask.Version; s.Base < r.floor {
		s.Base = 0 // tombstones that it may lack are no more
	}
	s.Version, s.Floor, s.Entries = r.version, r.floor, r.above(s.Base)
	return s
}

// replied takes a reply: UPON-ATTREPLY.
func (c *Core) replied(from attributes.Life, m *attributes.Reply, out *Output) {
	if !c.isNeighbour(from) {
		return
	}
	for i := range m.Sections {
		s := &m.Sections[i]
		if s.Life == c.cfg.Self || !c.Has(s.Life) {
			continue
		}
		if s.Version > 0 && len(s.Entries) == 0 {
			c.rest(from, s)
			continue
		}
		r := c.replica(s.Life)
		if s.Version > 0 {
			slot := c.slot(s.Life)
			r = &c.replicas[slot]
			c.merge(slot, s, out)
		}
		switch {
		case r == nil || r.pending == 0:
		case r.version >= r.pending:
			r.pending, r.target = 0, 0
		case r.target == from:
			c.askAll(r) // it has no longer what it offered
		}
	}
}

// rest asks for a map that did not fit into a reply.
func (c *Core) rest(from attributes.Life, s *attributes.Section) {
	r := c.replica(s.Life)
	switch {
	case r == nil || r.pending == 0 || r.target != from:
		c.offered(from, attributes.Map{Life: s.Life, Version: s.Version})
	case s.Version > r.version:
		r.pending = max(r.pending, s.Version)
		c.wants = append(c.wants, want{from, s.Life})
	case r.pending > r.version:
		c.askAll(r)
	}
}

// merge takes a section's entries, if they follow upon what is known.
func (c *Core) merge(slot int32, s *attributes.Section, out *Output) {
	r := &c.replicas[slot]
	before := r.version
	if s.Base > before || s.Version <= before {
		return // asked for in another life of the replica, or known already
	}
	n := Notice{Life: r.life, From: before}
	old := r.entries
	if s.Base == 0 {
		r.entries, r.bytes = nil, 0
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Version <= before && s.Base > 0 {
			continue
		}
		r.put(*e)
		if e.Version > before {
			n.Keys = append(n.Keys, e.Key)
		}
	}
	if s.Base == 0 {
		n.Keys = append(r.gone(old), n.Keys...)
	}
	if s.Floor > r.floor {
		r.dropTombstones(s.Floor)
	}
	n.Version = r.version
	out.Notices = append(out.Notices, n)
	c.touch(slot)
}
