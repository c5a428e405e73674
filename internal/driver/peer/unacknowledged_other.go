//go:build !linux

package peer

import (
	"net"
	"time"
)

// LimitUnacknowledged leaves it to keep-alive to find a dead peer.
func LimitUnacknowledged(*net.TCPConn, time.Duration) {}
