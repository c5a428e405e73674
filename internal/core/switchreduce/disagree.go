package switchreduce

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// errorPacket takes an error that a neighbour reports of. A slot of that number
// takes it, complete or not, and an older slot is taken over: who disagrees
// with another about a chunk need not wait for the rest. A result that is held
// stands, since it proves that all have agreed.
func (c *Core) errorPacket(now core.Time, p *packet, out *Output) {
	var body wire.ErrorBody
	if !body.Decode(p.payload) {
		c.drop(DropBody)
		return
	}
	e := p.epoch
	s := c.at(e, p.Chunk)
	switch a := s.age(p.Epoch, p.Chunk); {
	case a == newer:
		c.drop(DropLate)
		return
	case a == older:
		c.claim(e, s, p.Chunk, out)
	case s.state == finished || s.state == failed:
		c.drop(DropDuplicate)
		return
	}
	sender := -1 // the parent
	if p.below {
		sender = int(p.Child)
	}
	c.spread(now, e, s, &body, sender, out)
}

// fail makes a disagreement that was found here known: between a rank that said what
// the slot has, and another.
func (c *Core) fail(now core.Time, e *epoch, s *slot, kind wire.ErrorKind, rank, other uint32, says wire.Signature, out *Output) {
	const nobody = -2
	body := wire.ErrorBody{Kind: kind, Rank: [2]uint32{rank, other}, Says: [2]wire.Signature{s.sig, says}}
	c.spread(now, e, s, &body, nobody, out)
}

// spread keeps an error in its slot and sends it, once, to the parent and to
// every child but the sender, a child index or -1 for the parent. Where it is
// lost on the way, a probe for the chunk gets it.
func (c *Core) spread(now core.Time, e *epoch, s *slot, body *wire.ErrorBody, sender int, out *Output) {
	c.counters.Errors++
	c.detach(s, out)
	c.drained(s)
	c.reserve(e, s, wire.ErrorBodySize)
	s.state, s.unanswered, s.lost = failed, 0, false
	s.size = wire.ErrorBodySize
	body.Put(s.body())
	if sender != -1 && !e.root() {
		h := e.header(wire.Error, s.number)
		e.sendUp(now, &h, c.lend(s), out)
	}
	for i := range e.Children {
		if i != sender {
			c.sendError(e, s, i, out)
		}
	}
}

func (c *Core) sendError(e *epoch, s *slot, child int, out *Output) {
	h := e.header(wire.Error, s.number)
	e.sendDown(child, &h, c.lend(s), out)
}
