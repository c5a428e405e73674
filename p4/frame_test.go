package p4_test

import (
	"cmp"
	"encoding/binary"
	"net/netip"
)

var agentAddr = netip.AddrFrom4([4]byte{10, 255, 0, 1})

const (
	linkBytes = 14
	ipBytes   = 20
	udpBytes  = 8
	ttl       = 64

	protocolUDP = 17
)

func mark(to netip.Addr, n uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, n)
	return frameOf(udpPacket(netip.AddrPortFrom(addr('x').Addr(), 9), netip.AddrPortFrom(to, 9), b, true))
}

func isMark(frame []byte, n uint64) bool {
	at := linkBytes + ipBytes
	return len(frame) == at+udpBytes+8 && binary.BigEndian.Uint16(frame[at+2:]) == 9 && binary.BigEndian.Uint64(frame[at+udpBytes:]) == n
}

func frameOf(packet []byte) []byte {
	head := make([]byte, linkBytes, linkBytes+len(packet))
	copy(head, []byte{2, 0, 0, 0, 0, 254, 2, 0, 0, 0, 0, 1, 8, 0})
	return append(head, packet...)
}

// udpPacket returns an IPv4 packet as switches send them, with its checksums or
// without. One of UDP that computes to 0 is 0xffff.
func udpPacket(from, to netip.AddrPort, b []byte, summed bool) []byte {
	p := make([]byte, ipBytes+udpBytes, ipBytes+udpBytes+len(b))
	p[0], p[6], p[8], p[9] = 0x45, 0x40, ttl, protocolUDP
	binary.BigEndian.PutUint16(p[2:], uint16(ipBytes+udpBytes+len(b)))
	copy(p[12:], from.Addr().AsSlice())
	copy(p[16:], to.Addr().AsSlice())
	udp := p[ipBytes:]
	binary.BigEndian.PutUint16(udp, from.Port())
	binary.BigEndian.PutUint16(udp[2:], to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(udpBytes+len(b)))
	p = append(p, b...)
	if !summed {
		return p
	}
	binary.BigEndian.PutUint16(p[10:], checksum(p[:ipBytes], 0))
	pseudo := uint32(protocolUDP) + uint32(udpBytes+len(b))
	for i := 12; i < 20; i += 2 {
		pseudo += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	binary.BigEndian.PutUint16(p[ipBytes+6:], cmp.Or(checksum(p[ipBytes:], pseudo), 0xffff))
	return p
}

// checksum returns the one's complement of the sum of b's words and of sum.
func checksum(b []byte, sum uint32) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
