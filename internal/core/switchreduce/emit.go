package switchreduce

import (
	"encoding/binary"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// Batch is packets to one neighbour that lie one behind the other in memory, as
// they are sent: each of Size bytes, but the last may be shorter. The memory is
// lent until the next Step. Batches to several children are the same memory, since
// their packets differ in child index and cookie alone: Address must be called just
// before a Batch is sent.
type Batch struct {
	To      netip.AddrPort
	Packets []byte
	Size    int
	Cookie  wire.Cookie
	child   uint16
}

// Address writes into the packets which child they are for or from.
func (r *Batch) Address() {
	for at := 0; at < len(r.Packets); at += r.Size {
		wire.Address(r.Packets[at:], r.child, r.Cookie)
	}
}

// queue is the packets that a Step sends from the slots' memory, in the order
// in which they came about: partials to the parent, and results to all
// children. They are given out together, so that those that lie side by side
// become one Batch.
type queue struct {
	epoch    uint32
	up, down []piece
	head     head // of the last packet
}

// head is a header, and what it was made of beside the chunk's number.
type head struct {
	epoch    uint32
	kind     wire.Type // 0: there is none
	flags    wire.Flags
	exponent int8
	sig      wire.Signature
	bytes    [wire.HeaderSize]byte
}

// fits reports whether a packet of s has the header, but for the chunk's number.
func (h *head) fits(s *slot, kind wire.Type, flags wire.Flags) bool {
	return h.kind == kind && h.flags == flags && h.epoch == s.epoch && h.exponent == s.exponent && h.sig == s.sig
}

// piece is a number of packets side by side, each of size bytes, but the last
// may be shorter.
type piece struct {
	packets []byte
	size    int
	count   int
}

// push adds a packet behind the others, or joins it to the last.
func push(all []piece, packet []byte) []piece {
	if n := len(all); n > 0 && all[n-1].joins(packet) {
		last := &all[n-1]
		last.packets = last.packets[:len(last.packets)+len(packet)]
		last.count++
		return all
	}
	return append(all, piece{packet, len(packet), 1})
}

// joins reports whether packet lies right behind the others, and may follow
// them in a batch.
func (p *piece) joins(packet []byte) bool {
	n := len(p.packets)
	return n == p.count*p.size && len(packet) <= p.size && cap(p.packets) > n && &p.packets[:n+1][n] == &packet[0]
}

// send queues what the slot sends: a contribution to the parent, or a result to every
// child.
func (c *Core) send(e *epoch, s *slot, kind wire.Type, flags wire.Flags, out *Output) {
	if c.queue.epoch != e.Epoch {
		c.emit(out)
		c.queue.epoch = e.Epoch
	}
	q := &c.queue.head
	if !q.fits(s, kind, flags) {
		h := e.header(kind, s.number)
		h.Flags, h.Signature, h.Exponent = flags, s.sig, s.exponent
		q.epoch, q.kind, q.flags, q.exponent, q.sig = s.epoch, kind, flags, s.exponent, s.sig
		h.Put(q.bytes[:])
	}
	copy(s.packet, q.bytes[:])
	binary.BigEndian.PutUint32(s.packet[chunkAt:], s.number)
	s.lent = c.step
	packet := s.packet[:wire.HeaderSize+s.size]
	if kind == wire.Contribution {
		c.queue.up = push(c.queue.up, packet)
	} else {
		c.queue.down = push(c.queue.down, packet)
	}
}

// emit puts out what is queued.
func (c *Core) emit(out *Output) {
	q := &c.queue
	if len(q.up)+len(q.down) == 0 {
		return
	}
	e := c.find(q.epoch)
	if len(q.up) > 0 {
		e.emit(len(e.Children), Batch{To: e.Parent, child: e.Index, Cookie: e.Cookie}, q.up, out)
	}
	if len(q.down) > 0 {
		for i := range e.Children {
			to := &e.Children[i]
			e.emit(i, Batch{To: to.Addr, child: uint16(i), Cookie: to.Cookie}, q.down, out)
		}
	}
	clear(q.up)
	clear(q.down)
	q.up, q.down = q.up[:0], q.down[:0]
}

// emit puts out pieces to a child, or to the parent if that is len(e.Children), each
// as r.
func (e *epoch) emit(neighbour int, r Batch, pieces []piece, out *Output) {
	t := &e.traffic[neighbour]
	// Batches to several children are sent one after the other; a packet alone goes
	// to all of them in one batch.
	runs := out.TakesBatches && (len(pieces) > 1 || pieces[0].count > 1)
	for i := range pieces {
		p := &pieces[i]
		t.PacketsOut += uint64(p.count)
		t.BytesOut += uint64(len(p.packets))
		r.Packets, r.Size = p.packets, p.size
		if runs {
			out.Batches = append(out.Batches, r)
			continue
		}
		r.Address()
		for rest := p.packets; len(rest) > 0; {
			n := min(p.size, len(rest))
			out.Sends = append(out.Sends, Send{To: r.To, Head: [wire.HeaderSize]byte(rest), Body: rest[wire.HeaderSize:n:n]})
			rest = rest[n:]
		}
	}
}
