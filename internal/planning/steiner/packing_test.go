package steiner

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// feasible fails if the cuts of p are not cuts between the root and their
// terminals, take more from an arc than it costs, or do not sum to the bound.
func feasible(t *rapid.T, p *packing) {
	used := make([]float64, len(p.reduced))
	total := 0.0
	for terminal, cuts := range p.cuts {
		for _, c := range cuts {
			if reaches(p.g, p.root, int32(terminal), c.arcs) {
				t.Fatalf("arcs %v do not part %d from the root %d", c.arcs, terminal, p.root)
			}
			for _, arc := range c.arcs {
				used[arc] += c.by
			}
			total += c.by
		}
	}
	for arc, sum := range used {
		if cost := p.g.cost[arc/2]; sum > cost+1e-9 || !near(p.reduced[arc], cost-sum) {
			t.Fatalf("arc %d costs %v, cuts take %v, %v is left", arc, cost, sum, p.reduced[arc])
		}
	}
	if !near(p.bound, total) || !near(p.proven(), total) || p.proven() > total {
		t.Fatalf("the bound is %v, %v is proven, the cuts sum to %v", p.bound, p.proven(), total)
	}
}

// reaches says whether a path leads from root to terminal without the arcs.
func reaches(g *net, root, terminal int32, without []int32) bool {
	seen := make([]bool, g.nodes())
	seen[root] = true
	queue := []int32{root}
	for i := 0; i < len(queue); i++ {
		if v := queue[i]; v == root || g.passable(v) {
			for _, a := range g.at(v) {
				away := 2 * a.edge
				if g.ends[a.edge][1] == v {
					away++
				}
				if !seen[a.to] && !slices.Contains(without, away) {
					seen[a.to] = true
					queue = append(queue, a.to)
				}
			}
		}
	}
	return seen[terminal]
}

func TestPackingIsFeasible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 30, 8, rapid.SampledFrom([][]int32{nil, {0, 1, Unlimited, Unlimited}}).Draw(t, "limits"))
		g, err := newNet(&p, &meter{budget: rapid.SampledFrom([]int64{100, math.MaxInt64}).Draw(t, "budget")}, true)
		if err != nil || len(g.terms) == 1 {
			t.Skip("nothing to choose")
		}
		optimum := math.Inf(1)
		if is, ok := g.optimum(); ok {
			optimum = is
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		k := newPacking(g, rapid.SampledFrom(g.terms).Draw(t, "root"), r)
		feasible(t, k)
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			was := k.bound
			rose := k.improve(4)
			feasible(t, k)
			if k.bound < was && !near(k.bound, was) || rose != (k.bound > was && !near(k.bound, was)) {
				t.Fatalf("from %v to %v, and it says %v", was, k.bound, rose)
			}
		}
		if k.bound > optimum && !near(k.bound, optimum) {
			t.Fatalf("the bound %v is above the optimum %v", k.bound, optimum)
		}
	})
}

// What the steps are for: where costs are equal, one ascent stays far below the
// optimum of a grid, and the steps come near it.
func TestStepsCloseTheGapOfAGrid(t *testing.T) {
	const width, height = 12, 12
	r := rand.New(rand.NewPCG(13, 14))
	var ends [][2]int32
	for v := range int32(width * height) {
		if v%width < width-1 {
			ends = append(ends, [2]int32{v, v + 1})
		}
		if v+width < width*height {
			ends = append(ends, [2]int32{v, v + width})
		}
	}
	graph, err := NewGraph(width*height, ends)
	if err != nil {
		t.Fatal(err)
	}
	once, improved, optimal := 0.0, 0.0, 0.0
	for range 10 {
		p := Problem{Graph: graph, Cost: slices.Repeat([]float64{1}, len(ends))}
		for _, v := range r.Perm(width * height)[:9] {
			p.Terminals = append(p.Terminals, int32(v))
		}
		exact, _ := optimum(p)
		one, err := ascentBound(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		g, err := newNet(&p, &meter{budget: math.MaxInt64}, true)
		if err != nil {
			t.Fatal(err)
		}
		k := newPacking(g, g.terms[0], r)
		for range 400 {
			k.improve(movedAtOnce)
		}
		once, improved, optimal = once+one, improved+g.raise(g.base+k.proven()), optimal+exact
	}
	t.Logf("one ascent %v, steps %v, optimum %v", once, improved, optimal)
	if 4*(optimal-improved) > optimal-once {
		t.Errorf("one ascent gives %v, steps %v, the optimum is %v", once, improved, optimal)
	}
}
