package rudp

import "slices"

// News is what has changed for the user of a connection.
type News uint8

// The news, which may come together.
const (
	Opened   News = 1 << iota // a call was accepted
	Readable                  // there is more to Read, or its end
	Writable                  // there is room again for a good part of the send buffer
	Over                      // the connection has ended: see Conn.Err
)

// Batch is datagrams to send: each has a head and a body. Where Size is 0 it is one.
// Otherwise Body has Size bytes of each, one after the other, but for the last, which may
// have fewer, and Head as many bytes of each.
type Batch struct {
	Head, Body []byte // Body is memory of the Conn: valid until its next method is called
	Size       int

	from, to int // of heads
	count    int
	end      uint64 // the offset in the stream after Body
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Batches []Batch
	News    News

	heads []byte
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	clear(o.Batches)
	*o = Output{Batches: o.Batches[:0], heads: o.heads[:0]}
}

// head returns memory for a head of a new datagram, until the next call.
func (o *Output) head(n int) []byte {
	at := len(o.heads)
	o.heads = slices.Grow(o.heads, n)[:at+n]
	clear(o.heads[at:])
	return o.heads[at:]
}

// single adds a datagram that is all head, the last so many bytes.
func (o *Output) single(n int) {
	o.Batches = append(o.Batches, Batch{from: len(o.heads) - n, to: len(o.heads), count: 1})
}

// whole adds a datagram of those bytes.
func (o *Output) whole(b []byte) {
	o.heads = append(o.heads, b...)
	o.single(len(b))
}

// data adds a datagram: a head, the last so many bytes, and a part of the stream. It joins
// the batch before it, if that goes on to there with full ones.
func (o *Output) data(n int, p *part, full int, isWrapped bool) {
	if i := len(o.Batches) - 1; i >= 0 && n == dataHead && !isWrapped {
		b := &o.Batches[i]
		if b.end == p.offset && b.count*full == len(b.Body) && b.to-b.from == b.count*dataHead && len(p.body) > 0 {
			b.Body = b.Body[:len(b.Body)+len(p.body)]
			b.to, b.end, b.Size = len(o.heads), b.end+uint64(len(p.body)), full
			b.count++
			return
		}
	}
	o.single(n)
	b := &o.Batches[len(o.Batches)-1]
	b.Body, b.end = p.body, p.offset+uint64(len(p.body))
}

// finish has the batches refer to their heads, which have moved while there were more.
func (o *Output) finish() {
	for i := range o.Batches {
		b := &o.Batches[i]
		b.Head = o.heads[b.from:b.to]
	}
}
