package transport

import (
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	// maxSegments is the datagrams of a GSO batch at most: batches end where those of
	// other members do.
	maxSegments = wire.BatchChunks
	// maxGSOBytes is the payload of them all at most.
	maxGSOBytes = 1<<16 - 1 - ipv6Header - udpHeader

	batchesOut = 16               // sent at once
	vectorsOut = 16 * maxSegments // pieces of memory sent at once
)

// outbound is what a system call sends.
type outbound struct {
	v4   bool
	most int // datagrams of a GSO batch; 1: there are no GSO batches

	source []byte // a control message that says from where datagrams are sent; nil: as routes have it

	queue []Message // that are to be loaded
	begun int       // bytes of the first one's Body that were, where it is a batch

	*departures                // nil while the socket sleeps in the poller
	to          netip.AddrPort // that the last name was made of
	filled      int            // vectors that are in use

	loaded, sent int // GSO batches
}

// gsoBatch is datagrams of one size, but for the last, which may be shorter, to
// one destination.
type gsoBatch struct {
	vectors            []unix.Iovec
	size, count, bytes int
	above              int // bytes of the headers of each
}

// departures are the memory of one call, which sockets use in turn.
type departures struct {
	headers []mmsghdr // one a GSO batch, and what they refer to
	vectors []unix.Iovec
	names   []unix.RawSockaddrInet6
	control []byte
	batches []gsoBatch
}

// spareDepartures are those that no socket uses.
var spareDepartures = sync.Pool{New: func() any {
	d := &departures{
		headers: make([]mmsghdr, batchesOut), names: make([]unix.RawSockaddrInet6, batchesOut),
		vectors: make([]unix.Iovec, vectorsOut), batches: make([]gsoBatch, batchesOut),
		control: make([]byte, batchesOut*controlOut),
	}
	for i := range d.headers {
		d.headers[i].hdr.Name = (*byte)(unsafe.Pointer(&d.names[i]))
		putHeader(d.control[i*controlOut:], unix.SOL_UDP, unix.UDP_SEGMENT, unix.CmsgLen(2))
	}
	return d
}}

func (o *outbound) init(segments, v4 bool) {
	o.v4, o.most = v4, 1
	if segments {
		o.most = maxSegments
	}
}

// acquire gets memory to send from.
func (o *outbound) acquire() {
	if o.departures == nil {
		o.departures = spareDepartures.Get().(*departures)
	}
}

// release gives the memory back.
func (o *outbound) release() {
	if o.departures != nil {
		clear(o.batches) // which refer to pieces
		spareDepartures.Put(o.departures)
		o.departures = nil
	}
}

// segmentSpace is the bytes of a control message that reports the size of a
// GSO batch's datagrams.
var segmentSpace = unix.CmsgSpace(2)

// controlOut is that, and the bytes of one that says from where a datagram is sent.
var controlOut = segmentSpace + unix.CmsgSpace(unix.SizeofInet6Pktinfo)

// load takes GSO batches from the queue, as many as one system call sends.
func (o *outbound) load() {
	clear(o.vectors[:o.filled]) // keep nothing alive
	o.loaded, o.sent, o.filled = 0, 0, 0
	for len(o.queue) > 0 && o.loaded < batchesOut && o.filled+2 <= vectorsOut {
		o.couple(&o.batches[o.loaded], o.queue[0].To)
		o.address(o.loaded)
		o.loaded++
	}
}

// couple makes t of the queue's first datagrams, which go to the address to.
func (o *outbound) couple(t *gsoBatch, to netip.AddrPort) {
	first := o.filled
	*t = gsoBatch{above: overhead(to.Addr())}
	for len(o.queue) > 0 && t.count < o.most && o.filled+2 <= vectorsOut {
		m := &o.queue[0]
		if t.count > 0 && m.To != to || !o.add(t, m) || t.bytes != t.count*t.size || t.size == 0 {
			break
		}
	}
	t.vectors, o.to = o.vectors[first:o.filled], to
}

