package rpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout has the connections of a listener end when nothing is acknowledged on them for
// keepaliveTimeout. gRPC does so itself where it accepts a bare *net.TCPConn.
func userTimeout(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		// Where the kernel refuses, pings find out later.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(keepaliveTimeout.Milliseconds()))
	})
}
