//go:build !linux

package peer

import (
	"net"
	"syscall"
	"time"
)

// tune finds out about a peer that is gone without a word, where nothing is sent.
func tune(conn net.Conn, _ Class, deadAfter, _ time.Duration) {
	if c, ok := conn.(*net.TCPConn); ok {
		every := max(time.Second, deadAfter/5)
		_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: 4})
	}
}

// kernelAcks is not known.
func kernelAcks(net.Conn) (hasUnacked bool, age time.Duration, ok bool) { return false, 0, false }

// kernelMeasure is not known.
func kernelMeasure(net.Conn) (m PathMeasure) { return m }

// bindTo leaves it to routes.
func bindTo(string) func(network, address string, c syscall.RawConn) error { return nil }

// bindConn leaves it to routes.
func bindConn(net.Conn, string) {}
