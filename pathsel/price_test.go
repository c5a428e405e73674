package pathsel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// place plans groups of random hosts one after another by the load, and returns
// them and what they reserve.
func place(t testing.TB, p *Planner, load *Load, rng *rand.Rand, groups, size int) (all [][]topology.NodeID, slots []int) {
	t.Helper()
	g := p.graph
	for range groups {
		var members []topology.NodeID
		for _, h := range rng.Perm(g.Hosts())[:size] {
			members = append(members, topology.NodeID(h))
		}
		req := usual(members)
		req.Criterion, req.Slots = LeastLoad, 8<<rng.IntN(4)
		plan, err := p.Plan(g.View(), load, req)
		if err != nil {
			t.Fatal(err)
		}
		load.Add(plan.Tree, req.Slots)
		all, slots = append(all, members), append(slots, req.Slots)
	}
	return all, slots
}

// TestManyGroupsStayWithinTheBounds holds the most loaded resources against
// what any placement must load.
func TestManyGroupsStayWithinTheBounds(t *testing.T) {
	for _, test := range []struct {
		fabric       string
		groups, size int
		ratio        float64
	}{{"fat-tree:8", 400, 12, 1.15}, {"leaf-spine:4,16,6", 300, 9, 1.15}} {
		e := topology.DefaultEquipment()
		e.Switch.Slots = 1 << 20
		g, err := e.Parse(test.fabric)
		if err != nil {
			t.Fatal(err)
		}
		p, load := planner(t, g), NewLoad(g)
		groups, slots := place(t, p, load, rand.New(rand.NewPCG(81, 82)), test.groups, test.size)
		floor, ok := p.Floors(groups, slots)
		if !ok {
			t.Fatal("no bounds")
		}
		have := load.Peaks()
		for _, x := range []struct {
			what        string
			have, floor []float64
			granule     float64
		}{{"links", have.Links[1:], floor.Links[1:], 1}, {"CPUs", have.CPUs[1:], floor.CPUs[1:], 1}, {"slots", have.Slots[1:], floor.Slots[1:], 64}} {
			most, bound := slices.Max(x.have), slices.Max(x.floor)
			if most < bound || most > math.Max(test.ratio*bound, bound+x.granule) {
				t.Errorf("%s: %v on the most loaded of the %s, the bound is %v", test.fabric, most, x.what, bound)
			}
		}
	}
}

// TestPricesFollowTheLoad holds prices that were kept up against those made
// anew, while trees come and while they go.
func TestPricesFollowTheLoad(t *testing.T) {
	g := fabric(t, "fat-tree:4")
	p, load, rng := planner(t, g), NewLoad(g), rand.New(rand.NewPCG(91, 92))
	load.priced()
	same := func() {
		t.Helper()
		anew := &Load{graph: g, links: load.links, switches: load.switches, slots: load.slots, members: load.members}
		for l := range topology.LinkID(g.Links()) {
			if kept, made := load.linkPrice(g.View(), l), anew.linkPrice(g.View(), l); kept != made || kept <= 0 {
				t.Fatalf("link %d has the price %v, made anew %v", l, kept, made)
			}
			if kept, made := load.detourPrice(g.View(), l), anew.detourPrice(g.View(), l); kept != made {
				t.Fatalf("link %d has the price %v in a detour, made anew %v", l, kept, made)
			}
		}
		for i := range g.Switches() {
			if kept, made := load.switchPrice(g.View(), g.Switch(i), 4, 1), anew.switchPrice(g.View(), g.Switch(i), 4, 1); kept != made {
				t.Fatalf("switch %d has the price %v, made anew %v", i, kept, made)
			}
		}
	}
	var trees []Tree
	for range 60 {
		plan, err := p.Plan(g.View(), load, Request{Members: randomGroup(rng, g, 8), Purpose: Purpose{Criterion: LeastLoad}, Slots: 4})
		if err != nil {
			t.Fatal(err)
		}
		load.Add(plan.Tree, 4)
		trees = append(trees, plan.Tree)
		same()
	}
	for _, tree := range trees {
		load.Remove(tree, 4)
		same()
	}
}
