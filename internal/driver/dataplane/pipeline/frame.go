package pipeline

import (
	"encoding/binary"
	"net/netip"
)

// Lengths of headers, in bytes.
const (
	ethernetSize = 14
	ipv4Size     = 20
	udpSize      = 8
	framing      = ethernetSize + ipv4Size + udpSize
)

const (
	etherIPv4   = 0x0800
	protocolUDP = 17
	timeToLive  = 64
	dontFrag    = 0x4000
)

// parse returns who has sent the UDP datagram in an Ethernet frame, and its
// payload, a part of the frame. It takes what the pipeline hands over, whose
// checksums that has looked at: IPv4 without options, in one piece.
func parse(frame []byte) (from netip.AddrPort, payload []byte, ok bool) {
	if len(frame) < framing || binary.BigEndian.Uint16(frame[12:]) != etherIPv4 {
		return from, nil, false
	}
	ip := frame[ethernetSize:]
	length := int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0] != 4<<4|ipv4Size/4 || binary.BigEndian.Uint16(ip[6:])&^dontFrag != 0 || ip[9] != protocolUDP ||
		length < ipv4Size+udpSize || length > len(ip) {
		return from, nil, false
	}
	udp := ip[ipv4Size:length]
	if int(binary.BigEndian.Uint16(udp[4:])) != len(udp) {
		return from, nil, false
	}
	source := netip.AddrFrom4([4]byte(ip[12:16]))
	return netip.AddrPortFrom(source, binary.BigEndian.Uint16(udp)), udp[udpSize:], true
}

// build returns an Ethernet frame with a datagram. What depends on the way that
// it takes is left zero, for the pipeline to fill in: both addresses of the
// link, the source address, and the checksums.
func build(port uint16, to netip.AddrPort, head, body []byte) []byte {
	frame := make([]byte, framing, framing+len(head)+len(body))
	frame = append(append(frame, head...), body...)
	binary.BigEndian.PutUint16(frame[12:], etherIPv4)
	ip := frame[ethernetSize:]
	ip[0] = 4<<4 | ipv4Size/4
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[6:], dontFrag)
	ip[8], ip[9] = timeToLive, protocolUDP
	address := to.Addr().As4()
	copy(ip[16:], address[:])
	udp := ip[ipv4Size:]
	binary.BigEndian.PutUint16(udp, port)
	binary.BigEndian.PutUint16(udp[2:], to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	return frame
}
