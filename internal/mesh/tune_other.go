//go:build !linux

package mesh

import (
	"net"
	"time"
)

func tune(conn net.Conn, _ Lane, _ time.Duration) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 4})
	}
}
