package pathsel

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkSelect plans 1,000 random members of fabrics of growing size.
func BenchmarkSelect(b *testing.B) {
	for _, spec := range []string{"fat-tree:16", "fat-tree:64", "leaf-spine:32,2048,32"} {
		b.Run("fabric="+spec, func(b *testing.B) {
			g := fabric(b, spec)
			load := NewLoad(g)
			req := usual(randomGroup(rand.New(rand.NewPCG(5, 6)), g, g.Hosts())[:1])
			req.Members = req.Members[:0]
			for _, h := range rand.New(rand.NewPCG(5, 6)).Perm(g.Hosts())[:1000] {
				req.Members = append(req.Members, everyone(g)[h])
			}
			b.ReportAllocs()
			var c Choice
			for b.Loop() {
				var err error
				if c, err = Select(g.View(), load, req); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.Cost.Hops), "hops")
			b.ReportMetric(float64(c.Examined), "roots")
		})
	}
}
