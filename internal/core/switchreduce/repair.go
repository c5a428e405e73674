package switchreduce

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// probe answers a child that asks for a chunk. It never takes a slot over.
func (c *Core) probe(now core.Time, p *packet, out *Output) {
	e, child := p.epoch, int(p.Child)
	if p.Flags&wire.Idle != 0 {
		c.counters.Idle++
		if n, ok := p.Settled(); ok && (!c.isSettled || wire.Newer(n, c.settled)) {
			c.settled, c.isSettled, c.forgets = n, true, true
		}
		if child == 0 {
			c.idleProbe(now, e, out)
		}
		return
	}
	c.counters.Probes++
	s := c.at(e, p.Chunk)
	a := s.age(p.Epoch, p.Chunk)
	switch {
	case a == newer:
		c.drop(DropLate)
	case a == same && s.state == failed:
		c.counters.Repeated++
		c.sendError(e, s, child, out)
	case a == same && s.state == finished:
		c.counters.Repeated++
		c.sendResult(e, s, child, out)
	case a == older || !has(s.contributed(), child):
		c.counters.Wants++
		e.reply(child, p.Chunk, wire.Want, out)
	case s.state == complete && (s.lost || e.Probes > 0 && int(s.unanswered) >= e.Probes):
		c.counters.Losts++
		e.reply(child, p.Chunk, wire.Lost, out)
		c.relay(now, e, s, child, out)
	default:
		c.counters.Heards++
		e.reply(child, p.Chunk, wire.Heard, out)
		c.relay(now, e, s, child, out)
	}
}

// relay asks the parent for a complete chunk when the lowest child has asked
// for it. Once the parent counts as lost, too: only an answer can report that it
// does not any more.
func (c *Core) relay(now core.Time, e *epoch, s *slot, child int, out *Output) {
	if s.state != complete || child != 0 {
		return
	}
	c.counters.Relayed++
	if int(s.unanswered) < e.Probes {
		s.unanswered++
	}
	h := e.header(wire.Probe, s.number)
	e.sendUp(now, &h, nil, out)
}

// reply answers a child's probe with a header alone.
func (e *epoch) reply(child int, number uint32, t wire.Type, out *Output) {
	h := e.header(t, number)
	e.sendDown(child, &h, nil, out)
}

// answer takes the parent's answer to a probe: Heard, Want or Lost. To whom is not
// its parent's lowest child, Lost says no more than Heard: its probes are not passed
// on, so that what the parent knows of its own parent may be old.
func (c *Core) answer(now core.Time, p *packet, out *Output) {
	e := p.epoch
	s := c.at(e, p.Chunk)
	switch a := s.age(p.Epoch, p.Chunk); {
	case a == newer:
		c.drop(DropLate)
		return
	case a == older || s.state != complete:
		c.drop(DropUnasked)
		return
	}
	s.unanswered = 0
	s.lost = p.Type == wire.Lost && e.Index == 0
	if p.Type == wire.Want {
		c.counters.Resent++
		c.sendPartial(now, e, s, out)
	}
}
