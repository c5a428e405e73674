package mesh

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 4}

// tune finds out when a peer is gone, and lets the messages of the first lane
// pass before other traffic where queues know priorities.
func tune(conn net.Conn, lane Lane, deadAfter time.Duration) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = c.SetKeepAliveConfig(keepAlive)
	LimitUnacknowledged(c, deadAfter)
	if lane != Urgent {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, interactive)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, lowDelay)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, lowDelay)
	})
}

const (
	interactive = 6    // TC_PRIO_INTERACTIVE: the first band of the kernel's default queues
	lowDelay    = 0xb8 // expedited forwarding, RFC 3246
)
