package pathsel

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

// checkRoutes holds every route of a tree against all ways that there are: from
// each of its ends on, it is the only shortest one to the link at the other, and
// it passes only switches that may forward.
func checkRoutes(t testing.TB, view topology.View, req Request, tree Tree) {
	t.Helper()
	g := view.Graph()
	if !req.Forward && !req.Slim {
		t.Fatal("an edge leads over several links, which was not allowed")
	}
	for _, route := range tree.Routes {
		n := len(route.Links)
		nodes := []topology.NodeID{tree.childOf(route)}
		for _, l := range route.Links {
			nodes = append(nodes, g.Across(l, nodes[len(nodes)-1]))
		}
		for _, x := range nodes[1:n] {
			if slices.Contains(req.Exclude, x) {
				t.Fatalf("%s is excluded and passes an edge on", g.Name(x))
			}
		}
		for _, ends := range [][2]topology.NodeID{{nodes[0], nodes[n-1]}, {nodes[n], nodes[1]}} {
			for links := 1; links < n; links++ {
				want := 0
				if links == n-1 {
					want = 1
				}
				if got := countWays(view, ends[0], ends[1], links); got != want {
					t.Fatalf("from %s to %s, whose edge has %d links, there are %d ways of %d links", g.Name(ends[0]), g.Name(ends[1]), n, got, links)
				}
				if countWays(view, nodes[0], nodes[n], links) > 0 {
					t.Fatalf("%s and %s are nearer than their edge is long, %d links", g.Name(nodes[0]), g.Name(nodes[n]), n)
				}
			}
		}
	}
}

// countWays counts the walks of so many links over what is up.
func countWays(view topology.View, from, to topology.NodeID, links int) (n int) {
	if links == 0 {
		if from == to {
			return 1
		}
		return 0
	}
	for _, l := range view.Graph().Adjacent(from) {
		next := view.Graph().Across(l, from)
		if view.Usable(l) && (view.Graph().IsSwitch(next) || links == 1) {
			n += countWays(view, next, to, links-1)
		}
	}
	return n
}

// without returns g when these switches cannot reduce.
func without(t testing.TB, g *topology.Graph, names ...string) topology.View {
	t.Helper()
	var changes []topology.Change
	for _, name := range names {
		changes = append(changes, topology.SwitchCapability(node(t, g, name), topology.Capability{}))
	}
	return changed(t, g, changes...)
}

