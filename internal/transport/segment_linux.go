package transport

import (
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// The kernel carries datagrams of one size to one destination as one large one
// that is cut into them at the last moment, or never (UDP segmentation and
// receive offload, Linux 4.18 and 5.0). On its way it costs as much as one.

const (
	// maxSegments is the datagrams that are sent as one. More would cost a
	// little less, but come in larger clumps, and fewer fit a window.
	maxSegments = 16
	// maxTrain is the payload of them all at most.
	maxTrain = 1<<16 - 1 - ipv6Header - udpHeader

	trainRoom    = 1 << 16 // of a buffer for what is received as one
	trainBuffers = 8       // read at once
)

// train is messages that are sent as one: of one size, but for the last, which
// may be shorter, and to one destination.
type train struct {
	messages []Message
	bytes    int
}

// marshal groups messages into trains: those to one destination stay in their
// order. It returns at most batchSize trains, of all the messages.
func (b *batches) marshal(messages []Message) []train {
	b.ordered, b.trains = b.ordered[:0], b.trains[:0]
	b.taken = b.taken[:0]
	for range messages {
		b.taken = append(b.taken, false)
	}
	for i := range messages {
		if !b.taken[i] {
			b.trains = append(b.trains, b.couple(messages, i))
		}
	}
	return b.trains
}

// couple takes the messages that go as one with the i-th.
func (b *batches) couple(messages []Message, i int) train {
	first, begin := &messages[i], len(b.ordered)
	size := len(first.Head) + len(first.Body)
	b.ordered = append(b.ordered, *first)
	t := train{bytes: size}
	for k := i + 1; k < len(messages) && !b.plain && size > 0 && len(b.ordered)-begin < maxSegments; k++ {
		m := &messages[k]
		if b.taken[k] || m.To != first.To {
			continue
		}
		n := len(m.Head) + len(m.Body)
		if n > size || n == 0 || t.bytes+n > maxTrain {
			break
		}
		b.taken[k] = true
		b.ordered = append(b.ordered, *m)
		t.bytes += n
		if n < size {
			break
		}
	}
	t.messages = b.ordered[begin:len(b.ordered):len(b.ordered)]
	return t
}

// load makes out send t.
func (b *batches) load(out *ipv4.Message, to *target, control []byte, t *train) {
	first := &t.messages[0]
	to.set(first.To)
	out.Buffers = out.Buffers[:0]
	for i := range t.messages {
		out.Buffers = append(out.Buffers, t.messages[i].Head, t.messages[i].Body)
	}
	out.OOB = nil
	if len(t.messages) > 1 {
		out.OOB = control
		putUint16(control[unix.CmsgLen(0):], uint16(len(first.Head)+len(first.Body)))
	}
}

// segmentControl returns the control message that tells the size of segments,
// which is put in later.
func segmentControl() []byte {
	b := make([]byte, unix.CmsgSpace(2))
	putHeader(b, unix.SOL_UDP, unix.UDP_SEGMENT, unix.CmsgLen(2))
	return b
}

// arrivals are datagrams that were received as one and are not yet given away.
type arrivals struct {
	rest []byte
	size int // of each, but for the last
	from netip.AddrPort
}

// next takes one of them.
func (a *arrivals) next(p *Packet) {
	n := min(a.size, len(a.rest))
	p.N, p.From = copy(p.Buffer, a.rest[:n]), a.from
	a.rest = a.rest[n:]
}

// enableTrains has the kernel give what it received as one, if it can.
func (b *batches) enableTrains(set func(level, option, value int) error) {
	if set(unix.SOL_UDP, unix.UDP_GRO, 1) != nil {
		return
	}
	b.in = b.in[:trainBuffers]
	room := make([]byte, trainBuffers*trainRoom) // touched as far as trains are long
	for i := range b.in {
		b.in[i].Buffers[0] = room[i*trainRoom : (i+1)*trainRoom : (i+1)*trainRoom]
		b.in[i].OOB = make([]byte, unix.CmsgSpace(4))
	}
	b.waiting = make([]arrivals, 0, trainBuffers)
	b.trainsIn = true
}

// readTrains is read where the kernel gives trains.
func (b *batches) readTrains(packets []Packet, flags int) (int, error) {
	if len(b.waiting) == 0 {
		n, err := b.conn.ReadBatch(b.in, flags)
		if err != nil {
			return 0, err
		}
		b.waiting = b.waiting[:0]
		for i := range b.in[:n] {
			m := &b.in[i]
			b.waiting = append(b.waiting, arrivals{m.Buffers[0][:m.N], segmentSize(m), addrOf(m.Addr)})
		}
	}
	n := 0
	for n < len(packets) && len(b.waiting) > 0 {
		a := &b.waiting[0]
		a.next(&packets[n])
		n++
		if len(a.rest) == 0 {
			b.waiting = b.waiting[1:]
		}
	}
	if len(b.waiting) == 0 {
		b.waiting = b.waiting[:0:cap(b.waiting)]
	}
	return n, nil
}

// segmentSize returns the size of the datagrams that m is made of.
func segmentSize(m *ipv4.Message) int {
	if m.NN >= unix.CmsgLen(4) {
		level, kind := header(m.OOB)
		if size := int(getUint32(m.OOB[unix.CmsgLen(0):])); level == unix.SOL_UDP && kind == unix.UDP_GRO && size > 0 {
			return size
		}
	}
	return max(1, m.N) // a datagram alone
}
