//go:build !linux

package peer

import (
	"net"
	"time"
)

func tune(conn net.Conn, _ Class, deadAfter, _ time.Duration) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetKeepAliveConfig(keepAlive(deadAfter))
	}
}
