//go:build !linux

package transport

import (
	"net"
	"net/netip"
	"runtime"
)

func open(local netip.AddrPort, c Config, t *tally) (engine, netip.AddrPort, error) {
	return openPlain(local, c, t)
}

// yield offers the processor to others.
func yield() { runtime.Gosched() }

func granted(*net.UDPConn) int { return 0 }

func overflowed(*net.UDPConn) (uint64, bool) { return 0, false }
