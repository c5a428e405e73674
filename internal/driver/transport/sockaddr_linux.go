package transport

import (
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Addresses as the kernel has them. The memory of one for IPv6 is used for
// those of IPv4, too, which are shorter.

// setSockaddr writes a for a socket of IPv4 or IPv6 and returns its length.
func setSockaddr(to *unix.RawSockaddrInet6, a netip.AddrPort, v4 bool) uint32 {
	if v4 {
		short := (*unix.RawSockaddrInet4)(unsafe.Pointer(to))
		short.Family = unix.AF_INET
		putPort(&short.Port, a.Port())
		if a.Addr().Unmap().Is4() {
			short.Addr = a.Addr().Unmap().As4()
		} else {
			short.Family = unix.AF_INET6 // which the kernel refuses
		}
		return unix.SizeofSockaddrInet4
	}
	to.Family = unix.AF_INET6
	putPort(&to.Port, a.Port())
	to.Addr, to.Flowinfo, to.Scope_id = a.Addr().As16(), 0, 0
	if zone := a.Addr().Zone(); zone != "" {
		to.Scope_id = scopeOf(zone)
	}
	return unix.SizeofSockaddrInet6
}

// addrPortOf reads an address. It allocates only where there is a zone.
func addrPortOf(from *unix.RawSockaddrInet6) netip.AddrPort {
	switch from.Family {
	case unix.AF_INET:
		short := (*unix.RawSockaddrInet4)(unsafe.Pointer(from))
		return netip.AddrPortFrom(netip.AddrFrom4(short.Addr), port(&short.Port))
	case unix.AF_INET6:
		a := netip.AddrFrom16(from.Addr).Unmap()
		if from.Scope_id != 0 && a.Is6() {
			a = a.WithZone(zoneOf(from.Scope_id))
		}
		return netip.AddrPortFrom(a, port(&from.Port))
	}
	return netip.AddrPort{}
}

// A port is in network order, in memory of the machine's.
func putPort(to *uint16, p uint16) {
	b := (*[2]byte)(unsafe.Pointer(to))
	b[0], b[1] = byte(p>>8), byte(p)
}

func port(from *uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(from))
	return uint16(b[0])<<8 | uint16(b[1])
}

// scopeOf returns the number of the link that a zone names, 0 if there is none of that name.
func scopeOf(zone string) uint32 {
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(zone, 10, 32)
	return uint32(n)
}
