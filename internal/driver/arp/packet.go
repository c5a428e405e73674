package arp

import (
	"encoding/binary"
	"net/netip"
)

// MAC is an address of a link.
type MAC [6]byte

// unicast reports whether m may be a station's.
func (m MAC) unicast() bool { return m != MAC{} && m[0]&1 == 0 }

var everybody = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Numbers of RFC 826, for IPv4 on Ethernet.
const (
	etherType  = 0x0806
	headerSize = 14
	size       = headerSize + 28
	request    = 1
	reply      = 2
)

var preamble = [...]byte{0, 1, 8, 0, 6, 4} // hardware Ethernet, protocol IPv4, lengths of both addresses

// message is an ARP packet.
type message struct {
	operation          uint16
	sender, target     netip.Addr // IPv4
	senderMAC, toTheir MAC        // of the sender, of the target
}

// frame returns m in an Ethernet frame.
func (m *message) frame(to MAC) []byte {
	b := make([]byte, 0, size)
	b = append(append(b, to[:]...), m.senderMAC[:]...)
	b = binary.BigEndian.AppendUint16(b, etherType)
	b = binary.BigEndian.AppendUint16(append(b, preamble[:]...), m.operation)
	b = append(append(b, m.senderMAC[:]...), m.sender.AsSlice()...)
	return append(append(b, m.toTheir[:]...), m.target.AsSlice()...)
}

// parse reads a frame, which may be padded.
func parse(b []byte) (m message, ok bool) {
	if len(b) < size || binary.BigEndian.Uint16(b[12:]) != etherType || [6]byte(b[headerSize:]) != preamble {
		return m, false
	}
	b = b[headerSize+len(preamble):]
	m.operation = binary.BigEndian.Uint16(b)
	m.senderMAC, m.sender = MAC(b[2:]), netip.AddrFrom4([4]byte(b[8:]))
	m.toTheir, m.target = MAC(b[12:]), netip.AddrFrom4([4]byte(b[18:]))
	return m, (m.operation == request || m.operation == reply) && m.senderMAC.unicast()
}
