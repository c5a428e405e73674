//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package transport

import (
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// tryRead reads a datagram if one is there, without waiting.
func (p *plain) tryRead() error {
	raw, err := p.socket.SyscallConn()
	if err != nil {
		return err
	}
	p.arm(time.Time{}) // a deadline in the past would keep it from looking
	var from unix.Sockaddr
	var n int
	var failed error
	p.tally.readCalls.Add(1)
	if err := raw.Read(func(fd uintptr) bool {
		n, from, failed = unix.Recvfrom(int(fd), p.room, unix.MSG_DONTWAIT)
		return true
	}); err != nil {
		return err
	}
	switch {
	case errors.Is(failed, unix.EAGAIN), errors.Is(failed, unix.EINTR):
		return nil
	case failed != nil:
		return failed
	}
	p.there, p.size = true, n
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		p.from = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(a.Addr).Unmap()
		if a.ZoneId != 0 && ip.Is6() {
			ip = ip.WithZone(zoneOf(a.ZoneId))
		}
		p.from = netip.AddrPortFrom(ip, uint16(a.Port))
	}
	return nil
}