// TestForward plans over switches that can only forward.
func TestForward(t *testing.T) {
	for _, test := range []struct {
		fabric   string
		dumb     []string
		vertices int // 0: there is no tree
		hops     int
		depth    int
	}{
		// Three leaves around a spine: two edges of two links.
		{"leaf-spine:2,3,1", []string{"spine-0"}, 3, 6 + 4, 3},
		// The hosts of a leaf reach the spine through it, all over one link.
		{"leaf-spine:2,3,1", []string{"leaf-1"}, 3, 4 + 2*2 + 2, 2},
		// Nothing but the spine reduces.
		{"leaf-spine:2,3,1", []string{"leaf-0", "leaf-1", "leaf-2"}, 1, 6 * 2, 2},
		// With two spines, too, the way to each link of theirs is the only one.
		{"leaf-spine:2,3,2", []string{"spine-0", "spine-1"}, 3, 6 + 4, 3},
		// Of the parallel links between four switches none is.
		{"four-switches:2", []string{"B", "C"}, 0, 0, 0},
		// One of them reduces: no need to forward.
		{"leaf-spine:2,3,2", []string{"spine-0"}, 4, 6 + 3, 2},
		{"leaf-spine:2,3,1", []string{"leaf-0", "leaf-1", "leaf-2", "spine-0"}, 0, 0, 0},
	} {
		g := fabric(t, test.fabric)
		view := without(t, g, test.dumb...)
		req := usual(g.AllHosts())
		req.Forward = true
		plan, err := planner(t, g).Plan(view, nil, req)
		if test.vertices == 0 {
			if !errors.Is(err, ErrNoTree) {
				t.Errorf("%s without %v: %v", test.fabric, test.dumb, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s without %v: %v", test.fabric, test.dumb, err)
			continue
		}
		checkPlan(t, view, nil, req, &plan)
		if len(plan.Tree.Vertices) != test.vertices || plan.Figures.Hops != test.hops || plan.Figures.Depth != test.depth {
			t.Errorf("%s without %v: %s", test.fabric, test.dumb, plan.Reason)
		}
	}
}

// TestForwardNeedsLeave: without Forward switches do not forward; an excluded one
// never does, and one that is to be idle does.
func TestForwardNeedsLeave(t *testing.T) {
	g := fabric(t, "leaf-spine:2,3,1")
	p, spine := planner(t, g), node(t, g, "spine-0")
	req := usual(g.AllHosts())
	req.Idle = []topology.NodeID{spine}
	if _, err := p.Plan(g.View(), nil, req); !errors.Is(err, ErrNoTree) {
		t.Errorf("without leave: %v", err)
	}
	req.Forward = true
	plan, err := p.Plan(g.View(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, g.View(), nil, req, &plan)
	if all := plan.Tree.Forwarders(g); len(all) != 2 || all[0] != spine || all[1] != spine {
		t.Errorf("%v forward", all)
	}
	// Both edges share the link from the spine to the root.
	if bandwidth := topology.DefaultLink().Bandwidth / 2; plan.Figures.Bandwidth != bandwidth {
		t.Errorf("%d bit/s are left, want %d", plan.Figures.Bandwidth, bandwidth)
	}
	x := NewIndex(g)
	x.Add(7, plan.Tree)
	if all := x.OnNode(spine); !slices.Equal(all, []uint32{7}) {
		t.Errorf("on the switch that forwards there are %v", all)
	}
	x.Remove(7, plan.Tree)
	if all := x.OnNode(spine); len(all) > 0 {
		t.Errorf("on the switch that forwards there are %v yet", all)
	}
	req.Exclude, req.Idle = req.Idle, nil
	if _, err := p.Plan(g.View(), nil, req); !errors.Is(err, ErrNoTree) {
		t.Errorf("excluded: %v", err)
	}
}

// TestRoutesThatAreNone breaks the routes of a tree.
func TestRoutesThatAreNone(t *testing.T) {
	g := fabric(t, "leaf-spine:2,3,1")
	view := without(t, g, "spine-0")
	req := usual(g.AllHosts())
	req.Forward = true
	plan, err := planner(t, g).Plan(view, nil, req)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Tree.Vertices[1:] {
		if links := plan.Tree.Edge(i + 1); len(links) != 2 {
			t.Errorf("the edge of vertex %d has the links %v", i+1, links)
		}
	}
	if links := plan.Tree.Edges().OfLeaf(0); len(links) != 1 || links[0] != plan.Tree.Leaves[0].Link {
		t.Errorf("the edge of rank 0 has the links %v", links)
	}
	broken := plan.Tree
	broken.Routes = slices.Clone(broken.Routes)
	broken.Routes[0].Links = broken.Routes[0].Links[:1]
	if err := broken.Validate(view); !errors.Is(err, ErrInvalidTree) {
		t.Errorf("a route of one link: %v", err)
	}
	if err := plan.Tree.Validate(changed(t, g, topology.LinkState(plan.Tree.Routes[1].Links[1], false))); !errors.Is(err, ErrInvalidTree) {
		t.Errorf("a link of a route is down: %v", err)
	}
}

// TestForwardProperties plans random groups on random fabrics of which some
// switches cannot reduce, or are not to.
func TestForwardProperties(t *testing.T) {
	planners := map[string]*Planner{}
	for _, name := range smallFabrics {
		planners[name] = planner(t, smallFabric(t, name))
	}
	routes := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := planners[rapid.SampledFrom(smallFabrics).Draw(rt, "fabric")]
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 9))
		req := usual(randomGroup(rng, p.graph, 8))
		req.Criterion, req.Forward, req.Slim = Criterion(rng.IntN(int(criteria))), true, rng.IntN(2) == 0
		view, load := damage(t, rng, p.graph, &req)
		for i := range p.graph.Switches() {
			if rng.IntN(4) == 0 {
				req.Idle = append(req.Idle, p.graph.Switch(i))
			}
		}
		plan, err := p.Plan(view, load, req)
		less := req
		less.Forward = false
		_, without := p.Plan(view, load, less)
		if err != nil {
			if no := (*Refusal)(nil); !errors.As(err, &no) || without == nil {
				rt.Fatalf("%v; without forwarding: %v", err, without)
			}
			return
		}
		checkPlan(t, view, load, req, &plan)
		for _, v := range plan.Tree.Vertices {
			if slices.Contains(req.Idle, v.Switch) {
				rt.Fatalf("%s is to be idle", p.graph.Name(v.Switch))
			}
		}
		routes += len(plan.Tree.Routes)
	})
	if routes == 0 {
		t.Error("no edge was forwarded")
	}
}

