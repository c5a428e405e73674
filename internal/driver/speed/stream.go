package speed

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// Stream is the packets of the children of one switch, the root of its tree: sums of
// float32.
type Stream struct {
	payload int
	next    uint32
	packets [Children][]byte
}

// smallest is the payload of the smallest packets, in bytes.
const smallest = 16

// NewStream returns one whose packets have so many bytes of payload.
func NewStream(payload int) *Stream {
	s := &Stream{payload: payload - payload%4}
	for i := range s.packets {
		s.packets[i] = make([]byte, Window*s.Size())
	}
	return s
}

// Small returns one of the smallest packets.
func Small() *Stream { return NewStream(smallest) }

// Size returns the bytes of a packet.
func (s *Stream) Size() int { return wire.HeaderSize + s.payload }

// Config returns the tree's epoch on the switch, for children at some addresses.
func (s *Stream) Config(children [Children]netip.AddrPort) *switchreduce.Config {
	c := &switchreduce.Config{Epoch: 2, Window: Window, ChunkBytes: s.payload}
	for i, a := range children {
		c.Children = append(c.Children, switchreduce.Child{Addr: a, Lowest: uint32(i)})
	}
	return c
}

// Next returns what the children send of the next window, one packet after the other;
// the memory is the same each time.
func (s *Stream) Next() *[Children][]byte {
	elements := uint32(s.payload / 4)
	h := wire.Header{Type: wire.Contribution, Flags: wire.Sink, Epoch: 2, Signature: wire.Signature{
		Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Float32, Elements: elements, ChunkElements: uint16(elements),
	}}
	for n := range Window {
		h.Chunk = s.next
		s.next++
		for i := range s.packets {
			h.Child, h.Lowest = uint16(i), uint32(i)
			h.Put(s.packets[i][n*s.Size():])
		}
	}
	return &s.packets
}
