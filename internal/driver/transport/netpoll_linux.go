package transport

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// netpoll waits for a socket in the Go runtime's poller, and receives when that finds it
// ready, as package net does: see Config.Netpoll. The runtime polls a descriptor of epoll
// that heeds only what can be read: of a socket itself it would also hear each time that a
// packet has left.
type netpoll struct {
	file  *os.File // of epoll
	raw   syscall.RawConn
	look  func(fd uintptr) bool // receives; false: nothing is there
	errno syscall.Errno         // of that

	until   time.Time // the deadline of file
	isWoken bool      // that has passed, to end a wait
}

// newNetpoll has the runtime poll a socket.
func newNetpoll(fd int, in *inbound) (*netpoll, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		unix.SetNonblock(epoll, true), // has the runtime poll it
		unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
	p := &netpoll{file: os.NewFile(uintptr(epoll), "epoll")}
	if err == nil {
		err = p.file.SetReadDeadline(time.Time{}) // fails if the runtime cannot poll it
	}
	if err == nil {
		p.raw, err = p.file.SyscallConn()
	}
	if err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	p.look = func(uintptr) bool {
		p.errno = in.receive(fd)
		return p.errno != unix.EAGAIN && p.errno != unix.EINTR
	}
	return p, nil
}

func (p *netpoll) arm(until time.Time) {
	if until != p.until || p.isWoken {
		p.until, p.isWoken = until, false
		_ = p.file.SetReadDeadline(until) // fails if it is closed, which the wait reports, too
	}
}

func (p *netpoll) wake() {
	p.isWoken = true
	_ = p.file.SetReadDeadline(time.Unix(1, 0))
}

// park waits until something was received.
func (p *netpoll) park() error {
	p.errno = 0
	switch err := p.raw.Read(p.look); {
	case errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	case err != nil:
		return err
	case p.errno != 0:
		return p.errno
	}
	return nil
}
