package transport

import (
	"errors"
	"net"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// batchSize is the datagrams of one system call.
const batchSize = 64

// batches reads and writes many datagrams a system call, by recvmmsg and
// sendmmsg.
type batches struct {
	conn interface {
		ReadBatch(ms []ipv4.Message, flags int) (int, error)
		WriteBatch(ms []ipv4.Message, flags int) (int, error)
	}
	in, out []ipv4.Message
	targets []target
}

// target is the memory of one destination address.
type target struct {
	addr net.UDPAddr
	ip   [net.IPv6len]byte
}

func newBatches(socket *net.UDPConn, v4 bool) batches {
	b := batches{
		in:      make([]ipv4.Message, batchSize),
		out:     make([]ipv4.Message, batchSize),
		targets: make([]target, batchSize),
	}
	if v4 {
		b.conn = ipv4.NewPacketConn(socket)
	} else {
		b.conn = ipv6.NewPacketConn(socket)
	}
	for i := range b.in {
		b.in[i].Buffers = make([][]byte, 1)
		b.out[i].Buffers = make([][]byte, 2)
		b.out[i].Addr = &b.targets[i].addr
	}
	return b
}

// read reads at least one datagram; without wait it fails at once if there is
// none.
func (b *batches) read(packets []Packet, wait bool) (int, error) {
	in := b.in[:min(len(packets), len(b.in))]
	for i := range in {
		in[i].Buffers[0] = packets[i].Buffer
	}
	flags := 0
	if !wait {
		flags = unix.MSG_DONTWAIT
	}
	n, err := b.conn.ReadBatch(in, flags)
	if err != nil {
		return 0, err
	}
	for i := range in[:n] {
		packets[i].N, packets[i].From = in[i].N, netip.AddrPort{}
		if from, ok := in[i].Addr.(*net.UDPAddr); ok {
			a := from.AddrPort()
			packets[i].From = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
		}
	}
	return n, nil
}

// write sends some of the messages, from the first on, and returns how many.
func (b *batches) write(messages []Message) (int, error) {
	out := b.out[:min(len(messages), len(b.out))]
	for i := range out {
		m := &messages[i]
		b.targets[i].set(m.To)
		out[i].Buffers = append(out[i].Buffers[:0], m.Head, m.Body)
	}
	n, err := b.conn.WriteBatch(out, 0)
	return max(n, 0), err // -1 with an error
}

func (t *target) set(a netip.AddrPort) {
	t.addr.Port, t.addr.Zone = int(a.Port()), a.Addr().Zone()
	if a.Addr().Is4() {
		ip := a.Addr().As4()
		t.addr.IP = append(t.ip[:0], ip[:]...)
		return
	}
	t.ip = a.Addr().As16()
	t.addr.IP = t.ip[:]
}

// pollUntil is the deadline of a read that does not wait by itself.
func pollUntil() time.Time { return time.Time{} }

// nothingThere reports whether err says that a read that does not wait found
// nothing.
func nothingThere(err error) bool { return errors.Is(err, unix.EAGAIN) }

// enlarge asks for a receive buffer of size bytes, beyond the system's limit
// where this process may.
func enlarge(socket *net.UDPConn, size int) error {
	return control(socket, func(fd int) error {
		// The kernel doubles what it is asked for, to account for its own.
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size/2) == nil {
			return nil
		}
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size/2)
	})
}

// granted returns the bytes of socket's receive buffer, or 0.
func granted(socket *net.UDPConn) (size int) {
	err := control(socket, func(fd int) (err error) {
		size, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		return err
	})
	if err != nil {
		return 0
	}
	return size
}

// Of SO_MEMINFO's numbers (linux/sock_diag.h), the one of dropped packets.
const (
	memInfoDrops = 8
	memInfoVars  = 9
)

// overflowed returns how many datagrams found socket's receive buffer full,
// and whether the system tells.
func overflowed(socket *net.UDPConn) (uint64, bool) {
	var info [memInfoVars]uint32
	err := control(socket, func(fd int) error {
		size := uint32(unsafe.Sizeof(info))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	return uint64(info[memInfoDrops]), err == nil
}

func control(socket *net.UDPConn, f func(fd int) error) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}