// TestOnlyWay holds it against counting walks, on damaged fabrics.
func TestOnlyWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	only, not := 0, 0
	for range 2000 {
		g := smallFabric(t, smallFabrics[rng.IntN(len(smallFabrics))])
		p, view := newPlanner(g, DefaultConfig()), cut(t, rng, g)
		from := topology.NodeID(rng.IntN(g.Nodes()))
		var links []topology.LinkID
		at := from
		for range 1 + rng.IntN(4) {
			all := g.Adjacent(at)
			l := all[rng.IntN(len(all))]
			next := g.Across(l, at)
			if !view.Usable(l) || !g.IsSwitch(next) {
				break
			}
			links, at = append(links, l), next
		}
		other := topology.NodeID(rng.IntN(g.Nodes()))
		if len(links) == 0 || other == from {
			continue
		}
		want := countWays(view, from, at, len(links)) == 1 && at != from
		for n := 1; n <= len(links); n++ {
			want = want && (n == len(links) || countWays(view, from, at, n) == 0) && countWays(view, from, other, n) == 0
		}
		if got := p.onlyWay(view, from, other, links); got != want {
			t.Fatalf("%s: from %s over %v, away from %s: %v, want %v", g.Fabric(), g.Name(from), links, g.Name(other), got, want)
		}
		if want {
			only++
		} else {
			not++
		}
	}
	if only == 0 || not == 0 {
		t.Errorf("%d were the only way, %d not", only, not)
	}
}

// TestSlim: switches that are there for one child forward, and so does a root
// between two, where that is better.
func TestSlim(t *testing.T) {
	for name, test := range map[string]struct {
		fabric   string
		members  []string
		by       Criterion
		vertices int
		root     string
	}{
		"a host on each leaf, by latency": {"leaf-spine:2,3,1", []string{"h0", "h2", "h4"}, LeastLatency, 1, "spine-0"},
		"two on each, by latency":         {"leaf-spine:2,2,1", []string{"h0", "h1", "h2", "h3"}, LeastLatency, 3, "spine-0"},
		"two on each, by load":            {"leaf-spine:2,2,1", []string{"h0", "h1", "h2", "h3"}, LeastLoad, 2, "leaf-0"},
		"two on each of three, by load":   {"leaf-spine:2,3,1", []string{"h0", "h1", "h2", "h3", "h4", "h5"}, LeastLoad, 4, "spine-0"},
		"two in all, by load":             {"leaf-spine:2,2,2", []string{"h0", "h2"}, LeastLoad, 1, ""},
		"two in all, by hops":             {"leaf-spine:2,2,2", []string{"h0", "h2"}, FewestHops, 1, ""},
	} {
		g := fabric(t, test.fabric)
		req := usual(nil)
		for _, m := range test.members {
			req.Members = append(req.Members, node(t, g, m))
		}
		req.Criterion = test.by
		p := planner(t, g)
		fat, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Slim = true
		plan, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, g.View(), nil, req, &plan)
		if len(plan.Tree.Vertices) != test.vertices || test.root != "" && g.Name(plan.Tree.Root()) != test.root || plan.Figures.Compare(fat.Figures, test.by) > 0 {
			t.Errorf("%s: %s; before: %s", name, plan.Reason, fat.Reason)
		}
		// It is kept as it is.
		req.Old = plan.Tree
		if kept, err := p.Plan(g.View(), nil, req); err != nil || !equalTrees(kept.Tree, plan.Tree) {
			t.Errorf("%s: it became %s, %v", name, kept.Reason, err)
		}
	}
}

func equalTrees(a, b Tree) bool {
	return slices.Equal(a.Vertices, b.Vertices) && slices.Equal(a.Leaves, b.Leaves) && len(a.Routes) == len(b.Routes)
}
