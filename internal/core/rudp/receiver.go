package rudp

import (
	"encoding/binary"

	"github.com/tributary-fabric/tributary/internal/core"
)

// receiver is the stream that comes in.
type receiver struct {
	buffer ring   // from the next byte to be read
	most   int    // bytes of buffer: the window
	there  ranges // what has come beyond ready
	ready  uint64 // all below has come
	limit  uint64 // what the peer knows of the window
	end    uint64 // of the stream, if known
	ended  bool   // it is
	refuse bool   // nobody reads any more: bytes are dropped

	// Packets, by their numbers.
	numbers   ranges
	largest   core.Time // when the largest came
	unacked   int       // packets since the last acknowledgement
	ackAt     core.Time // when that has to be sent; Never: nothing is to be acknowledged
	immediate bool      // at once
}

const (
	maxGaps  = 1024 // ranges of bytes beyond ready
	ackEvery = 8    // packets, or maxAckDelay, or when the sender asks
)

// next returns one more than the largest number that has come.
func (r *receiver) next() uint64 {
	if len(r.numbers) == 0 {
		return 0
	}
	return r.numbers[len(r.numbers)-1].to
}

// finished reports that all has come.
func (r *receiver) finished() bool { return r.ended && r.ready >= r.end }

// atEOF reports that all was read, too.
func (r *receiver) atEOF() bool { return r.ended && r.buffer.first >= r.end }

func (r *receiver) readable() int { return int(r.ready - r.buffer.first) }

// accepts reports whether a packet keeps to the window and to the end of the stream.
func (r *receiver) accepts(p *dataPacket) bool {
	end := p.offset + uint64(len(p.body))
	switch {
	case end > r.limit:
		return false
	case r.ended && end > r.end, r.ended && p.flags&flagFin != 0 && end != r.end:
		return false
	case p.flags&flagFin == 0:
		return true
	}
	last := r.ready
	if len(r.there) > 0 {
		last = r.there[len(r.there)-1].to
	}
	return end >= last
}

// number notes the packet's number, and when it is to be acknowledged.
func (r *receiver) number(now core.Time, p *dataPacket) {
	next := r.next()
	n := widen(next, p.number)
	if n > maxOffset { // before the first
		n = uint64(p.number)
	}
	if len(r.numbers) == 0 || n >= next {
		r.largest = now
	}
	r.numbers.add(span{n, n + 1})
	r.numbers.prune(min(widen(n, p.low), n))
	if len(r.numbers) > maxRanges {
		r.numbers = r.numbers[:copy(r.numbers, r.numbers[1:])]
	}
	r.unacked++
	if n != next && next != 0 || len(r.numbers) > 1 || r.unacked >= ackEvery || p.flags&(flagPrompt|flagFin) != 0 {
		r.immediate = true
	}
	r.ackAt = r.ackAt.Earlier(now.Add(maxAckDelay))
}

// take takes the bytes of a packet that is accepted. It reports whether there is
// something new to read.
func (r *receiver) take(p *dataPacket) bool {
	end := p.offset + uint64(len(p.body))
	if p.flags&flagFin != 0 {
		r.end, r.ended = end, true
	}
	at, body := p.offset, p.body
	if at < r.ready {
		body = body[min(uint64(len(body)), r.ready-at):]
		at = end - uint64(len(body))
	}
	before := r.ready
	if len(body) > 0 {
		r.buffer.put(at, body)
		if at == r.ready && len(r.there) == 0 {
			r.ready = end
		} else {
			r.there.add(span{at, end})
			if r.there[0].from <= r.ready {
				r.ready = r.there[0].to
				r.there.prune(r.ready)
			}
		}
	}
	if r.refuse {
		r.skip()
	}
	return r.ready > before || r.finished()
}

// skip drops what is there, because nobody reads it.
func (r *receiver) skip() {
	r.buffer.end = max(r.buffer.end, r.ready)
	r.buffer.drop(r.ready)
	r.opened()
}

// read copies what is there into b.
func (r *receiver) read(b []byte) (n int) {
	for n < len(b) && r.buffer.first < r.ready {
		k := copy(b[n:], r.buffer.slice(r.buffer.first, r.ready))
		r.buffer.drop(r.buffer.first + uint64(k))
		n += k
	}
	r.opened()
	return n
}

// opened has the peer learn of the window, when a quarter of it is new.
func (r *receiver) opened() {
	if r.window()-r.limit >= uint64(r.most/4) && !r.finished() {
		r.immediate = true
	}
}

func (r *receiver) window() uint64 { return r.buffer.first + uint64(r.most) }

// ackDue reports whether an acknowledgement is to be sent now.
func (r *receiver) ackDue(now core.Time) bool { return r.immediate || r.ackAt <= now }

// ackSize returns the bytes of an acknowledgement.
func (r *receiver) ackSize() int {
	return ackHead + max(0, len(r.numbers)-1)*ackRange
}

// putAck writes an acknowledgement, of ackSize bytes. Without a packet that has come, its
// first range is empty.
func (r *receiver) putAck(now core.Time, b []byte) {
	clear(b[:ackHead])
	r.limit = max(r.limit, r.window())
	binary.BigEndian.PutUint64(b[8:], r.limit)
	r.unacked, r.ackAt, r.immediate = 0, core.Never, false
	i := len(r.numbers) - 1
	if i < 0 {
		return
	}
	delay := min(now.Sub(r.largest).Microseconds(), largestTime)
	binary.BigEndian.PutUint32(b, uint32(r.numbers[i].to-1))
	binary.BigEndian.PutUint32(b[4:], uint32(delay))
	binary.BigEndian.PutUint32(b[16:], uint32(min(r.numbers[i].to-r.numbers[i].from, largestTime)))
	for at := ackHead; i > 0; i-- {
		above, s := r.numbers[i], r.numbers[i-1]
		binary.BigEndian.PutUint32(b[at:], uint32(above.from-s.to))
		binary.BigEndian.PutUint32(b[at+4:], uint32(s.to-s.from))
		at += ackRange
	}
}
