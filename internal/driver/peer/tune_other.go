//go:build !linux

package peer

import (
	"net"
	"time"
)

func tune(conn net.Conn, _ Class, _ time.Duration) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetKeepAliveConfig(keepAlive)
	}
}
