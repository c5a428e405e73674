package transport

import (
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// groRoom is the memory for what is received as one; it is touched as
	// far as that is long.
	groRoom = 1 << 16

	// datagramRoom is the memory for what fits a frame of Ethernet.
	datagramRoom = 2048

	batchesIn   = 16 // received at once
	datagramsIn = 64 // where each comes by itself
)

// inbound is what a system call receives, and what of it was not given away.
type inbound struct {
	coalesces, lends bool
	batches          bool // what came as one is given as one

	*arrivals      // nil while the socket is idle
	first     byte // of what is there: see prepare
	streak    int  // calls in a row that found something, with memory for one

	used  int // messages whose lengths the kernel has overwritten
	count int // messages that were received; before at, all was given away
	at    int
	rest  []byte // of message at
	size  int    // of its datagrams, but for the last
	from  netip.AddrPort
	above int // bytes of the headers of each

	sender unix.RawSockaddrInet6 // that from was made of
	known  bool
	copies []byte // where nothing is lent: copies of datagrams
}

// arrivals are the memory of one call, which sockets use in turn: one that is
// idle has none.
type arrivals struct {
	class    class
	messages []mmsghdr // and what they refer to
	vectors  []unix.Iovec
	names    []unix.RawSockaddrInet6 // large enough for both families
	control  []byte
	room     []byte
	each     int // bytes of room for a message
}

// class is how much is received at once: what a socket takes to which something
// comes now and then, of which thousands may wake together, or a system call's
// worth, for one to which something has come several times in a row.
type class uint8

const (
	oneDatagram class = iota // that fits a frame of Ethernet
	oneBatch                 // or a large datagram
	manyBatches
	manyDatagrams // without coalescing
	classes
)

// spareArrivals are those that no socket uses.
var spareArrivals = [classes]sync.Pool{
	oneDatagram:   {New: func() any { return newArrivals(oneDatagram, 1, datagramRoom) }},
	oneBatch:      {New: func() any { return newArrivals(oneBatch, 1, groRoom) }},
	manyBatches:   {New: func() any { return newArrivals(manyBatches, batchesIn, groRoom) }},
	manyDatagrams: {New: func() any { return newArrivals(manyDatagrams, datagramsIn, groRoom) }},
}

func newArrivals(c class, n, each int) *arrivals {
	a := &arrivals{
		class: c, each: each,
		messages: make([]mmsghdr, n), vectors: make([]unix.Iovec, n), names: make([]unix.RawSockaddrInet6, n),
		room: make([]byte, n*each), control: make([]byte, n*controlSpace),
	}
	for i := range a.messages {
		a.vectors[i].Base = &a.room[i*each]
		a.vectors[i].SetLen(each)
		h := &a.messages[i].hdr
		h.Name, h.Iov = (*byte)(unsafe.Pointer(&a.names[i])), &a.vectors[i]
		h.SetIovlen(1)
	}
	return a
}

func (in *inbound) init(coalesces, lends, batches bool) {
	in.coalesces, in.lends, in.batches = coalesces, lends, batches
}

// acquire gets memory of a class to receive into.
func (in *inbound) acquire(c class) {
	in.arrivals = spareArrivals[c].Get().(*arrivals)
	in.streak, in.used, in.known = 0, len(in.messages), false // by others, or none, but fetch prepares what was
	for i := range in.messages {
		in.messages[i].hdr.Control = nil
		if in.coalesces {
			in.messages[i].hdr.Control = &in.control[i*controlSpace]
		}
	}
}

// prepare has memory for what is there, if there is something.
func (in *inbound) prepare(fd int) syscall.Errno {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&in.first)), 1,
		unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		in.streak = 0
		return errno
	}
	need := oneDatagram
	switch {
	case in.streak >= streakMost && in.coalesces:
		need = manyBatches
	case in.streak >= streakMost:
		need = manyDatagrams
	case int(n) > datagramRoom:
		need = oneBatch
	}
	if in.arrivals == nil || in.class < need {
		in.release()
		in.acquire(need)
	}
	in.streak++
	return 0
}

