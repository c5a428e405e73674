package transport

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Control messages are in the order of bytes of the machine.

func putHeader(b []byte, level, kind, length int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
	h.Level, h.Type = int32(level), int32(kind)
	h.SetLen(length)
}

func header(b []byte) (level, kind int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
	return int(h.Level), int(h.Type)
}

func putUint16(b []byte, x uint16) { binary.NativeEndian.PutUint16(b, x) }
func getUint32(b []byte) uint32    { return binary.NativeEndian.Uint32(b) }

// sourceMessage returns the control message that has a datagram sent from an address and
// over the interface of a number, 0: that which routes have; nil: it says nothing.
func sourceMessage(source netip.Addr, device int) []byte {
	switch {
	case !source.IsValid():
		return nil
	case source.Is4():
		b := make([]byte, unix.CmsgSpace(unix.SizeofInet4Pktinfo))
		putHeader(b, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.CmsgLen(unix.SizeofInet4Pktinfo))
		info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&b[unix.CmsgLen(0)]))
		info.Ifindex, info.Spec_dst = int32(device), source.As4()
		return b
	}
	b := make([]byte, unix.CmsgSpace(unix.SizeofInet6Pktinfo))
	putHeader(b, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.CmsgLen(unix.SizeofInet6Pktinfo))
	info := (*unix.Inet6Pktinfo)(unsafe.Pointer(&b[unix.CmsgLen(0)]))
	info.Ifindex, info.Addr = uint32(device), source.As16()
	return b
}
