package peer

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// tune finds out when a peer is gone, or has acknowledged nothing for lostAfter, and lets frames of class Control pass before other
// traffic where queues know priorities.
func tune(conn net.Conn, class Class, deadAfter, lostAfter time.Duration) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if !class.isShared() { // others are asked
		_ = c.SetKeepAliveConfig(keepAlive(deadAfter))
	}
	raw := rawOf(c)
	if raw == nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// Where the kernel refuses, keep-alive finds out a little later.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
		if class == Control {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, interactive)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, lowDelay)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, lowDelay)
		}
	})
}

const (
	interactive = 6    // TC_PRIO_INTERACTIVE: the first band of the kernel's default queues
	lowDelay    = 0xb8 // expedited forwarding, RFC 3246
)
