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
				req.Members = append(req.Members, g.AllHosts()[h])
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
			p, req := planner(b, g), usual(g.AllHosts())
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
			p, req := planner(b, g), usual(g.AllHosts())
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

// BenchmarkSpeeds plans groups of 16 of a large fabric whose switches differ in speed:
// as measurements do, or so that some are slow; and with a view that changes each time.
func BenchmarkSpeeds(b *testing.B) {
	g := fabric(b, "fat-tree:64")
	rng := rand.New(rand.NewPCG(5, 6))
	for _, test := range []struct {
		name string
		slow int // one switch in so many; 0: none
		anew bool
	}{{"alike", 0, false}, {"slow=1/64", 64, false}, {"slow=1/4", 4, false}, {"alike/view=new", 0, true}} {
		b.Run("speeds="+test.name, func(b *testing.B) {
			views := make([]topology.View, 2)
			for i := range views {
				views[i] = paced(b, g, func(n topology.NodeID) topology.Speed {
					s := topology.Speed{Bytes: 4e9 + rng.Int64N(1e9), Packets: 3e6}
					if test.slow > 0 && rng.IntN(test.slow) == 0 {
						s.Bytes /= 10
					}
					return s
				})
				if !test.anew {
					views[1] = views[0]
					break
				}
			}
			p, reqs := planner(b, g), make([]Request, 64)
			for i := range reqs {
				reqs[i] = usual(nil)
				for _, h := range rng.Perm(g.Hosts())[:16] {
					reqs[i].Members = append(reqs[i].Members, topology.NodeID(h))
				}
				reqs[i].Bytes = 1 << 20
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if _, err := p.Plan(views[i%2], nil, reqs[i%len(reqs)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
