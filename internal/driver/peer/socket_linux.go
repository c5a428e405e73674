package peer

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a TCP connection that the Go runtime does not poll: its poller would wake a thread
// for whatever arrives, beside the one that reads (see poller). It implements net.Conn and
// syscall.Conn. Nobody reads after Close, which wakes who waits; release frees the descriptor.
type socket struct {
	local, remote net.Addr
	until         atomic.Int64 // deadline of writes, in ns since 1970; 0: none

	mu      sync.RWMutex // held, for reading, by who uses the descriptor
	fd      int          // -1: released
	isEnded atomic.Bool

	writing sync.Mutex // one waits at a time
	room    *watch     // of room to write; nil: nobody has waited yet
}

// newSocket takes a connection over; nil: that cannot be done with this kind.
func newSocket(conn net.Conn) *socket {
	raw := rawOf(conn)
	if raw == nil {
		return nil
	}
	s := &socket{local: conn.LocalAddr(), remote: conn.RemoteAddr(), fd: -1}
	var err error
	if failed := raw.Control(func(fd uintptr) { s.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); failed != nil || err != nil {
		return nil
	}
	return s
}

// SyscallConn implements syscall.Conn.
func (s *socket) SyscallConn() (syscall.RawConn, error) { return tried{s}, nil }

// tried is a syscall.RawConn whose Read and Write do not wait.
type tried struct{ *socket }

// Control implements syscall.RawConn.
func (t tried) Control(f func(fd uintptr)) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(t.fd))
	return nil
}

// Read implements syscall.RawConn.
func (t tried) Read(f func(fd uintptr) bool) error { return t.Write(f) }

// Write implements syscall.RawConn.
func (t tried) Write(f func(fd uintptr) bool) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(t.fd))
	return nil
}

// Read implements net.Conn. It does not wait: the error is errNothing.
func (s *socket) Read(b []byte) (n int, err error) {
	return s.tryRead(len(b), func(fd int) (int, error) { return unix.Read(fd, b) })
}

// readVectors is Read into several pieces of memory, one behind the other.
func (s *socket) readVectors(b [][]byte) (n int, err error) {
	return s.tryRead(1, func(fd int) (int, error) { return unix.Readv(fd, b) })
}

// tryRead reads up to most bytes.
func (s *socket) tryRead(most int, read func(fd int) (int, error)) (n int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return 0, net.ErrClosed
	}
	for err = unix.EINTR; err == unix.EINTR; {
		n, err = read(s.fd)
	}
	switch {
	case err == unix.EAGAIN:
		return 0, errNothing{}
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && most > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (s *socket) Write(b []byte) (n int, err error) {
	for n < len(b) {
		k, err := s.try(b[n:])
		n += k
		if err == unix.EAGAIN {
			err = s.awaitRoom()
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (s *socket) try(b []byte) (n int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 || s.isEnded.Load() {
		return 0, net.ErrClosed
	}
	for err = unix.EINTR; err == unix.EINTR; {
		n, err = unix.Write(s.fd, b)
	}
	if err != nil && err != unix.EAGAIN {
		err = os.NewSyscallError("write", err)
	}
	return max(n, 0), err
}

// tryVectors writes as much as the kernel takes.
func (s *socket) tryVectors(b [][]byte) (n int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 || s.isEnded.Load() {
		return 0, net.ErrClosed
	}
	for err = unix.EINTR; err == unix.EINTR; {
		n, err = unix.Writev(s.fd, b)
	}
	if err == unix.EAGAIN {
		err = nil
	}
	return max(n, 0), os.NewSyscallError("writev", err)
}

// writeVectors writes something, and waits until there is room for it.
func (s *socket) writeVectors(b [][]byte) (n int, err error) {
	for n == 0 && err == nil {
		if n, err = s.tryVectors(b); n == 0 && err == nil {
			err = s.awaitRoom()
		}
	}
	return n, err
}

// awaitRoom waits, in the Go runtime's poller, until there may be room to write.
func (s *socket) awaitRoom() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.room == nil {
		w, err := newWatch()
		if err != nil {
			return err
		}
		if err := s.heed(w, unix.EPOLL_CTL_ADD); err != nil {
			return errors.Join(err, w.Close())
		}
		s.room = w
	} else if err := s.heed(s.room, unix.EPOLL_CTL_MOD); err != nil {
		return err
	}
	until := time.Time{}
	if at := s.until.Load(); at != 0 {
		until = time.Unix(0, at)
	}
	return s.room.wait(until)
}

// heed has who waits be woken once there is room.
func (s *socket) heed(w *watch, how int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 || s.isEnded.Load() {
		return net.ErrClosed
	}
	return w.control(how, s.fd, unix.EPOLLOUT|unix.EPOLLONESHOT)
}

// Close implements net.Conn: who reads finds the end, and who writes fails.
func (s *socket) Close() error {
	if s.isEnded.Swap(true) {
		return net.ErrClosed
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd >= 0 {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // fails if the other side has reset it: that wakes, too
	}
	return nil
}

// release frees the descriptor, which nobody reads or writes any more.
func (s *socket) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = unix.Close(s.fd)
	s.fd = -1
	if s.room != nil {
		_ = s.room.Close()
	}
}

// LocalAddr implements net.Conn.
func (s *socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr implements net.Conn.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// SetDeadline implements net.Conn. Reads do not wait.
func (s *socket) SetDeadline(t time.Time) error { return s.SetWriteDeadline(t) }

// SetReadDeadline implements net.Conn.
func (s *socket) SetReadDeadline(time.Time) error { return errors.ErrUnsupported }

// SetWriteDeadline implements net.Conn.
func (s *socket) SetWriteDeadline(t time.Time) error {
	at := int64(0)
	if !t.IsZero() {
		at = t.UnixNano()
	}
	s.until.Store(at)
	return nil
}
