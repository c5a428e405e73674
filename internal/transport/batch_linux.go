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
// sendmmsg, and trains of them where the kernel knows these.
type batches struct {
	conn interface {
		ReadBatch(ms []ipv4.Message, flags int) (int, error)
		WriteBatch(ms []ipv4.Message, flags int) (int, error)
	}
	in, out  []ipv4.Message
	targets  []target
	controls [][]byte // of out

	ordered []Message // scratch of marshal, as are trains and taken
	trains  []train
	taken   []bool
	plain   bool // no trains are sent

	trainsIn bool       // trains are received
	waiting  []arrivals // of the last read
}

// target is the memory of one destination address.
type target struct {
	addr net.UDPAddr
	ip   [net.IPv6len]byte
}

func newBatches(socket *net.UDPConn, v4 bool) batches {
	b := batches{
		in:       make([]ipv4.Message, batchSize),
		out:      make([]ipv4.Message, batchSize),
		targets:  make([]target, batchSize),
		controls: make([][]byte, batchSize),
	}
	if v4 {
		b.conn = ipv4.NewPacketConn(socket)
	} else {
		b.conn = ipv6.NewPacketConn(socket)
	}
	for i := range b.in {
		b.in[i].Buffers = make([][]byte, 1)
		b.out[i].Addr = &b.targets[i].addr
		b.controls[i] = segmentControl()
	}
	b.enableTrains(func(level, option, value int) error {
		return control(socket, func(fd int) error { return unix.SetsockoptInt(fd, level, option, value) })
	})
	return b
}

// read reads at least one datagram; without wait it fails at once if there is
// none.
func (b *batches) read(packets []Packet, wait bool) (int, error) {
	flags := 0
	if !wait {
		flags = unix.MSG_DONTWAIT
	}
	if b.trainsIn {
		return b.readTrains(packets, flags)
	}
	in := b.in[:min(len(packets), len(b.in))]
	for i := range in {
		in[i].Buffers[0] = packets[i].Buffer
	}
	n, err := b.conn.ReadBatch(in, flags)
	if err != nil {
		return 0, err
	}
	for i := range in[:n] {
		packets[i].N, packets[i].From = in[i].N, addrOf(in[i].Addr)
	}
	return n, nil
}

func addrOf(a net.Addr) netip.AddrPort {
	from, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := from.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// write sends messages, in any order of their destinations, and counts them.
// Its only error is net.ErrClosed.
func (b *batches) write(messages []Message, t *tally) error {
	for len(messages) > 0 {
		part := messages[:min(len(messages), batchSize)]
		messages = messages[len(part):]
		if err := b.send(b.marshal(part), t); err != nil {
			return err
		}
	}
	return nil
}

// send sends at most batchSize trains.
func (b *batches) send(trains []train, t *tally) error {
	for i := range trains {
		b.load(&b.out[i], &b.targets[i], b.controls[i], &trains[i])
	}
	for sent := 0; sent < len(trains); {
		n, err := b.conn.WriteBatch(b.out[sent:len(trains)], 0)
		for range max(n, 0) { // -1 with an error
			t.sent(trains[sent].messages)
			sent++
		}
		if errors.Is(err, net.ErrClosed) {
			return net.ErrClosed
		}
		if err == nil || sent == len(trains) {
			continue
		}
		if err := b.refused(trains[sent].messages, err, t); err != nil {
			return err
		}
		sent++
	}
	return nil
}

// refused deals with a train that the network has refused. Where it may be for
// being one, its messages are sent each by itself.
func (b *batches) refused(messages []Message, why error, t *tally) error {
	if len(messages) == 1 {
		t.refused.Add(1)
		return nil
	}
	// Of what the kernel says of a device that cannot carry trains, or of
	// datagrams that would have to be fragmented, none passes.
	b.plain = b.plain || errors.Is(why, unix.EINVAL) || errors.Is(why, unix.EIO) || errors.Is(why, unix.EMSGSIZE) || errors.Is(why, unix.EOPNOTSUPP)
	one := ipv4.Message{Addr: &net.UDPAddr{}, Buffers: make([][]byte, 2)}
	var to target
	for i := range messages {
		m := &messages[i]
		to.set(m.To)
		one.Addr, one.Buffers[0], one.Buffers[1] = &to.addr, m.Head, m.Body
		_, err := b.conn.WriteBatch([]ipv4.Message{one}, 0)
		if err := t.tried(messages[i:i+1], err); err != nil {
			return err
		}
	}
	return nil
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
