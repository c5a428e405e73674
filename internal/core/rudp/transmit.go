package rudp

import "github.com/tributary-fabric/tributary/internal/core"

// transmit sends what may be sent, lost bytes first.
func (c *Conn) transmit(now core.Time, out *Output) {
	if c.accept {
		b := short(Accept, c.peer, acceptSize)
		(&opening{c.cfg.Datagram, uint32(c.cfg.FirstWindow), c.id}).put(b, 16)
		out.whole(b)
		c.accept = false
	}
	c.pace.fill(now, &c.congestion, &c.rtt)
	c.paceAt = core.Never
	if c.probes > 0 {
		c.probe(now, out)
	}
	last := -1 // head of the last packet
	for {
		p, isThere := c.send.pick(c.datagram - dataHead)
		if c.limited = isThere; !isThere {
			last = -1
			break
		}
		size := overhead + dataHead + len(p.body)
		if c.log.full() || c.log.inFlight > 0 && float64(c.log.inFlight+size) > c.congestion.window {
			break
		}
		if !c.pace.allows() {
			c.paceAt = c.pace.next()
			last = -1
			break
		}
		last = c.emit(now, out, &p, 0)
		c.ping = false
	}
	if last >= 0 { // the next packet waits for its acknowledgement
		out.heads[last+1] |= flagPrompt
	}
	if c.ping {
		c.emit(now, out, &part{offset: c.send.buffer.first}, flagPrompt)
		c.ping = false
	}
	switch isShut := c.log.inFlight == 0 && c.send.blocked(); {
	case !isShut:
		c.shutAt = core.Never
	case c.shutAt == core.Never:
		c.shutAt = now
	}
	if c.receive.ackDue(now) {
		n := c.receive.ackSize()
		head := out.head(dataHead + n)
		putData(head, 0, n, uint32(c.log.next), c.peer, uint32(c.log.first), 0)
		c.receive.putAck(now, head[dataHead:])
		out.single(len(head))
	}
}

// probe sends a packet whatever the window: lost or new bytes, or the oldest that are in
// flight once more, or none.
func (c *Conn) probe(now core.Time, out *Output) {
	c.probes = 0
	p, isThere := c.send.pick(c.datagram - dataHead)
	for n := c.log.first; n < c.log.next && !isThere; n++ {
		s := c.log.of(n)
		of := span{max(s.offset, c.send.buffer.first), s.offset + uint64(s.bytes)}
		if isThere = !s.settled && of.from < of.to && !c.send.acked.has(of); isThere {
			p = c.send.cut(of, c.datagram-dataHead)
		}
	}
	if !isThere {
		p = part{offset: c.send.buffer.first}
	}
	c.emit(now, out, &p, flagPrompt)
	c.ping = false
}

// emit sends a packet that is to be acknowledged, with an acknowledgement if there is
// room, and returns where its head is.
func (c *Conn) emit(now core.Time, out *Output, p *part, flags byte) (at int) {
	flags |= flagCounts
	if p.fin {
		flags |= flagFin
	}
	ack := 0
	if c.receive.immediate || c.receive.ackAt != core.Never {
		if n := c.receive.ackSize(); dataHead+n+len(p.body) <= c.datagram {
			ack = n
		}
	}
	if c.log.inFlight == 0 && c.state != Closing {
		c.progress = now
	}
	sp := p.span()
	size := overhead + dataHead + ack + len(p.body)
	number := c.log.add(sentPacket{offset: p.offset, at: now, bytes: int32(sp.to - sp.from), size: int32(size)})
	at = len(out.heads)
	head := out.head(dataHead + ack)
	putData(head, flags, ack, uint32(number), c.peer, uint32(c.log.first), p.offset)
	if ack > 0 {
		c.receive.putAck(now, head[dataHead:])
	}
	out.data(len(head), p, c.datagram-dataHead, c.send.buffer.index(p.offset) == 0)
	c.send.sent(p)
	c.pace.sent(size)
	c.sentAt = now
	return at
}
