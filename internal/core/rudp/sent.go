package rudp

import (
	"github.com/tributary-fabric/tributary/internal/core"
)

// sentPacket is a packet that is to be acknowledged.
type sentPacket struct {
	offset  uint64
	at      core.Time
	bytes   int32 // of the stream; its end counts as one
	size    int32 // with all headers
	settled bool  // acknowledged, or lost
}

// sentLog is the packets from number first to next-1; the one at first is not settled.
// A number is never used again, so an acknowledgement says which sending arrived.
type sentLog struct {
	ring        []sentPacket
	first, next uint64
	inFlight    int // bytes of those that are not settled
}

const (
	minSent = 16
	maxSent = 1 << 15
)

func (l *sentLog) of(number uint64) *sentPacket { return &l.ring[number&uint64(len(l.ring)-1)] }

func (l *sentLog) full() bool { return l.next-l.first >= maxSent }

func (l *sentLog) add(p sentPacket) uint64 {
	if int(l.next-l.first) == len(l.ring) {
		old := *l
		l.ring = make([]sentPacket, max(minSent, 2*len(l.ring)))
		for n := old.first; n < old.next; n++ {
			*l.of(n) = *old.of(n)
		}
	}
	number := l.next
	*l.of(number) = p
	l.next++
	l.inFlight += int(p.size)
	return number
}

// settle ends the flight of a packet.
func (l *sentLog) settle(p *sentPacket) {
	p.settled = true
	l.inFlight -= int(p.size)
	for l.first < l.next && l.of(l.first).settled {
		l.first++
	}
}

// sender is the stream that is sent. Its end counts as one more byte.
type sender struct {
	buffer ring // what is not acknowledged; first is the first such byte
	most   int  // bytes of buffer
	acked  ranges
	lost   ranges // to be sent again
	next   uint64 // nothing from here on was sent
	limit  uint64 // of the peer's window: bytes below it may be sent
	closed bool
}

// end returns the offset after all that is to be sent.
func (s *sender) end() uint64 {
	if s.closed {
		return s.buffer.end + 1
	}
	return s.buffer.end
}

// done reports that all was acknowledged, the end too.
func (s *sender) done() bool {
	return s.closed && s.next > s.buffer.end && s.settledTo() > s.buffer.end
}

func (s *sender) settledTo() uint64 {
	if len(s.acked) > 0 && s.acked[0].from <= s.buffer.first {
		return s.acked[0].to
	}
	return s.buffer.first
}

func (s *sender) room() int { return max(0, s.most-s.buffer.len()) }

// write takes as much of b as there is room for.
func (s *sender) write(b []byte) int {
	n := min(len(b), s.room())
	s.buffer.put(s.buffer.end, b[:n])
	return n
}

// part is bytes of the stream for a packet.
type part struct {
	offset uint64
	body   []byte
	fin    bool
}

func (p *part) span() span {
	s := span{p.offset, p.offset + uint64(len(p.body))}
	if p.fin {
		s.to++
	}
	return s
}

// pick returns what is to be sent next, of at most that many bytes.
func (s *sender) pick(most int) (part, bool) {
	if len(s.lost) > 0 {
		return s.cut(s.lost[0], most), true
	}
	to := min(s.buffer.end, max(s.limit, s.next))
	switch {
	case s.next < to:
		return s.cut(span{s.next, to}, most), true
	case s.closed && s.next == s.buffer.end:
		return part{offset: s.next, fin: true}, true
	}
	return part{}, false
}

// cut returns the first bytes of a span, as far as they lie in one piece.
func (s *sender) cut(of span, most int) part {
	to := min(of.to, s.buffer.end, of.from+uint64(most))
	p := part{offset: of.from, body: s.buffer.slice(of.from, to)}
	end := of.from + uint64(len(p.body))
	p.fin = s.closed && end == s.buffer.end
	return p
}

// blocked reports that only the peer's window keeps bytes back.
func (s *sender) blocked() bool {
	return len(s.lost) == 0 && s.next < s.buffer.end && s.next >= s.limit
}

func (s *sender) sent(p *part) {
	sp := p.span()
	s.lost.remove(sp)
	s.next = max(s.next, sp.to)
}

// arrived notes that the peer has the bytes of a packet.
func (s *sender) arrived(sp span) {
	s.lost.remove(sp)
	if sp.to <= s.buffer.first || s.acked.has(sp) {
		return
	}
	s.acked.add(sp)
	if to := s.settledTo(); to > s.buffer.first {
		s.buffer.drop(min(to, s.buffer.end))
		s.acked.prune(s.buffer.first)
	}
}

// lose notes that a packet was lost: what of it has not arrived otherwise is sent again.
func (s *sender) lose(sp span) {
	sp.from = max(sp.from, s.buffer.first)
	if sp.from >= sp.to || s.acked.has(sp) {
		return
	}
	s.lost.add(sp)
	for _, a := range s.acked {
		if a.from >= sp.to {
			break
		}
		s.lost.remove(a)
	}
}