// release gives the memory back. Nothing that was lent may be in use any more.
func (in *inbound) release() {
	if in.arrivals != nil && in.empty() {
		spareArrivals[in.class].Put(in.arrivals)
		in.arrivals, in.rest, in.copies = nil, nil, nil
	}
}

// controlSpace is the bytes of a control message that reports the size of a
// GRO batch's datagrams.
var controlSpace = unix.CmsgSpace(4)

// empty reports whether all was given away.
func (in *inbound) empty() bool { return in.at == in.count }

// fetch receives what is there. It does not wait.
func (in *inbound) fetch(fd int) syscall.Errno {
	if in.arrivals == nil || in.class < manyBatches {
		if errno := in.prepare(fd); errno != 0 {
			return errno
		}
	}
	return in.fill(fd)
}

// receive is fetch for who knows that something is there, more often than not: it does
// without the look at what that is.
func (in *inbound) receive(fd int) syscall.Errno {
	need := oneBatch
	switch {
	case in.streak >= streakMost && in.coalesces:
		need = manyBatches
	case in.streak >= streakMost:
		need = manyDatagrams
	}
	if in.arrivals == nil || in.class < need {
		streak := in.streak
		in.release()
		in.acquire(need)
		in.streak = streak
	}
	errno := in.fill(fd)
	if in.streak++; errno != 0 {
		in.streak = 0
		in.release()
	}
	return errno
}

// fill receives into the memory that there is.
func (in *inbound) fill(fd int) syscall.Errno {
	for i := range in.messages[:in.used] {
		h := &in.messages[i].hdr
		h.Namelen = unix.SizeofSockaddrInet6
		if in.coalesces {
			h.SetControllen(controlSpace)
		}
	}
	in.used, in.count, in.at, in.rest = 0, 0, 0, nil
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(in.messages))),
		uintptr(len(in.messages)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return errno
	}
	in.used, in.count = int(n), int(n)
	in.open()
	return 0
}

// streakMost is how often in a row something is received by itself before a socket
// receives many at once.
const streakMost = 4

// open begins with message at, if there is one.
func (in *inbound) open() {
	if in.at == in.count {
		return
	}
	m := &in.messages[in.at]
	at := in.at * in.each
	in.rest = in.room[at : at+int(m.bytes)]
	in.size = in.segment(in.at)
	if name := &in.names[in.at]; !in.known || *name != in.sender {
		in.sender, in.known = *name, true
		in.from = addrPortOf(name)
		in.above = overhead(in.from.Addr())
	}
}

// give gives packets away, and returns how many, how many datagrams they are,
// and the bytes of these with their headers.
func (in *inbound) give(packets []Packet) (n, datagrams, bytes int) {
	if !in.lends {
		in.copies = in.copies[:0]
	}
	for n < len(packets) && in.at < in.count {
		size, run, count := min(in.size, len(in.rest)), 0, 1
		if in.batches && size < len(in.rest) {
			count, run = (len(in.rest)+size-1)/size, size
			size = len(in.rest)
		}
		data := in.rest[:size:size]
		in.rest = in.rest[size:]
		if !in.lends {
			begin := len(in.copies)
			in.copies = append(in.copies, data...)
			data = in.copies[begin:len(in.copies):len(in.copies)]
		}
		packets[n] = Packet{Data: data, From: in.from, Size: run}
		n++
		datagrams += count
		bytes += size + count*in.above
		if len(in.rest) == 0 {
			in.at++
			in.open()
		}
	}
	return n, datagrams, bytes
}

// segment returns the size of the datagrams of message i.
func (in *inbound) segment(i int) int {
	m := &in.messages[i]
	if in.coalesces && int(m.hdr.Controllen) >= unix.CmsgLen(4) {
		b := in.control[i*controlSpace:]
		level, kind := header(b)
		if size := int(getUint32(b[unix.CmsgLen(0):])); level == unix.SOL_UDP && kind == unix.UDP_GRO && size > 0 {
			return size
		}
	}
	return max(1, int(m.bytes)) // a datagram alone
}
