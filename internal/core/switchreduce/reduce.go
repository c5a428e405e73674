package switchreduce

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// contribution takes a child's contribution to a chunk. A slot that serves an
// older chunk is taken over: a member sends number n + 2W only when all members
// have the result of n.
func (c *Core) contribution(now core.Time, p *packet, out *Output) {
	e, child := p.epoch, int(p.Child)
	if p.whole > e.ChunkBytes {
		c.drop(DropSize)
		return
	}
	s := c.at(e, p.Chunk)
	switch s.age(p.Epoch, p.Chunk) {
	case newer:
		c.drop(DropLate)
		return
	case older:
		c.claim(e, s, p.Chunk, out)
		s.sig, s.first, s.whole = p.Signature, p.Lowest, p.whole
	case same:
		// Whoever has contributed has its bit set; all have once a slot is
		// complete. What comes after an error changes nothing.
		if s.state == failed || has(s.contributed(), child) {
			c.drop(DropDuplicate)
			return
		}
	}
	source := p.Flags&wire.Source != 0
	switch {
	case p.Signature != s.sig:
		c.fail(now, e, s, wire.Mismatch, s.first, p.Lowest, p.Signature, out)
		return
	case source && s.source >= 0:
		c.fail(now, e, s, wire.TwoSources, s.origin, p.Lowest, s.sig, out)
		return
	}
	c.counters.Taken++
	c.hold(e, s, p, source)
	if s.missing == 0 {
		c.close(now, e, s, out)
	}
}

// hold keeps a contribution in its slot.
func (c *Core) hold(e *epoch, s *slot, p *packet, source bool) {
	child := int(p.Child)
	add(s.contributed(), child)
	s.missing--
	if p.Flags&wire.Sink != 0 {
		add(s.wants(), child)
	}
	if s.sig.Element == reduce.Block32 {
		s.keepExponent(child, len(e.Children), p.Exponent)
	}
	if source {
		s.source, s.origin = int32(child), p.Lowest
		c.reserve(e, s, len(p.payload))
		s.size = copy(s.packet[wire.HeaderSize:], p.payload)
	} else if len(p.payload) > 0 {
		c.borrow(e, s, child, p.payload)
	}
}

// close reduces a slot that has all contributions, in the order of the
// children, whatever that of their arrival was.
func (c *Core) close(now core.Time, e *epoch, s *slot, out *Output) {
	switch {
	case s.sig.Collective.Copies():
		if s.source < 0 {
			if e.root() {
				// A rank that does not have the vector that all wait for, and the one that should.
				c.fail(now, e, s, wire.NoSource, e.Children[0].Lowest, s.sig.Root, s.sig, out)
				return
			}
			c.reserve(e, s, 0)
			s.size = 0
		}
	default:
		s.size = s.whole
		c.reserve(e, s, s.size)
		if s.size > 0 || s.sig.Element == reduce.Block32 { // which has an exponent, if nothing else
			s.reduce()
		}
	}
	c.drained(s)
	if e.root() {
		c.finish(e, s, out)
		return
	}
	s.state = complete
	c.counters.Partials++
	if !c.adopting {
		c.sendPartial(now, e, s, out)
	}
}

// reduce reduces the children's payloads to the slot's.
func (s *slot) reduce() {
	inputs := s.inputs
	if s.size == 0 {
		inputs = make([][]byte, len(s.exponents)) // of nothing
	}
	if s.sig.Element == reduce.Block32 {
		s.exponent = reduce.SumBlocks(s.body(), inputs, s.exponents)
	} else {
		kernel, err := reduce.KernelOf(s.sig.Function, s.sig.Element)
		if err != nil {
			panic(err) // wire.Header.Decode lets defined pairs pass only
		}
		kernel(s.body(), inputs)
	}
}

// sendPartial sends what a complete slot holds to the parent, as the
// contribution of this switch.
func (c *Core) sendPartial(now core.Time, e *epoch, s *slot, out *Output) {
	var flags wire.Flags
	if s.source >= 0 {
		flags |= wire.Source
	}
	if !isEmpty(s.wants()) {
		flags |= wire.Sink
	}
	e.sent = now
	c.send(e, s, wire.Contribution, flags, out)
}

// result takes the result of a complete slot from the parent.
func (c *Core) result(p *packet, out *Output) {
	e := p.epoch
	s := c.at(e, p.Chunk)
	switch a := s.age(p.Epoch, p.Chunk); {
	case a == newer:
		c.drop(DropLate)
		return
	case a == same && (s.state == finished || s.state == failed):
		c.drop(DropDuplicate)
		return
	case a == older || s.state != complete:
		c.drop(DropUnasked)
		return
	}
	if p.Signature != s.sig || p.Flags&wire.Sink != 0 == isEmpty(s.wants()) {
		c.drop(DropUnfit)
		return
	}
	c.detach(s, out)
	c.reserve(e, s, len(p.payload))
	s.size = copy(s.packet[wire.HeaderSize:], p.payload)
	s.exponent = p.Exponent
	c.finish(e, s, out)
}

// finish sends the slot's result to every child.
func (c *Core) finish(e *epoch, s *slot, out *Output) {
	s.state, s.unanswered, s.lost = finished, 0, false
	c.counters.Results++
	if count(s.wants()) == len(e.Children) {
		c.send(e, s, wire.Result, wire.Sink, out)
		return
	}
	for i := range e.Children {
		c.sendResult(e, s, i, out)
	}
}

// sendResult sends the slot's result to a child, an empty one unless the child
// is a sink.
func (c *Core) sendResult(e *epoch, s *slot, child int, out *Output) {
	h := e.result(s)
	if !has(s.wants(), child) {
		e.sendDown(child, &h, nil, out)
		return
	}
	h.Flags |= wire.Sink
	e.sendDown(child, &h, c.lend(s), out)
}

// result begins the packet of the slot's result.
func (e *epoch) result(s *slot) wire.Header {
	h := e.header(wire.Result, s.number)
	h.Signature, h.Exponent = s.sig, s.exponent
	return h
}
