package scoll

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// swift writes to a connection as far as that can be done without waiting.
type swift struct {
	raw syscall.RawConn
	try func(fd uintptr) bool
	b   []byte
	n   int
	err error
}

// newSwift returns nil for connections on which that cannot be done.
func newSwift(conn net.Conn) *swift {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &swift{raw: raw}
	s.try = func(fd uintptr) bool {
		s.n, s.err = unix.Write(int(fd), s.b)
		return true // once, whatever comes of it
	}
	return s
}

// write returns how many bytes the kernel has taken.
func (s *swift) write(b []byte) (int, error) {
	s.b = b
	err := s.raw.Write(s.try)
	s.b = nil
	switch {
	case err != nil:
		return 0, err
	case s.err == unix.EAGAIN || s.err == unix.EINTR:
		return 0, nil
	case s.err != nil:
		return 0, s.err
	}
	return s.n, nil
}
