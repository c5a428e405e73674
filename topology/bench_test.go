package topology

import "testing"

// BenchmarkBuild builds fabrics of a million hosts, or of a million links.
func BenchmarkBuild(b *testing.B) {
	for _, spec := range []string{"fat-tree:160", "clos:80,80,80,80,160", "torus:10,50,50,40", "hyperx:64,25,25,25", "dragonfly:16,32,16,513", "rail:1000,8,125,64"} {
		b.Run("fabric="+spec, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				generated(b, spec)
			}
		})
	}
}

type eventKind struct {
	name   string
	change func(i int) Change // the i-th event
}

// eventKinds returns events of every kind, spread over the fabric.
func eventKinds(g *Graph) []eventKind {
	const stride = 7919
	return []eventKind{
		{"node", func(i int) Change { return NodeState(NodeID(i*stride%g.Nodes()), i%2 == 0) }},
		{"link", func(i int) Change { return LinkState(LinkID(i*stride%g.Links()), i%2 == 0) }},
		{"capability", func(i int) Change {
			c := DefaultCapability()
			c.Slots -= 1 + i%3
			return SwitchCapability(g.Switch(i*stride%g.Switches()), c)
		}},
		{"cpu", func(i int) Change { return NodeUtilization(NodeID(i*stride%g.Nodes()), float64(i%100+1)/100) }},
		{"load", func(i int) Change { return LinkUtilization(LinkID(i*stride%g.Links()), float64(i%100+1)/100) }},
	}
}

// BenchmarkEvent changes one thing in a fabric of 1,024,000 hosts where much has
// changed before, and asks what the change was.
func BenchmarkEvent(b *testing.B) {
	g := generated(b, "fat-tree:160")
	for _, e := range eventKinds(g) {
		for _, what := range []string{"with", "apply"} {
			b.Run("event="+e.name+"/call="+what, func(b *testing.B) {
				b.ReportAllocs()
				o := NewOverlay(g)
				i := 0
				for b.Loop() {
					var next *Overlay
					var err error
					if what == "with" {
						next, err = o.With(e.change(i))
					} else {
						next, _, err = o.Apply(e.change(i))
					}
					if err != nil {
						b.Fatal(err)
					}
					o = next
					i++
				}
			})
		}
	}
}

// BenchmarkUsable asks for every link of a fat-tree of 65,536 hosts whether it
// can be used, after failures all over it.
func BenchmarkUsable(b *testing.B) {
	g := generated(b, "fat-tree:64")
	var changes []Change
	for i := range 1000 {
		changes = append(changes, LinkState(LinkID(i*97%g.Links()), false), NodeState(NodeID(i*31%g.Nodes()), false))
	}
	o, err := NewOverlay(g).With(changes...)
	if err != nil {
		b.Fatal(err)
	}
	v, usable := o.View(), 0
	for b.Loop() {
		usable = 0
		for l := range LinkID(g.Links()) {
			if v.Usable(l) {
				usable++
			}
		}
	}
	if usable == 0 || usable == g.Links() {
		b.Fatalf("%d links usable", usable)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(g.Links()), "ns/link")
}
