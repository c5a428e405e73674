package pathsel

import (
	"math/rand/v2"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
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
			var c choice
			for b.Loop() {
				var err error
				if c, err = selectTree(g.View(), load, req); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.Cost.Hops), "hops")
			b.ReportMetric(float64(c.Examined), "roots")
		})
	}
}

// BenchmarkRepair repairs the tree of a group of all after its root's death.
func BenchmarkRepair(b *testing.B) {
	for _, spec := range []string{"fat-tree:16", "fat-tree:64"} {
		b.Run("fabric="+spec, func(b *testing.B) {
			g := fabric(b, spec)
			p, req := planner(b, g), usual(everyone(g))
			plan, err := p.Plan(g.View(), nil, req)
			if err != nil {
				b.Fatal(err)
			}
			view := changed(b, g, topology.NodeState(plan.Tree.Root(), false))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Repair(view, nil, req, plan.Tree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlan plans for all hosts of a large fabric.
func BenchmarkPlan(b *testing.B) {
	for _, criterion := range []Criterion{FewestHops, WidestLink, LeastLoad} {
		b.Run("members=all/by="+criterion.String(), func(b *testing.B) {
			g := fabric(b, "fat-tree:64")
			p, req := planner(b, g), usual(everyone(g))
			req.Criterion = criterion
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Plan(g.View(), nil, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
