package managerd_test

import (
	"context"
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/topology"
)

// BenchmarkSetFabric puts a fabric into effect that has a link less, and again one with
// it: what is compared, carried over and noted, up to the planner's beginning anew.
func BenchmarkSetFabric(b *testing.B) {
	for _, spec := range []string{"leaf-spine:8,16,4", "leaf-spine:16,960,40", "fat-tree:64"} {
		b.Run("fabric="+spec, func(b *testing.B) {
			g := must(topology.Parse(spec))
			p := must(g.Patched([]byte("remove: {links: [\"h0:1\"]}"), "patch", nil))
			d := must(managerd.Start(managerd.Config{Topology: g, Listen: "127.0.0.1:0"}))
			b.Cleanup(d.Kill)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				next := g
				if i%2 == 0 {
					next = p.Graph
				}
				if err := d.SetFabric(managerd.FabricChange{Graph: next}); err != nil {
					b.Fatal(err)
				}
				if _, err := d.Groups(context.Background()); err != nil { // the core has it
					b.Fatal(err)
				}
			}
		})
	}
}
