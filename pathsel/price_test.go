package pathsel

import (
	"math"
	"math/rand/v2"
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
// what any placement must load, and against the bound that is proven.
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
		proven := 4 * math.Log(2*9*float64(g.Links())) / math.Log(priceBase)
		for layer := 1; layer < g.Layers(); layer++ {
			for _, x := range []struct {
				what          string
				have, floor   float64
				granule, most float64
			}{
				{"links", have.Links[layer], floor.Links[layer], 1, test.ratio},
				{"CPUs", have.CPUs[layer], floor.CPUs[layer], 1, test.ratio},
				{"slots", have.Slots[layer], floor.Slots[layer], 64, test.ratio},
			} {
				if x.have < x.floor || x.have > math.Max(x.most*x.floor, x.floor+x.granule) || x.have > proven*x.floor {
					t.Errorf("%s, layer %d: %v on the most loaded of the %s, the bound is %v", test.fabric, layer, x.have, x.what, x.floor)
				}
			}
		}
	}
}

// TestPricesFollowTheLoad holds prices that were kept up against those made
// anew, and sees that they are the same when all trees have gone but for the
// scale.
func TestPricesFollowTheLoad(t *testing.T) {
	g := fabric(t, "fat-tree:4")
	p, load, rng := planner(t, g), NewLoad(g), rand.New(rand.NewPCG(91, 92))
	var trees []Tree
	for range 60 {
		plan, err := p.Plan(g.View(), load, Request{Members: randomGroup(rng, g, 8), Purpose: Purpose{Criterion: LeastLoad}, Slots: 4})
		if err != nil {
			t.Fatal(err)
		}
		load.Add(plan.Tree, 4)
		trees = append(trees, plan.Tree)
	}
	kept, anew := load.priced(), newPrices(load)
	for l := range kept.at {
		if kept.at[l] != anew.at[l] || kept.at[l] <= 0 {
			t.Fatalf("link %d has the price %v, made anew %v", l, kept.at[l], anew.at[l])
		}
	}
	for i := range kept.cpu {
		if kept.cpu[i] != anew.cpu[i] {
			t.Fatalf("switch %d has the price %v, made anew %v", i, kept.cpu[i], anew.cpu[i])
		}
	}
	for _, tree := range trees {
		load.Remove(tree, 4)
	}
	idle := NewLoad(g)
	idle.priced()
	for l := range kept.at {
		if kept.at[l] > idle.prices.at[l] {
			t.Errorf("idle link %d has the price %v after the trees, %v before", l, kept.at[l], idle.prices.at[l])
		}
	}
}
