package transport

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsg moves many datagrams a system call, by recvmmsg and sendmmsg, and GSO batches
// of them where the kernel knows these: datagrams of one size from or to one
// address that travel through it as one, for little more than the cost of one.
// Nothing is allocated for a datagram: the kernel's structures are made once.
//
// The Go runtime does not know of the socket: its poller would otherwise wake a
// thread for whatever arrives, beside the one that reads. See sleep.
type mmsg struct {
	tally *tally
	in    inbound
	sleep sleep

	netpoll *netpoll // in place of sleep; nil: that it is

	outMu sync.Mutex
	out   outbound // guarded by outMu

	// mu is held, for reading, by whoever uses the descriptors, so that they
	// are not closed under it.
	mu       sync.RWMutex
	fd       int
	isClosed bool
}

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	hdr   unix.Msghdr
	bytes uint32 // moved
}

// open opens a socket on local, and returns where it is. The plain engine takes
// the place of the fast one if the kernel, or who guards it, refuses that.
func open(local netip.AddrPort, c Config, t *tally) (engine, netip.AddrPort, error) {
	if c.Without&Batching == 0 {
		m, at, err := openBatching(local, c, t)
		if err == nil || !errors.Is(err, errCannotBatch) {
			return m, at, err
		}
	}
	return openPlain(local, c, t)
}

// errCannotBatch is wrapped by what says that the fast engine cannot run.
var errCannotBatch = errors.New("not possible here")

func openBatching(local netip.AddrPort, c Config, t *tally) (engine, netip.AddrPort, error) {
	fd, at, err := bind(local)
	if err != nil {
		return nil, at, err
	}
	m := &mmsg{tally: t, fd: fd}
	if !batches(fd) {
		return nil, at, errors.Join(errCannotBatch, unix.Close(fd))
	}
	if c.Netpoll {
		if m.netpoll, err = newNetpoll(fd, &m.in); err != nil {
			return nil, at, errors.Join(errCannotBatch, err, unix.Close(fd))
		}
	} else if m.sleep.init(fd) != nil {
		return nil, at, errors.Join(errCannotBatch, unix.Close(fd))
	}
	if c.ReceiveBuffer > 0 {
		if err := enlarge(fd, c.ReceiveBuffer); err != nil {
			return nil, at, errors.Join(err, m.close())
		}
	}
	if c.SendBuffer > 0 {
		if err := enlargeSend(fd, c.SendBuffer); err != nil {
			return nil, at, errors.Join(err, m.close())
		}
	}
	coalesces := c.Without&Coalescing == 0 && unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil
	m.in.init(coalesces, c.Without&Lending == 0, c.Batches && c.Without&GROBatches == 0)
	m.out.init(c.Without&Segmentation == 0, local.Addr().Is4())
	return m, at, nil
}

// bind opens a socket on local, and returns where it is.
func bind(local netip.AddrPort) (fd int, at netip.AddrPort, err error) {
	family, isV4 := unix.AF_INET6, local.Addr().Is4()
	if isV4 {
		family = unix.AF_INET
	}
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, at, err
	}
	if !isV4 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	} else {
		refuseUnsummed(fd)
	}
	var name unix.RawSockaddrInet6
	length := setSockaddr(&name, local, isV4)
	_, _, errno := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&name)), uintptr(length))
	if errno == 0 {
		length = unix.SizeofSockaddrInet6
		_, _, errno = unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&length)))
	}
	if errno != 0 {
		return -1, at, errors.Join(errno, unix.Close(fd))
	}
	return fd, addrPortOf(&name), nil
}

// batches reports whether the kernel, and who guards it, lets this process
// batch.
func batches(fd int) bool {
	for _, trap := range []uintptr{unix.SYS_SENDMMSG, unix.SYS_RECVMMSG} {
		_, _, errno := unix.Syscall6(trap, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.ENOSYS || errno == unix.EPERM {
			return false
		}
	}
	return true
}

func (m *mmsg) features() Features {
	f := Batching | GROBatches
	if m.netpoll == nil {
		f |= Sleeping | Polling | Adapting
	}
	if m.in.coalesces {
		f |= Coalescing
	}
	if m.in.lends {
		f |= Lending
	}
	m.outMu.Lock()
	defer m.outMu.Unlock()
	if m.out.most > 1 {
		f |= Segmentation
	}
	return f
}

// enter keeps the descriptors open until leave.
func (m *mmsg) enter() error {
	m.mu.RLock()
	if m.isClosed {
		m.mu.RUnlock()
		return net.ErrClosed
	}
	return nil
}

func (m *mmsg) leave() { m.mu.RUnlock() }

func (m *mmsg) take(packets []Packet, last bool) (int, error) {
	if m.in.empty() && (m.netpoll == nil || last) { // a netpoll looks when it parks
		if err := m.enter(); err != nil {
			return 0, err
		}
		m.tally.readCalls.Add(1)
		errno := m.in.fetch(m.fd)
		m.leave()
		switch errno {
		case 0, unix.EAGAIN, unix.EINTR:
		default:
			return 0, errno
		}
	}
	n, datagrams, bytes := m.in.give(packets)
	if n > 0 {
		m.tally.in(datagrams, bytes)
	}
	return n, nil
}

func (m *mmsg) arm(until time.Time) {
	if m.netpoll != nil {
		m.netpoll.arm(until)
	}
	m.sleep.until = until
}

func (m *mmsg) pollSleep(d time.Duration) error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.leave()
	m.sleep.pollSleep(m.fd, d)
	return nil
}

