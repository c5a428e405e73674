package peer

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// LimitUnacknowledged ends a connection whose peer has acknowledged nothing
// for d. Where the kernel refuses, keep-alive finds out a little later.
func LimitUnacknowledged(c *net.TCPConn, d time.Duration) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}
