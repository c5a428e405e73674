package spread

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// place plans groups of 2 to most random hosts one after another by the load, and
// returns them, the trees on the most loaded link between switches, and the hops.
func place(t *testing.T, g *topology.Graph, seed uint64, groups, most int) (all [][]topology.NodeID, peak, hops int) {
	t.Helper()
	p, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	load, rng := pathsel.NewLoad(g), rand.New(rand.NewPCG(seed, uint64(groups)))
	for range groups {
		var members []topology.NodeID
		for _, h := range rng.Perm(g.Hosts())[:2+rng.IntN(min(most, g.Hosts())-1)] {
			members = append(members, topology.NodeID(h))
		}
		req := pathsel.Request{
			Members: members, Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32),
			Slots: 16 << rng.IntN(4), ChunkBytes: 1024, Purpose: pathsel.Purpose{Criterion: pathsel.LeastLoad},
		}
		plan, err := p.Plan(g.View(), load, req)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Tree.Validate(g.View()); err != nil {
			t.Fatal(err)
		}
		load.Add(plan.Tree, req.Slots)
		all, hops = append(all, members), hops+plan.Figures.Hops
	}
	for id, link := range g.AllLinks() {
		if g.IsSwitch(link.Ends[0].Node) && g.IsSwitch(link.Ends[1].Node) {
			peak = max(peak, load.LinkTrees(id))
		}
	}
	return all, peak, hops
}

// within reports whether a peak is at most 1.15 of a bound; trees are whole, so
// that the bound is the next whole number. Of ten groups it may be one tree more:
// those that come first are placed without knowing the others.
func within(peak, groups int, bound float64) bool {
	bound = math.Ceil(bound - 1e-9)
	return float64(peak) <= 1.15*bound || groups == 10 && float64(peak) <= bound+1
}

// TestBalanceInLayers holds the most loaded link of regular fabrics against the
// cuts.
func TestBalanceInLayers(t *testing.T) {
	for _, test := range []struct {
		fabric string
		most   int
	}{{"fat-tree:8", 16}, {"fat-tree:16", 32}, {"fat-tree:32", 64}, {"leaf-spine:6,16,4", 12}, {"leaf-spine:16,24,8", 32}} {
		e := topology.DefaultEquipment()
		e.Switch.Slots = 1 << 24
		g, err := e.Parse(test.fabric)
		if err != nil {
			t.Fatal(err)
		}
		p, err := pathsel.NewPlanner(g, pathsel.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, groups := range []int{10, 100, 200, 1000} {
			t.Run(fmt.Sprintf("%s/%d", test.fabric, groups), func(t *testing.T) {
				all, peak, _ := place(t, g, 1, groups, test.most)
				floors, _ := p.Floors(all, make([]int, len(all)))
				bound := 0.0
				for _, x := range floors.Links[1:] {
					bound = max(bound, x)
				}
				if !within(peak, groups, bound) {
					t.Errorf("%d trees on the most loaded link, the cuts say %.2f", peak, bound)
				}
			})
		}
	}
}

// TestBalanceOfIrregularFabrics holds the most loaded link against the linear
// programme over all trees.
func TestBalanceOfIrregularFabrics(t *testing.T) {
	for _, layered := range []bool{true, false} {
		for _, switches := range []int{5, 11, 20, 35, 50} {
			for seed := range uint64(2) {
				g, err := Irregular(seed, switches, layered)
				if err != nil {
					t.Fatal(err)
				}
				for _, groups := range []int{10, 100, 200} {
					t.Run(fmt.Sprintf("%s/%d", g.Fabric(), groups), func(t *testing.T) {
						all, peak, _ := place(t, g, seed, groups, 32)
						r, err := Least(g, all, float64(peak)/1.15, 500)
						if err != nil {
							t.Fatal(err)
						}
						if float64(peak) < r.Least-1e-9 || r.Found < r.Least-1e-9 {
							t.Fatalf("%d trees on the most loaded link, fewer than the bound %+v", peak, r)
						}
						if !within(peak, groups, r.Least) {
							t.Errorf("%d trees on the most loaded link, the linear programme says %.2f to %.2f", peak, r.Least, r.Found)
						}
					})
				}
			}
		}
	}
}

// TestLeast holds the linear programme against cases that can be done by hand:
// groups over two spines in shares, and over a link of their own.
func TestLeast(t *testing.T) {
	g, err := topology.Parse("leaf-spine:1,2,2")
	if err != nil {
		t.Fatal(err)
	}
	everyone := []topology.NodeID{0, 1}
	for groups, want := range []float64{0, 0.5, 1, 1.5, 2} {
		all := make([][]topology.NodeID, groups)
		for i := range all {
			all[i] = everyone
		}
		r, err := Least(g, all, math.Inf(1), 200)
		if err != nil || r.Least > want+1e-9 || r.Found < want-1e-9 || r.Found-r.Least > 0.02 {
			t.Errorf("%d groups: %+v, %v; it is %v", groups, r, err, want)
		}
	}
}

// TestIrregularIsTheSame: the same seed gives the same fabric.
func TestIrregularIsTheSame(t *testing.T) {
	for _, layered := range []bool{true, false} {
		for switches := LeastSwitches; switches <= 50; switches += 7 {
			g, err := Irregular(9, switches, layered)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := Irregular(9, switches, layered)
			if g.Switches() != switches || g.Hosts() < 2 || g.Links() != again.Links() {
				t.Fatalf("%s: %d switches, %d hosts, %d links and %d", g.Fabric(), g.Switches(), g.Hosts(), g.Links(), again.Links())
			}
			for id, link := range g.AllLinks() {
				if link.Ends != again.Link(id).Ends {
					t.Fatalf("%s: link %d differs", g.Fabric(), id)
				}
			}
		}
	}
	if _, err := Irregular(1, LeastSwitches-1, true); err == nil {
		t.Error("too few switches")
	}
}