func (m *mmsg) park() error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.leave()
	if m.netpoll != nil {
		m.tally.readCalls.Add(1)
		return m.netpoll.park()
	}
	m.in.release()
	if m.outMu.TryLock() {
		m.out.release()
		m.outMu.Unlock()
	}
	return m.sleep.park()
}

// wake is called while the owner sleeps or parks, and has the descriptors open.
func (m *mmsg) wake() {
	if m.netpoll != nil {
		m.netpoll.wake()
		return
	}
	m.sleep.wake()
}

func (m *mmsg) write(messages []Message) error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.leave()
	m.outMu.Lock()
	defer m.outMu.Unlock()
	o := &m.out
	o.acquire()
	for o.queue = messages; len(o.queue) > 0; {
		o.load()
		m.send()
	}
	o.queue = nil
	clear(o.vectors[:o.filled])
	o.filled = 0
	return nil
}

// send sends the GSO batches that are loaded.
func (m *mmsg) send() {
	o := &m.out
	for o.sent < o.loaded {
		before := o.sent
		m.tally.writeCalls.Add(1)
		errno := o.flush(m.fd)
		count, bytes := 0, 0
		for i := range o.batches[before:o.sent] {
			t := &o.batches[before+i]
			count, bytes = count+t.count, bytes+t.bytes+t.count*t.above
		}
		m.tally.out(count, bytes)
		if errno != 0 {
			m.refused(errno)
		}
	}
}

// refused deals with the first GSO batch that was not sent. Where it may be for
// being one, its datagrams are sent each by itself.
func (m *mmsg) refused(why syscall.Errno) {
	o := &m.out
	t, header := &o.batches[o.sent], o.headers[o.sent]
	o.sent++
	if t.count == 1 || why == unix.EAGAIN {
		m.tally.refused.Add(uint64(t.count))
		return
	}
	// Of what the kernel says of a device that cannot carry GSO batches, or of
	// datagrams that would have to be fragmented, none passes.
	mayBeDevice := why == unix.EINVAL || why == unix.EIO || why == unix.EMSGSIZE || why == unix.EOPNOTSUPP
	o.attach(&header.hdr, o.sent-1, false)
	t.apart(func(pieces []unix.Iovec, bytes int) {
		header.hdr.Iov = unsafe.SliceData(pieces)
		header.hdr.SetIovlen(len(pieces))
		m.tally.writeCalls.Add(1)
		if _, errno := sendAll(m.fd, &header, 1); errno != 0 {
			m.tally.refused.Add(1)
		} else {
			if mayBeDevice { // and not the source, which is no address of the machine any more
				o.most = 1
			}
			m.tally.out(1, bytes+t.above)
		}
	})
}

func (m *mmsg) sendFrom(source netip.Addr, device int) bool {
	m.outMu.Lock()
	defer m.outMu.Unlock()
	m.out.source = sourceMessage(source, device)
	return true
}

func (m *mmsg) enlarge(bytes int) error {
	if err := m.enter(); err != nil {
		return err
	}
	defer m.leave()
	return enlarge(m.fd, bytes)
}

func (m *mmsg) overflowed() (uint64, bool) {
	if m.enter() != nil {
		return 0, false
	}
	defer m.leave()
	return overflowedAt(m.fd)
}

func (m *mmsg) granted() int {
	if m.enter() != nil {
		return 0
	}
	defer m.leave()
	size, err := unix.GetsockoptInt(m.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return size
}

func (m *mmsg) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isClosed {
		return net.ErrClosed
	}
	m.isClosed = true
	if m.netpoll != nil {
		return errors.Join(m.netpoll.file.Close(), unix.Close(m.fd))
	}
	return errors.Join(m.sleep.close(), unix.Close(m.fd))
}
