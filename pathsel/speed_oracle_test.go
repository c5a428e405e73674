package pathsel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// everyTree calls f with every tree of the members in a fabric of few switches: all
// sets of switches that hang together, all spanning trees of these, and all roots.
func everyTree(g *topology.Graph, members []topology.NodeID, f func(Tree)) {
	n := g.Switches()
	var links []topology.LinkID // one of parallel ones
	seen := map[[2]topology.NodeID]bool{}
	for l, link := range g.AllLinks() {
		ends := [2]topology.NodeID{link.Ends[0].Node, link.Ends[1].Node}
		if g.IsSwitch(ends[0]) && g.IsSwitch(ends[1]) && !seen[ends] {
			seen[ends] = true
			links = append(links, l)
		}
	}
	for set := range 1 << len(links) {
		near := map[topology.NodeID][]topology.LinkID{}
		edges := 0
		for i, l := range links {
			if set>>i&1 == 1 {
				edges++
				for _, e := range g.Link(l).Ends {
					near[e.Node] = append(near[e.Node], l)
				}
			}
		}
		if edges >= n {
			continue
		}
		for i := range n {
			rooted(g, members, g.Switch(i), near, edges, f)
		}
	}
}

// rooted calls f with the trees of a root over some edges, if these make one.
func rooted(g *topology.Graph, members []topology.NodeID, root topology.NodeID, near map[topology.NodeID][]topology.LinkID, edges int, f func(Tree)) {
	t := Tree{Vertices: []Vertex{{Switch: root, Parent: -1, Up: topology.NoLink}}, Leaves: make([]Leaf, len(members))}
	place := map[topology.NodeID]int32{root: 0}
	for i := 0; i < len(t.Vertices); i++ {
		v := t.Vertices[i]
		for _, l := range near[v.Switch] {
			to := g.Across(l, v.Switch)
			if l == v.Up {
				continue
			}
			if _, met := place[to]; met {
				return // a cycle
			}
			place[to] = int32(len(t.Vertices))
			t.Vertices = append(t.Vertices, Vertex{Switch: to, Parent: int32(i), Up: l})
		}
	}
	if len(t.Vertices) != edges+1 {
		return
	}
	var attach func(rank int)
	attach = func(rank int) {
		if rank == len(members) {
			for _, children := range t.AllChildren() {
				if len(children) == 0 {
					return
				}
			}
			f(t)
			return
		}
		for _, l := range g.Adjacent(members[rank]) {
			if v, on := place[g.Across(l, members[rank])]; on {
				t.Leaves[rank] = Leaf{Host: members[rank], Vertex: v, Link: l}
				attach(rank + 1)
			}
		}
	}
	attach(0)
}

// diamond is a fabric of five switches without layers: a ring of four around one.
func diamond(t testing.TB) *topology.Graph {
	t.Helper()
	var b topology.Builder
	var s []topology.Ref
	connect := func(x, y topology.Ref) {
		if _, err := b.Connect(x, 0, y, 0, topology.DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c", "d", "middle"} {
		r, err := b.AddSwitch(name, topology.DefaultCapability())
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, r)
	}
	for i := range 4 {
		connect(s[i], s[(i+1)%4])
		connect(s[i], s[4])
		h, err := b.AddHost("h" + string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		connect(h, s[i])
		connect(h, s[(i+1)%4])
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestAgainstEveryTree holds plans against the tree of the least time by the model, of
// all that there are, as if all switches had two children: how many a slow one has that
// every tree needs follows from the fewest hops. Outside layers a tree with more
// children may be no faster than one with a slower switch, and is not taken for that.
func TestAgainstEveryTree(t *testing.T) {
	for _, test := range []struct {
		name   string
		g      *topology.Graph
		layers bool
		most   float64
	}{{"leaf-spine:2,3,2", fabric(t, "leaf-spine:2,3,2"), true, slack}, {"diamond", diamond(t), false, 2}} {
		g := test.g
		p, rng := planner(t, g), rand.New(rand.NewPCG(41, 42))
		worst, sum, n := 1.0, 0.0, 0
		for range 200 {
			req := usual(randomGroup(rng, g, 4))
			req.Bytes, req.Criterion = 4<<20, []Criterion{LeastLatency, WidestLink}[rng.IntN(2)]
			view := paced(t, g, func(topology.NodeID) topology.Speed {
				return topology.Speed{Bytes: []int64{4e9, 3e9, 4e9, 3.5e9, 1e9, 1e8}[rng.IntN(6)]}
			})
			plan, err := p.Plan(view, nil, req)
			if err != nil {
				t.Fatal(err)
			}
			a := p.ask(view, nil, &req)
			took := func(t Tree, alike bool) float64 {
				f := p.Measure(view, nil, req, t)
				trip := p.trip(a, &t, &f, false)
				if alike {
					trip.Reduce = float64(f.Speed) / 2
				}
				return p.cfg.Model.Switches(trip).Seconds()
			}
			least := [2]float64{math.Inf(1), math.Inf(1)}
			everyTree(g, req.Members, func(t Tree) {
				least = [2]float64{min(least[0], took(t, true)), min(least[1], took(t, false))}
			})
			off := took(plan.Tree, true) / least[0]
			if off < 1-1e-9 {
				t.Fatalf("%s: %v times the least of all trees", test.name, off)
			}
			if !test.layers {
				off = min(off, took(plan.Tree, false)/least[1])
			}
			worst, sum, n = max(worst, off), sum+off, n+1
		}
		t.Logf("%s: %.3f times the least on average, %.2f at worst", test.name, sum/float64(n), worst)
		if worst > test.most {
			t.Errorf("%s: more than %v times", test.name, test.most)
		}
	}
}
