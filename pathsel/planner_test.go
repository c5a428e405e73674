package pathsel

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

func planner(t testing.TB, g *topology.Graph) *Planner {
	t.Helper()
	p, err := NewPlanner(g, Config{Work: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkPlan holds a plan against everything that it promises alone: a tree that
// spans the group, whose switches can reduce, within every capacity.
func checkPlan(t testing.TB, view topology.View, load *Load, req Request, plan *Plan) {
	t.Helper()
	if err := plan.Tree.Validate(view); err != nil {
		t.Fatalf("%v: %v", plan.Method, err)
	}
	checkTree(t, view, load, req, plan.Tree)
	if plan.Figures.Hops != plan.Tree.Hops() || plan.Figures.Depth != plan.Tree.Depth() {
		t.Fatalf("figures %+v of a tree of %d hops and depth %d", plan.Figures, plan.Tree.Hops(), plan.Tree.Depth())
	}
	for i, r := range plan.Rivals {
		if r.Lost == "" || i > 0 && r.Root == topology.NoNode {
			t.Fatalf("rival %d: %+v", i, r)
		}
	}
}

// checkTree holds a tree against its request.
func checkTree(t testing.TB, view topology.View, load *Load, req Request, tree Tree) {
	t.Helper()
	excluded := map[topology.NodeID]bool{}
	for _, n := range req.Exclude {
		excluded[n] = true
	}
	excludedLinks := map[topology.LinkID]bool{}
	for _, l := range req.ExcludeLinks {
		excludedLinks[l] = true
	}
	links := map[topology.LinkID]bool{}
	for l := range tree.Links() {
		if excludedLinks[l] || links[l] && len(tree.Routes) == 0 {
			t.Fatalf("link %s is excluded, or on the tree twice", view.Graph().LinkName(l))
		}
		links[l] = true
	}
	for i, children := range tree.AllChildren() {
		n := tree.Vertices[i].Switch
		k := view.Capability(n)
		if excluded[n] || !k.Functions.Covers(req.Functions) || !k.Types.Covers(req.Types) || k.Chunk < req.ChunkBytes ||
			k.Slots-load.UsedSlots(n) < req.Slots || len(children) > k.Children || len(children) == 0 {
			t.Fatalf("switch %s cannot serve: %+v with %d children", view.Graph().Name(n), k, len(children))
		}
	}
	if len(tree.Leaves) != len(req.Members) {
		t.Fatalf("%d leaves of %d members", len(tree.Leaves), len(req.Members))
	}
	for rank, l := range tree.Leaves {
		if l.Host != req.Members[rank] {
			t.Fatalf("leaf %d is not rank %d", rank, rank)
		}
	}
	// With as many edges as there are nodes but one, and all of them joined to
	// the root (Validate), there is no cycle.
	if nodes := len(tree.Vertices) + len(tree.Leaves); len(tree.Routes) == 0 && len(links) != nodes-1 {
		t.Fatalf("%d links join %d nodes", len(links), nodes)
	}
	if len(tree.Routes) > 0 {
		checkRoutes(t, view, req, tree)
	}
}

var smallFabrics = []string{"fat-tree:4", "leaf-spine:2,3,2", "leaf-spine:1,6,4", "four-switches:3", "railed"}

func smallFabric(t testing.TB, name string) *topology.Graph {
	if name == "railed" {
		return railed(t)
	}
	return fabric(t, name)
}

// smallPlanners returns planners for the small fabrics and others, by name.
func smallPlanners(t testing.TB, more ...string) (names []string, planners map[string]*Planner) {
	t.Helper()
	names, planners = append(more, smallFabrics...), map[string]*Planner{}
	for _, name := range names {
		planners[name] = planner(t, smallFabric(t, name))
	}
	return names, planners
}

// randomRequest asks by any criterion, or by weights.
func randomRequest(rng *rand.Rand, g *topology.Graph) Request {
	req := usual(randomGroup(rng, g, 8))
	req.Criterion = Criterion(rng.IntN(int(criteria)))
	req.Bytes = int64(rng.IntN(1 << 20))
	if rng.IntN(6) == 0 {
		req.Criterion, req.Weights = ByFunction, Weights{0, 1, rng.Float64(), rng.Float64(), 2, rng.Float64()}
	}
	return req
}

// TestPlanProperties plans random groups on random damaged fabrics by every
// criterion.
func TestPlanProperties(t *testing.T) {
	names, planners := smallPlanners(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := planners[rapid.SampledFrom(names).Draw(rt, "fabric")]
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		req := randomRequest(rng, p.graph)
		view, load := p.graph.View(), (*Load)(nil)
		if rng.IntN(4) != 0 {
			view, load = damage(t, rng, p.graph, &req)
		}
		plan, err := p.Plan(view, load, req)
		_, ok := newPlain(view, load, req).steiner()
		if err != nil {
			if no := (*Refusal)(nil); !errors.As(err, &no) || ok && no.Resource != Children {
				rt.Fatalf("%v; the oracle has a tree: %v", err, ok)
			}
			return
		}
		checkPlan(t, view, load, req, &plan)
		again, err := p.Plan(view, load, req)
		if err != nil || !reflect.DeepEqual(plan, again) {
			rt.Fatalf("two answers:\n%+v\n%+v, %v", plan, again, err)
		}
	})
}

// TestPlanAgainstOracles holds plans of the fewest hops against all trees that
// there are, and against the method of shortest paths alone.
func TestPlanAgainstOracles(t *testing.T) {
	for _, name := range smallFabrics {
		t.Run(name, func(t *testing.T) {
			g := smallFabric(t, name)
			p, rng := planner(t, g), rand.New(rand.NewPCG(21, 22))
			byMethod, above := map[Method]int{}, 0
			for range 150 {
				req := usual(randomGroup(rng, g, 8))
				req.Criterion = FewestHops
				view, load := damage(t, rng, g, &req)
				plan, err := p.Plan(view, load, req)
				choice, selectErr := selectTree(view, load, req)
				if selectErr == nil && err != nil {
					t.Fatalf("no plan (%v), where shortest paths have a tree", err)
				}
				if err != nil {
					continue
				}
				byMethod[plan.Method]++
				if selectErr == nil && choice.Cost.Compare(plan.Figures.Cost()) < 0 {
					t.Fatalf("%v by %v, shortest paths have %v", plan.Figures.Cost(), plan.Method, choice.Cost)
				}
				fewest, _ := newPlain(view, load, req).steiner()
				if plan.Exact && plan.Figures.Hops != fewest || plan.Figures.Hops < fewest {
					t.Fatalf("%d hops by %v, the smallest tree has %d", plan.Figures.Hops, plan.Method, fewest)
				}
				above += plan.Figures.Hops - fewest
			}
			t.Logf("by method %v; %d hops above the smallest trees", byMethod, above)
			if above > 10 { // children limits, which the oracle does not know
				t.Errorf("%d hops above the smallest trees", above)
			}
		})
	}
}

// TestPlannerBytes holds what a planner says it takes against the sizes that it
// counts with.
func TestPlannerBytes(t *testing.T) {
	if unsafe.Sizeof(levelState{}) != 56 || unsafe.Sizeof(way{}) != 24 {
		t.Errorf("a levelState has %d bytes, a way %d", unsafe.Sizeof(levelState{}), unsafe.Sizeof(way{}))
	}
	g := fabric(t, "fat-tree:16")
	p := planner(t, g)
	if _, err := p.Plan(g.View(), nil, usual(g.AllHosts())); err != nil {
		t.Fatal(err)
	}
	if a := p.Bytes() / g.Hosts(); a < 16 || a > 128 {
		t.Errorf("%d bytes a host", a)
	}
}