// add adds what it can of m to t, and reports whether that was anything.
func (o *outbound) add(t *gsoBatch, m *Message) bool {
	if m.Size == 0 {
		size := len(m.Head) + len(m.Body)
		if !t.fits(size) {
			return false
		}
		o.piece(m.Head)
		o.piece(m.Body)
		t.count, t.bytes = t.count+1, t.bytes+size
		o.queue = o.queue[1:]
		return true
	}
	body, heads := m.Body[o.begun:], len(m.Head)/m.Count()
	size := min(m.Size, len(body))
	if !t.fits(heads + size) {
		return false
	}
	count := 1
	if heads+size == t.size && size > 0 {
		count = min(o.most-t.count, max(1, (maxGSOBytes-t.bytes)/t.size), (len(body)+size-1)/size)
	}
	if heads == 0 {
		body = body[:min(count*size, len(body))]
		o.piece(body)
		t.bytes += len(body)
		o.begun += len(body)
	} else {
		count = o.gather(t, m, count, heads)
	}
	t.count += count
	if o.begun == len(m.Body) {
		o.queue, o.begun = o.queue[1:], 0
	}
	return true
}

// gather adds to t the next datagrams of m, so many of them or as many as there
// are pieces for, each of which has a head of that many bytes. It returns how
// many.
func (o *outbound) gather(t *gsoBatch, m *Message, count, heads int) int {
	count = min(count, (vectorsOut-o.filled)/2)
	body, head := m.Body[o.begun:], m.Head[o.begun/m.Size*heads:]
	for range count {
		n := min(m.Size, len(body))
		o.piece(head[:heads])
		o.piece(body[:n])
		head, body = head[heads:], body[n:]
		t.bytes += heads + n
		o.begun += n
	}
	return count
}

// fits reports whether a datagram of so many bytes may be the next of t.
func (t *gsoBatch) fits(size int) bool {
	if t.count == 0 {
		t.size = size
		return true
	}
	return size <= t.size && size > 0 && t.bytes+size <= maxGSOBytes
}

func (o *outbound) piece(b []byte) {
	if len(b) > 0 {
		v := &o.vectors[o.filled]
		v.Base = unsafe.SliceData(b)
		v.SetLen(len(b))
		o.filled++
	}
}

// address makes header i send GSO batch i.
func (o *outbound) address(i int) {
	t, h := &o.batches[i], &o.headers[i].hdr
	h.Namelen = setSockaddr(&o.names[i], o.to, o.v4)
	h.Iov = unsafe.SliceData(t.vectors)
	h.SetIovlen(len(t.vectors))
	if t.count > 1 {
		putUint16(o.control[i*controlOut+unix.CmsgLen(0):], uint16(t.size))
	}
	o.attach(h, i, t.count > 1)
}

// attach gives header i its control messages: from where it is sent, if that is said,
// and before that the size of segments, if they are any.
func (o *outbound) attach(h *unix.Msghdr, i int, segments bool) {
	c := o.control[i*controlOut : (i+1)*controlOut]
	n := segmentSpace + copy(c[segmentSpace:], o.source)
	if !segments {
		c, n = c[segmentSpace:], n-segmentSpace
	}
	h.Control = nil
	if h.SetControllen(n); n > 0 {
		h.Control = &c[0]
	}
}

// flush sends what is loaded, until one GSO batch is refused: it returns why.
func (o *outbound) flush(fd int) syscall.Errno {
	n, errno := sendAll(fd, &o.headers[o.sent], o.loaded-o.sent)
	o.sent += n
	return errno
}

// roomTimeout is how long a full socket is waited for, in milliseconds: after
// that the link takes nothing.
const roomTimeout = 1000

// sendAll sends count messages, and waits for room in the socket. It returns
// how many were sent and, if that is not all, why the next one was not.
func sendAll(fd int, first *mmsghdr, count int) (sent int, why syscall.Errno) {
	for sent < count {
		next := (*mmsghdr)(unsafe.Add(unsafe.Pointer(first), sent*int(unsafe.Sizeof(*first))))
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(next)),
			uintptr(count-sent), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			room := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			if n, err := unix.Poll(room, roomTimeout); n == 0 && err == nil {
				return sent, errno
			}
		default:
			return sent, errno
		}
	}
	return sent, 0
}

// apart calls f with the pieces of each of t's datagrams.
func (t *gsoBatch) apart(f func(pieces []unix.Iovec, bytes int)) {
	pieces := make([]unix.Iovec, 0, 2)
	vectors := t.vectors
	var v unix.Iovec // what is left of the first
	for left := t.bytes; ; {
		n := min(t.size, left)
		left -= n
		pieces = pieces[:0]
		for need := n; need > 0; {
			if v.Len == 0 {
				v, vectors = vectors[0], vectors[1:]
			}
			part := v
			part.SetLen(min(int(v.Len), need))
			pieces = append(pieces, part)
			need -= int(part.Len)
			v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), int(part.Len)))
			v.SetLen(int(v.Len) - int(part.Len))
		}
		if f(pieces, n); left == 0 {
			return
		}
	}
}
