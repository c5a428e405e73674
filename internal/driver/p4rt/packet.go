package p4rt

import (
	"encoding/binary"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// Packet is one from the target, or one to it.
type Packet struct {
	// Header has the fields of the program's packet_in or packet_out header.
	// What comes from the target has them all, in the program's order; of what
	// goes there a field that is left out is 0.
	Header  []Meta
	Payload []byte
	Session uint64 // of what comes from the target: as in Event
}

// Meta is a field of the header between target and controller.
type Meta struct {
	ID    uint32 // in the P4Info
	Value uint64
}

// packetOut returns p as it is sent. Errors wrap ErrEntry.
func (s *Schema) packetOut(p Packet) (*p4v1.PacketOut, error) {
	m := &p4v1.PacketOut{Payload: p.Payload}
	left := len(p.Header)
	for _, f := range s.out {
		var value uint64
		if i := slices.IndexFunc(p.Header, func(h Meta) bool { return h.ID == f.id }); i >= 0 {
			value = p.Header[i].Value
			left--
		}
		b, err := shorten(binary.BigEndian.AppendUint64(nil, value), f.width)
		if err != nil {
			return nil, fmt.Errorf("header %s: %s: %w", packetOutHeader, f.name, err)
		}
		m.Metadata = append(m.Metadata, &p4v1.PacketMetadata{MetadataId: f.id, Value: b})
	}
	if left > 0 {
		return nil, fmt.Errorf("%w: header %s: a field that it does not have, or one twice", ErrEntry, packetOutHeader)
	}
	return m, nil
}

// packetIn reads a packet from the target. Errors wrap ErrMalformed.
func (s *Schema) packetIn(m *p4v1.PacketIn) (Packet, error) {
	p := Packet{Payload: m.GetPayload()}
	for _, f := range s.in {
		i := slices.IndexFunc(m.GetMetadata(), func(g *p4v1.PacketMetadata) bool { return g.GetMetadataId() == f.id })
		if i < 0 {
			return p, fmt.Errorf("%w: header %s without %s", ErrMalformed, packetInHeader, f.name)
		}
		b, err := shorten(m.GetMetadata()[i].GetValue(), f.width)
		if err != nil {
			return p, fmt.Errorf("%w: header %s: %s: %w", ErrMalformed, packetInHeader, f.name, err)
		}
		var value uint64
		for _, octet := range b {
			value = value<<8 | uint64(octet)
		}
		p.Header = append(p.Header, Meta{ID: f.id, Value: value})
	}
	return p, nil
}
