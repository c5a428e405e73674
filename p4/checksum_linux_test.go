package p4_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestChecksumOfZeroOnBMv2: a result whose UDP checksum computes to 0 is sent with 0xffff,
// since every receiver would drop it, and every copy of it. collect compares all packets
// with such ones.
func TestChecksumOfZeroOnBMv2(t *testing.T) {
	if !live(t) {
		return
	}
	p := newPipeline(t)
	p.begin()
	p.install(&switchreduce.Config{
		Group: 9, Epoch: 2, Window: 4, ChunkBytes: 64, Children: []switchreduce.Child{{Addr: addr('a'), Cookie: 8}},
	})
	reduced := func(number uint32, value []byte) []byte {
		h := wire.Header{
			Type: wire.Contribution, Flags: wire.Sink, Group: 9, Epoch: 2, Cookie: 8, Chunk: number,
			Signature: wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 1, ChunkElements: 1},
		}
		b := make([]byte, wire.HeaderSize)
		h.Put(b)
		out, outcomes := p.packet(addr('a'), portOf('a'), append(b, value...), "")
		if len(out) != 1 || out[0].to != addr('a') || !slices.Equal(outcomes, []string{p4.TakenResult.String()}) {
			t.Fatalf("%v: %v", outcomes, out)
		}
		return out[0].b
	}
	from := netip.AddrPortFrom(p.state.Ports[portOf('a')-1].Addr, p4.TreePort(p.tree().Index))
	sumOf := func(b []byte) uint16 {
		return binary.BigEndian.Uint16(udpPacket(from, addr('a'), b, true)[ipBytes+6:])
	}
	// The checksum of a result of 0 is what its sum lacks of 0xffff: as the value it makes
	// the sum that.
	result := reduced(1, make([]byte, 4))
	next := slices.Clone(result)
	binary.BigEndian.PutUint32(next[20:], 2)
	value := binary.BigEndian.AppendUint16(nil, sumOf(next))
	if got := sumOf(reduced(2, append(value, 0, 0))); got != 0xffff {
		t.Errorf("the checksum is %#x", got)
	}
}
