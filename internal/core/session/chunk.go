package session

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

type state uint8

const (
	vacant  state = iota
	flying        // contributed or to be contributed in this epoch
	awaited       // its result comes from another member
	done          // result taken, copy kept
)

// chunk is one number's place in the ring. It is in flight while it is flying
// or a credit.
type chunk struct {
	number   uint32
	state    state
	exponent int8       // of kept, where that is in block floating point; 0 otherwise
	elements uint16     // of the chunk
	sent     bool       // in this epoch, at
	given    bool       // the result was given to the operation, whose vectors may be gone
	owned    bool       // kept is the session's memory, not a part of the operation's vectors
	placed   bool       // and a part of Session.turned
	credit   bool       // held, and to be confirmed in this epoch: see doc.go
	source   bool       // the chunk is copied, and this member has it
	sink     bool       // this member wants it
	offset   int        // of the chunk in the operation's whole vector, in bytes
	op       *operation // that it belongs to; nil only while the chunk is vacant
	sentAt   core.Time
	care     care

	// kept is, when done, the result, or the input where the result was empty.
	// It lies in the operation's vectors while these are lent, but for the last
	// chunks: see keep. Of a chunk whose elements are turned it is before that what was
	// last contributed.
	kept []byte
}

// pending reports whether c waits for a result from the parent.
func (c *chunk) pending() bool { return c.state == flying || c.credit }

// passed reports whether the base may pass c.
func (c *chunk) passed() bool { return c.state == done && !c.credit }

// is reports whether c's place in the ring is that of number n still.
func (c *chunk) is(n uint32) bool { return c.number == n && c.state != vacant }

// signature returns what c's contribution in this epoch says.
func (c *chunk) signature() wire.Signature {
	if c.credit {
		return wire.Signature{Collective: wire.Barrier, Operation: c.op.sig.Operation}
	}
	sig := c.op.sig
	sig.ChunkElements = c.elements
	return sig
}

// flags returns what the packets of c say of this member.
func (c *chunk) flags() (f wire.Flags) {
	if c.source {
		f |= wire.Source
	}
	if c.sink {
		f |= wire.Sink
	}
	return f
}

// size returns the bytes of c's payload where it is carried.
func (c *chunk) size() int { return int(c.elements) * c.op.width }

// input returns what c contributes, and its exponent: from the operation's
// vector, or what was kept of a chunk that is reduced again.
func (s *Session) input(c *chunk) (data []byte, exponent int8) {
	p, size := c.op, c.size()
	switch {
	case p.copies && !c.source, size == 0 && !p.block:
		return nil, 0
	case c.given, c.placed: // it was turned before
		return c.kept, c.exponent
	}
	if p.coded { // without Parts
		at := c.offset / p.width
		s.own(c, size)
		c.exponent = p.encode(c.kept, p.In[at*p.vector:(at+int(c.elements))*p.vector], at, &s.cfg)
		return c.kept, c.exponent
	}
	at := c.offset - p.inAt
	return p.In[at : at+size], 0
}

// own gives c memory of the session's for kept, of that many bytes.
func (s *Session) own(c *chunk, size int) {
	if p := c.op; p.coded && size > 0 && s.turn(c, size) {
		return
	}
	if !c.owned {
		c.kept, c.owned = nil, true
		if last := len(s.spares) - 1; last >= 0 {
			c.kept, s.spares = s.spares[last], s.spares[:last]
		}
	}
	c.kept = slices.Grow(c.kept[:0], size)[:size]
}

// turn gives c that part of s.turned which is its place's, unless it has it, and reports whether there is one: for
// full chunks of one size, that of the first.
func (s *Session) turn(c *chunk, size int) bool {
	if c.placed && len(c.kept) == size {
		return true
	}
	full := c.op.full()
	if s.turned == nil {
		s.turnedSize = full
	}
	if full != s.turnedSize {
		return false
	}
	if most := len(s.ring) * full; len(s.turned) != most {
		s.turned = make([]byte, most) // what lies in a smaller one stays there
	}
	at := int(c.number&uint32(len(s.ring)-1)) * full
	c.kept, c.owned, c.placed = s.turned[at:at+size], true, true
	return true
}

// disown takes back c's memory.
func (s *Session) disown(c *chunk) {
	if c.owned && !c.placed {
		s.spares = append(s.spares, c.kept)
	}
	c.kept, c.owned, c.placed = nil, false, false
}

// keep has c keep its result, data, or its input where the result was empty.
// While an operation is unfinished its vectors hold both. So only of its last
// chunks, those of the group's largest window, copies are made: any others are
// passed by all members when it is finished. A chunk of which this member wants a part
// is copied, too.
func (s *Session) keep(c *chunk, data []byte, exponent int8) {
	p := c.op
	if c.given && !c.sink || len(data) == 0 {
		return // it was reduced again from what is kept, or there is nothing
	}
	out, _ := p.output(c)
	switch {
	case p.coded, c.given, !wire.Newer(p.end()-s.cfg.Window, c.number), c.sink && len(out) < len(data):
		s.own(c, len(data))
		copy(c.kept, data)
		c.exponent = exponent
	case c.sink:
		c.kept = out
	default:
		c.kept = data
	}
}

// release gives the vectors of p, which is finished, back to the caller. What
// is kept in them and may still be asked for is copied: that is so only where a
// change of epoch has the base far behind.
func (s *Session) release(p *operation) {
	n := p.first
	if oldest := s.created - uint32(len(s.ring)); wire.Newer(oldest, n) {
		n = oldest
	}
	for to := p.end() - s.cfg.Window; wire.Newer(to, n); n++ {
		c := s.at(n)
		switch data := c.kept; {
		case !c.is(n) || c.op != p || c.owned:
		case wire.Newer(s.base-s.cfg.Window, n):
			c.state, c.kept, c.op = vacant, nil, nil
		default:
			s.own(c, len(data))
			copy(c.kept, data)
		}
	}
	p.In, p.Out, p.Marks = nil, nil, nil
}
