package p4

// PacketIn is what the pipeline reports a packet that it hands over. The
// packet is as it came, from its Ethernet header on; it has passed all checks of
// admission.
type PacketIn struct {
	Port  uint16 // where it came in
	Tree  uint16 // index of its tree
	Epoch uint16 // index of its epoch
}

// Take sets the field of that number in the P4Info; others do not count.
func (p *PacketIn) Take(id uint32, value uint64) {
	switch id {
	case PacketInPort:
		p.Port = uint16(value)
	case PacketInTree:
		p.Tree = uint16(value)
	case PacketInEpoch:
		p.Epoch = uint16(value)
	}
}

// RoutedPacketOut is the value of PacketOutPort with which a packet from the
// agent is routed by its IPv4 address: the pipeline fills in what depends upon
// the way, that is the addresses of the link, the source address, and the
// checksums of IPv4 and UDP. With any other value it leaves by that port, as it
// is.
const RoutedPacketOut = 0
