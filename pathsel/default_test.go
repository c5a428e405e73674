package pathsel

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

// TestDefaultKeepsToTheNeed plans groups that ask for nothing beside others, in fabrics
// that are damaged: an operation takes no longer than the bound allows beside the tree
// by what the purpose needs, and that tree is not cheaper.
func TestDefaultKeepsToTheNeed(t *testing.T) {
	names, planners := smallPlanners(t, "torus:1,3,3", "clos:2,2,2,2,2")
	purposes := []Purpose{
		{}, {Collective: Barrier}, {Collective: Allreduce, Bytes: 64}, {Collective: Broadcast, Bytes: 64 << 20},
		{Collective: Gather, Bytes: 4096}, {Collective: AllToAll},
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := planners[rapid.SampledFrom(names).Draw(rt, "fabric")]
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		req := usual(randomGroup(rng, p.graph, 8))
		view, load := damage(t, rng, p.graph, &req)
		req.Purpose = rapid.SampledFrom(purposes).Draw(rt, "purpose")
		plan, err := p.Plan(view, load, req)
		if err != nil {
			return
		}
		checkPlan(t, view, load, req, &plan)
		if again, err := p.Plan(view, load, req); err != nil || !reflect.DeepEqual(plan, again) {
			rt.Fatalf("two answers:\n%+v\n%+v, %v", plan, again, err)
		}
		a := p.ask(view, load, &req)
		asks := req
		asks.Criterion = a.need
		best, err := p.Plan(view, load, asks)
		if err != nil {
			return // by bandwidth alone, links that are left out may be those that children limits need
		}
		if !plan.Default || plan.Criterion != LeastLoad || best.Default {
			rt.Fatalf("%s\nby the need: %s", plan.Reason, best.Reason)
		}
		got, want := &candidate{tree: plan.Tree, figures: plan.Figures}, &candidate{tree: best.Tree, figures: best.Figures}
		exact := best.Exact || a.need != FewestHops || a.everyPiece() // else the need is of shortest paths alone
		if exact && !p.bears(a, got, want) {
			rt.Fatalf("%v: %v, by the need %v\n%s\n%s", req.Words(), p.takes(a, got), p.takes(a, want), plan.Reason, best.Reason)
		}
		if exact && a.need != WidestLink && plan.Figures.Price > best.Figures.Price {
			rt.Fatalf("a price of %g, by the need %g\n%s\n%s", plan.Figures.Price, best.Figures.Price, plan.Reason, best.Reason)
		}
	})
}

// TestDefaultPassesOver has the cheapest tree lead a long way round: a group of long
// vectors takes it, one of short vectors or of barriers does not and says why.
func TestDefaultPassesOver(t *testing.T) {
	g, err := topology.Read(strings.NewReader(`version: 1
hosts: [a, b]
switches: [{name: left}, {name: right}, {name: far}]
links: [{between: [a, left]}, {between: [b, right]}, {between: [left, right]}, {between: [left, far], latency: 20us}, {between: [far, right], latency: 20us}]
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	p, load := planner(t, g), NewLoad(g)
	req := usual(g.AllHosts())
	req.Criterion = FewestHops
	for range 3 {
		plan, err := p.Plan(g.View(), load, req)
		if err != nil {
			t.Fatal(err)
		}
		load.Add(plan.Tree, 0)
	}
	for _, test := range []struct {
		purpose Purpose
		hops    int
	}{
		{Purpose{Collective: Barrier}, 3}, {Purpose{Collective: Allreduce, Bytes: 64}, 3}, {Purpose{Collective: Gather, Bytes: 64}, 3},
		{Purpose{Collective: Allreduce, Bytes: 64 << 20}, 4}, {Purpose{Criterion: LeastLoad}, 4}, {Purpose{Criterion: FewestHops}, 3},
	} {
		req.Purpose = test.purpose
		plan, err := p.Plan(g.View(), load, req)
		if err != nil || plan.Figures.Hops != test.hops {
			t.Errorf("%s: %d hops, want %d: %s, %v", test.purpose.Words(), plan.Figures.Hops, test.hops, plan.Reason, err)
		}
		if test.hops == 3 && test.purpose.byDefault() && (len(plan.Rivals) == 0 || plan.Rivals[0].Figures.Price >= plan.Figures.Price) {
			t.Errorf("%s: the cheaper tree is not named: %s", test.purpose.Words(), plan.Reason)
		}
	}
}

// TestSpeedsArePrices balances groups over spines of different speeds: each has trees in
// proportion to its own, one at line rate has no CPU that could be dear, and one of
// which nothing is known counts as the median.
func TestSpeedsArePrices(t *testing.T) {
	g := fabric(t, "leaf-spine:4,8,4")
	p, load := planner(t, g), NewLoad(g)
	var spines []topology.NodeID
	for _, name := range []string{"spine-0", "spine-1", "spine-2", "spine-3"} {
		spines = append(spines, node(t, g, name))
	}
	view := paced(t, g, func(n topology.NodeID) topology.Speed {
		switch n {
		case spines[0]:
			return topology.Speed{Bytes: 1e9}
		case spines[1]:
			return topology.Speed{Bytes: topology.LineRate}
		case spines[2]:
			return topology.Speed{}
		}
		return topology.Speed{Bytes: 4e9}
	})
	if a := p.ask(view, load, &Request{Members: g.AllHosts()}); a.volumes[g.SwitchIndex(spines[0])] != 4 || a.volumes[g.SwitchIndex(spines[1])] != 0 || a.volumes[g.SwitchIndex(spines[2])] != 1 {
		t.Fatalf("volumes %v", a.volumes)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		req := usual(randomGroup(rng, g, 6))
		req.Criterion, req.Slots = LeastLoad, 0
		plan, err := p.Plan(view, load, req)
		if err != nil {
			t.Fatal(err)
		}
		load.Add(plan.Tree, 0)
	}
	var trees [4]int
	for i, n := range spines {
		trees[i] = load.SwitchTrees(n)
	}
	if trees[0] == 0 || 2*trees[0] > trees[3] || trees[1] < trees[2] {
		t.Errorf("trees on a spine of a fourth of the speed, at line rate, of unknown and of usual speed: %v", trees)
	}
}
