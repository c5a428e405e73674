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
	if p.coded || p.Parts != nil || !p.sink || wire.HeaderSize+c.size() != size {
		return 0
	}
	isOldest, lent := first == s.base, p.end()-s.cfg.Window // numbers before lent: see keep
	to := p.Out[c.offset:]
	n, taken := first, 0
	for n != s.next && len(packets) >= size {
		c := s.at(n)
		if c.number != n || c.op != p || c.elements != elements || c.state != flying || c.credit || !c.sent || c.given || c.care.asked != 0 ||
			!p.down.FitsChunk(packets, wire.Sink, n, elements) {
			break
		}
		s.landed(now, c)
		data := packets[wire.HeaderSize:size:size]
		into := to[:len(data):len(data)]
		if wire.Newer(lent, n) {
			c.kept = into
		} else {
			s.own(c, len(data))
			copy(c.kept, data)
		}
		copy(into, data)
		c.state, c.given = done, true
		to, packets = to[len(data):], packets[size:]
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
// are: full chunks of one operation, right behind those in its vector. It reports whether
// there were any. They do what contribute does, but at once what is the same for all.
func (s *Session) contributions(now core.Time, limit uint32, out *Output) bool {
	p, last := s.ops[0], len(out.Sends)-1
	if last < 0 || p.coded || p.Parts != nil || p.copies && !p.source || p.perItem == 0 || p.stamped != s.link.Epoch || s.next == s.base {
		return false
	}
	i, size := s.created-p.first, p.perItem*p.width
	at, run := int(i)*size, &out.Sends[last]
	n := min(limit-s.next, s.flow.size-s.flight, wire.BatchChunks-i%wire.BatchChunks, uint32(p.Elements/p.perItem)-min(i, uint32(p.Elements/p.perItem)))
	if i == 0 || n == 0 || run.Size != size || !run.follows(s.link.Parent, p.In[at:at+size]) {
		return false
	}
	begin := len(out.heads)
	out.heads = slices.Grow(out.heads, int(n)*wire.HeaderSize)[:begin+int(n)*wire.HeaderSize]
	run.Heads = out.heads[begin-len(run.Heads):]
	run.Body = run.Body[:len(run.Body)+int(n)*size]
	for head := out.heads[begin:]; len(head) > 0; head = head[wire.HeaderSize:] {
		c := s.create()
		c.sent = true
		s.reported(now, c)
		p.up.Put((*[wire.HeaderSize]byte)(head), c.flags(), c.number, c.elements, 0)
		s.next++
	}
	s.counters.Sent += uint64(n)
	return true
}
