package transport

import (
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// trainRoom is the memory for what is received as one; it is touched as
	// far as that is long.
	trainRoom = 1 << 16

	trainsIn    = 16 // received at once
	datagramsIn = 64 // where each comes by itself
)

// inbound is what a system call receives, and what of it was not given away.
type inbound struct {
	coalesces, lends bool
	bundles          bool // what came as one is given as one

	messages []mmsghdr // and what they refer to
	vectors  []unix.Iovec
	names    []unix.RawSockaddrInet6 // large enough for both families
	control  []byte
	room     []byte

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

func (in *inbound) init(coalesces, lends, bundles bool) {
	in.coalesces, in.lends, in.bundles = coalesces, lends, bundles
	n := datagramsIn
	if coalesces {
		n = trainsIn
	}
	in.messages, in.vectors, in.names = make([]mmsghdr, n), make([]unix.Iovec, n), make([]unix.RawSockaddrInet6, n)
	in.room = make([]byte, n*trainRoom)
	in.control = make([]byte, n*controlSpace)
	for i := range in.messages {
		in.vectors[i].Base = &in.room[i*trainRoom]
		in.vectors[i].SetLen(trainRoom)
		h := &in.messages[i].hdr
		h.Name, h.Iov = (*byte)(unsafe.Pointer(&in.names[i])), &in.vectors[i]
		h.SetIovlen(1)
		if coalesces {
			h.Control = &in.control[i*controlSpace]
		}
	}
	in.used = n // by none, but fetch prepares what was
}

// controlSpace is the bytes of a control message that tells the size of a
// train's datagrams.
var controlSpace = unix.CmsgSpace(4)

// empty reports whether all was given away.
func (in *inbound) empty() bool { return in.at == in.count }

// fetch receives what is there. It does not wait.
func (in *inbound) fetch(fd int) syscall.Errno {
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
	if errno == 0 {
		in.used, in.count = int(n), int(n)
		in.open()
	}
	return errno
}

// open begins with message at, if there is one.
func (in *inbound) open() {
	if in.at == in.count {
		return
	}
	m := &in.messages[in.at]
	at := in.at * trainRoom
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
		if in.bundles && size < len(in.rest) {
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
