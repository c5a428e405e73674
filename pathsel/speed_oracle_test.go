package pathsel

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// everyTree calls f with every tree of the members in a fabric of few switches: all
// sets of switches that hang together, all spanning trees of these, and all roots.
func everyTree(view topology.View, members []topology.NodeID, f func(Tree)) {
	g := view.Graph()
	n := g.Switches()
	var links []topology.LinkID // one of parallel ones
	seen := map[[2]topology.NodeID]bool{}
	for l, link := range g.AllLinks() {
		ends := [2]topology.NodeID{link.Ends[0].Node, link.Ends[1].Node}
		if view.Usable(l) && g.IsSwitch(ends[0]) && g.IsSwitch(ends[1]) && !seen[ends] {
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
			rooted(view, members, g.Switch(i), near, edges, f)
		}
	}
}

// rooted calls f with the trees of a root over some edges, if these make one.
func rooted(view topology.View, members []topology.NodeID, root topology.NodeID, near map[topology.NodeID][]topology.LinkID, edges int, f func(Tree)) {
	g := view.Graph()
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
			if v, on := place[g.Across(l, members[rank])]; on && view.Usable(l) {
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
			everyTree(view, req.Members, func(t Tree) {
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

// TestFastestAgainstEveryTree holds the pace of the fastest tree, by which slow switches
// are found, against all trees that there are: over switches that are slow, busy, at line
// rate, reduce nothing or are not known, of fabrics that are damaged.
func TestFastestAgainstEveryTree(t *testing.T) {
	few := topology.Speed{Bytes: 4e9, Packets: 5e5}
	kinds := []topology.Speed{{}, {Bytes: 4e9}, {Bytes: 4e9}, {Bytes: 1e9}, few, {Bytes: 1e8}, {Bytes: topology.LineRate}, {Bytes: topology.NoSpeed}}
	for name, g := range map[string]*topology.Graph{
		"leaf-spine:2,3,2": fabric(t, "leaf-spine:2,3,2"), "railed": railed(t), "four-switches:3": fabric(t, "four-switches:3"), "diamond": diamond(t),
	} {
		p, rng := planner(t, g), rand.New(rand.NewPCG(61, 62))
		compared := 0
		for range 300 {
			req := usual(randomGroup(rng, g, 4))
			req.Criterion = []Criterion{FewestHops, LeastLatency, WidestLink}[rng.IntN(3)]
			var changes []topology.Change
			for i := range g.Switches() {
				if n := g.Switch(i); rng.IntN(4) == 0 {
					changes = append(changes, topology.NodeUtilization(n, float64(rng.IntN(9))/8))
				} else if rng.IntN(12) == 0 {
					changes = append(changes, topology.NodeState(n, false))
				}
			}
			for l := range g.AllLinks() {
				if rng.IntN(20) == 0 {
					changes = append(changes, topology.LinkState(l, false))
				}
			}
			view := paced(t, g, func(topology.NodeID) topology.Speed { return kinds[rng.IntN(len(kinds))] }, changes...)
			if _, err := p.Plan(view, nil, req); err != nil {
				continue
			}
			if err := p.enter(view, nil, &req); err != nil {
				t.Fatal(err)
			}
			a := p.ask(view, nil, &req)
			a.by = req.Criterion
			got := p.fastest(a)
			p.leave(&req)
			least, short, any := math.MaxInt, 0.0, 0.0
			everyTree(view, req.Members, func(t Tree) {
				pace := math.Inf(1)
				for _, v := range t.Vertices {
					if pace = min(pace, a.pace(v.Switch)); !a.serves(v.Switch) {
						return
					}
				}
				if any = max(any, pace); t.Hops() < least {
					least, short = t.Hops(), 0
				}
				if t.Hops() == least {
					short = max(short, pace)
				}
			})
			compared++
			switch {
			case a.fewest() && p.layers != nil && (got < short || got > any):
				t.Fatalf("%s: the fastest tree has %g, of all with %d hops %g, of all %g", name, got, least, short, any)
			case (!a.fewest() || p.layers == nil) && (got > any || got < any/slack):
				t.Fatalf("%s, by %v: the fastest tree has %g, of all %g", name, a.by, got, any)
			}
		}
		t.Logf("%s: %d compared", name, compared)
	}
}

// formulas returns the seconds that an operation takes over the switches of a tree and
// over hosts by docs/planning.md, where all members report their speeds, and how many of the
// switches are not known beside known ones.
func formulas(view topology.View, m Model, req *Request, plan *Plan) (over, by float64, unknown int) {
	g, measured, usual := view.Graph(), false, []float64{}
	own := func(s topology.Speed, payload float64) float64 {
		return min(float64(s.Bytes), cmp.Or(float64(s.Packets), math.Inf(1))*payload)
	}
	for i := range g.Switches() {
		if s := view.Capability(g.Switch(i)).Speed; s.Bytes > 0 && s.Bytes < topology.LineRate {
			usual = append(usual, own(s, 1024))
		}
	}
	slices.Sort(usual)
	for _, v := range plan.Tree.Vertices {
		measured = measured || len(req.HostSpeeds) > 0 && view.Capability(v.Switch).Speed.Known()
	}
	idle := func(n topology.NodeID) float64 { return max(1-view.NodeUtilization(n), 1.0/16) }
	perByte, packet := 0.0, 0.0
	for i, beneath := range plan.Tree.AllChildren() {
		at := plan.Tree.Vertices[i].Switch
		s, rate, share, each, children := view.Capability(at).Speed, m.SwitchReduce, idle(at), m.SwitchHop.Seconds(), float64(len(beneath))
		if s.Bytes == topology.LineRate {
			share = 1 // no CPU reduces there, whether speeds count or not
		}
		switch {
		case !measured:
		case s.Bytes == topology.LineRate:
			rate = topology.LineRate
		case s.Known():
			rate = own(s, 1432)
			if s.Packets > 0 {
				each = children / float64(s.Packets)
			}
		case len(usual) > 0:
			rate = usual[len(usual)/2]
			unknown++
		}
		perByte, packet = max(perByte, children/rate/share), max(packet, each/share-m.SwitchHop.Seconds())
	}
	hostRate := math.Inf(1)
	for _, h := range req.Members {
		rate := m.HostReduce
		if measured {
			rate = float64(req.HostSpeeds[h].Bytes)
		}
		hostRate = min(hostRate, rate*idle(h))
	}
	wire, rounds := 8/float64(plan.Figures.Bandwidth), math.Ceil(math.Log2(float64(len(req.Members))))
	message, latency, bytes := m.HostMessage.Seconds(), plan.Figures.Latency.Seconds(), float64(req.Bytes)
	return 2*(message+latency+packet) + bytes*(wire+perByte), 2*rounds*(message+2*latency) + bytes*rounds*(wire+1/hostRate), unknown
}

// TestHostsOrSwitches holds predictions, and whether hosts are faster, against the
// formulas of docs/planning.md: with switches and hosts that are slow or busy, all of
// them or one, at line rate, or not known among known ones.
func TestHostsOrSwitches(t *testing.T) {
	hosts, switches, mixed := 0, 0, 0
	for _, name := range []string{"leaf-spine:2,4,2", "fat-tree:4", "leaf-spine:1,1,6"} {
		g := fabric(t, name)
		p, rng := planner(t, g), rand.New(rand.NewPCG(71, 72))
		for range 200 {
			kinds := [][]topology.Speed{
				{{Bytes: 4e9, Packets: 2e6}}, {{Bytes: 3e8}}, {{Bytes: 4e9}, {Bytes: 4e9}, {Bytes: 2e8}}, {{Bytes: 4e9}, {}}, {{Bytes: topology.LineRate}, {}, {Bytes: 1e9}}, {{}},
			}[rng.IntN(6)]
			var changes []topology.Change
			for i := range g.Nodes() {
				if rng.IntN(8) == 0 {
					changes = append(changes, topology.NodeUtilization(topology.NodeID(i), float64(rng.IntN(9))/8))
				}
			}
			view := paced(t, g, func(topology.NodeID) topology.Speed { return kinds[rng.IntN(len(kinds))] }, changes...)
			req := usual(randomGroup(rng, g, 6))
			req.Bytes, req.Hosts, req.Criterion = []int64{64, 1 << 16, 1 << 22}[rng.IntN(3)], true, Criterion(rng.IntN(int(criteria)))
			if speeds := []int64{2e8, 4e9, 40e9}; rng.IntN(4) > 0 {
				req.HostSpeeds = map[topology.NodeID]topology.Speed{}
				for _, h := range req.Members {
					req.HostSpeeds[h] = topology.Speed{Bytes: speeds[rng.IntN(3)]}
				}
			}
			plan, err := p.Plan(view, nil, req)
			faster := (*HostsFaster)(nil)
			if errors.As(err, &faster) {
				plan, plan.Forecast = faster.Plan, faster.Forecast
				hosts++
			} else if err != nil {
				t.Fatal(err)
			} else {
				switches++
			}
			over, by, unknown := formulas(view, DefaultModel(), &req, &plan)
			mixed += unknown
			off := func(got time.Duration, want float64) bool { return math.Abs(got.Seconds()-want) > want/1e6+1e-8 }
			if off(plan.Forecast.Switches, over) || off(plan.Forecast.Hosts, by) {
				t.Fatalf("%s: %v over switches, want %g s; %v over hosts, want %g s\n%+v\n%s", name, plan.Forecast.Switches, over, plan.Forecast.Hosts, by, plan.Trip, plan.Reason)
			}
			if (faster != nil) != (plan.Forecast.Hosts < plan.Forecast.Switches) {
				t.Fatalf("%s: %v over switches, %v over hosts: %v", name, plan.Forecast.Switches, plan.Forecast.Hosts, err)
			}
		}
	}
	t.Logf("hosts are faster for %d groups, switches for %d; %d switches not known beside known ones", hosts, switches, mixed)
	if min(hosts, switches, mixed) < 50 {
		t.Error("too few of one kind")
	}
}
