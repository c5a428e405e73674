package peer

import (
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tune finds out when a peer has acknowledged nothing for lostAfter, and lets frames of class
// Control pass before other traffic where queues know priorities.
func tune(conn net.Conn, class Class, _, lostAfter time.Duration) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw := rawOf(c)
	if raw == nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// Where the kernel refuses, pings find out a little later.
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

// kernelAcks reports whether the other side's kernel has not acknowledged something yet, and
// for how long it has acknowledged nothing.
func kernelAcks(conn net.Conn) (hasUnacked bool, age time.Duration, ok bool) {
	info := tcpInfo(conn)
	if info == nil {
		return false, 0, false
	}
	return info.Unacked > 0, time.Duration(info.Last_ack_recv) * time.Millisecond, true
}

// kernelMeasure returns what the kernel knows of a connection.
func kernelMeasure(conn net.Conn) (m PathMeasure) {
	if info := tcpInfo(conn); info != nil && info.Min_rtt != math.MaxUint32 {
		m.Delay = time.Duration(info.Min_rtt) * time.Microsecond
	}
	if raw := rawOf(conn); raw != nil {
		_ = raw.Control(func(fd uintptr) { m.InFlight, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	}
	return m
}

// tcpInfo returns nil for other connections than those of TCP, and such as are closed.
func tcpInfo(conn net.Conn) (info *unix.TCPInfo) {
	raw := rawOf(conn)
	if raw == nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		info, _ = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info
}

// bindTo returns what binds a socket to an interface, where the system permits that.
func bindTo(name string) func(network, address string, c syscall.RawConn) error {
	if name == "" {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, name) // else routes decide
		})
	}
}

// bindConn binds a connection to an interface, where the system permits that.
func bindConn(c net.Conn, name string) {
	if raw, bind := rawOf(c), bindTo(name); raw != nil && bind != nil {
		_ = bind("", "", raw) // else it has ended
	}
}
