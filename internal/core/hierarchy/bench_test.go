package hierarchy

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// BenchmarkBase decodes the pieces of the view of a zone of 2,048 nodes and takes
// them, as a supervisor does; what the simulation says that an entry costs is
// twice this.
//
//	go test -run xxx -bench Base ./internal/core/hierarchy
func BenchmarkBase(b *testing.B) {
	const size = 2048
	members := make([]wire.Member, size)
	for i := range members {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 7946)
		id, err := gossip.MakeID(fmt.Sprintf("node-%04d", i), address)
		if err != nil {
			b.Fatal(err)
		}
		members[i] = wire.Member{ID: id, Version: gossip.Version{Incarnation: 1 << 60, Minor: 1}}
	}
	var raw [][]byte
	for _, piece := range parts(wire.Change{Zone: 7, Base: true, Alives: members}, DefaultSettings().PieceBytes) {
		raw = append(raw, piece.Append(nil))
	}
	b.ReportAllocs()
	var out Output
	for b.Loop() {
		v := newView(7)
		out.Reset()
		for _, bytes := range raw {
			m, err := wire.Decode(bytes)
			if err != nil {
				b.Fatal(err)
			}
			for i := range m.(*wire.Change).Alives {
				v.alive(&m.(*wire.Change).Alives[i], 0, &out)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/entry")
}
