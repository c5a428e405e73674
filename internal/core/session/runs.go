package session

import (
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// receiveBatch takes packets that came as one. Results of chunks that follow each other
// are taken together, all others one by one.
func (s *Session) receiveBatch(now core.Time, in *Input, out *Output) {
	one := Input{From: in.From}
	for rest := in.Packet; len(rest) > 0; {
		n := s.results(now, in.From, rest, in.Size, out) * in.Size
		if n == 0 {
			n = min(in.Size, len(rest))
			one.Packet = rest[:n:n]
			s.receive(now, &one, out)
		}
		rest = rest[n:]
	}
}

// results takes the results at the beginning of packets, of size bytes each, that receive
// would take one after the other: of full chunks of one operation, which follow each
// other, fill their packets and were never asked for. It returns how many. They do what
// they do by themselves, but for what each does to the timer that the next one does anew.
func (s *Session) results(now core.Time, from netip.AddrPort, packets []byte, size int, out *Output) int {
	if s.frozen || size <= wire.HeaderSize || len(packets) < size || from != s.link.Parent {
		return 0
	}
	first, _ := wire.PeekChunk(packets)
	c := s.at(first)
	if c.state != flying || c.given || wire.Newer(s.base, first) || !wire.Newer(s.next, first) {
		return 0
	}
	p, elements := c.op, c.elements
	if p.Parts != nil || !p.sink || wire.HeaderSize+c.size() != size {
		return 0
	}
	isOldest, lent := first == s.base, p.end()-s.cfg.Window // numbers before lent: see keep
	at := c.offset / p.width
	n, taken := first, 0
	for n != s.next && len(packets) >= size {
		c := s.at(n)
		if c.number != n || c.op != p || c.elements != elements || c.state != flying || c.credit || !c.sent || c.given || c.care.asked != 0 {
			break
		}
		exponent := int8(0)
		if p.block {
			_, exponent = wire.PeekChunk(packets)
		}
		if !p.down.FitsChunk(packets, wire.Sink, n, elements, exponent) {
			break
		}
		s.landed(now, c)
		data := packets[wire.HeaderSize:size:size]
		into := p.Out[at*p.vector : (at+int(elements))*p.vector : (at+int(elements))*p.vector]
		if !p.coded && wire.Newer(lent, n) {
			c.kept = into
		} else {
			s.own(c, len(data))
			copy(c.kept, data)
			c.exponent = exponent
		}
		if p.coded {
			p.decode(into, data, exponent, at)
		} else {
			copy(into, data)
		}
		c.state, c.given = done, true
		at, packets = at+int(elements), packets[size:]
		n++
		taken++
	}
	if taken == 0 {
		return 0
	}
	s.timer.sign(now)
	s.counters.Results += uint64(taken)
	p.missing -= uint32(taken)
	if s.link.Offload() {
		p.offload += uint32(taken)
	}
	if isOldest {
		s.advance(now)
	}
	if p.missing == 0 {
		s.complete(p, out)
	}
	return taken
}

// contributions sends the next chunks that no number has yet, up to limit and the
// window of congestion control, as further packets of the batch at out's end, where they
// are: full chunks of one operation, right behind those in its vector, or in s.turned. It reports whether
// there were any. They do what contribute does, but at once what is the same for all.
func (s *Session) contributions(now core.Time, limit uint32, out *Output) bool {
	p, last := s.ops[0], len(out.Sends)-1
	if last < 0 || p.Parts != nil || p.copies && !p.source || p.perItem == 0 || p.stamped != s.link.Epoch || s.next == s.base {
		return false
	}
	run, i, size := &out.Sends[last], s.created-p.first, p.full()
	n := min(limit-s.next, s.flow.size-s.flight, wire.BatchChunks-i%wire.BatchChunks, max(uint32(p.agreedBefore(s.base)/p.perItem), i)-i)
	if i == 0 || n == 0 || run.Size != size {
		return false
	}
	body := s.payloads(p, i, n)
	if n = uint32(len(body) / size); n == 0 || !run.follows(s.link.Parent, body[:size]) {
		return false
	}
	begin := len(out.heads)
	out.heads = slices.Grow(out.heads, int(n)*wire.HeaderSize)[:begin+int(n)*wire.HeaderSize]
	run.Heads = out.heads[begin-len(run.Heads):]
	run.Body = run.Body[:len(run.Body)+len(body)]
	for head := out.heads[begin:]; len(head) > 0; head = head[wire.HeaderSize:] {
		c := s.create()
		c.sent = true
		s.reported(now, c)
		exponent := int8(0)
		if p.coded {
			_, exponent = s.input(c)
		}
		p.up.Put((*[wire.HeaderSize]byte)(head), c.flags(), c.number, c.elements, exponent)
		s.next++
	}
	s.counters.Sent += uint64(n)
	return true
}

// payloads returns the memory for those of up to n full chunks of p, from its i-th, the next to be created, on: a part
// of the vector, or of s.turned as far as their places follow each other there and are free.
func (s *Session) payloads(p *operation, i, n uint32) []byte {
	size := p.full()
	if !p.coded {
		return p.In[int(i)*size : int(i+n)*size]
	}
	if size != s.turnedSize {
		return nil // see turn
	}
	place, free := s.created&uint32(len(s.ring)-1), uint32(0)
	for n = min(n, uint32(len(s.ring))-place); free < n && (len(s.ring) >= int(2*s.cfg.Window) || s.ring[place+free].state == vacant); free++ {
	}
	return s.turned[int(place)*size : int(place+free)*size]
}
