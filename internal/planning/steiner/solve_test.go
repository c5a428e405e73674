package steiner

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/check/steinertest"
)

// optimum returns what the cheapest tree costs; false if there is none.
func optimum(p Problem) (float64, bool) {
	return steinertest.Optimum(p.Graph.Nodes(), p.Graph.Ends(), p.Cost, p.Limit, p.Terminals)
}

// The oracle itself is held against the trial of all sets of edges.
func TestExactIsTheCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 12, 6, rapid.SampledFrom([][]int32{nil, {0, 1, Unlimited, Unlimited}}).Draw(t, "limits"))
		want, some := cheapest(p)
		if is, ok := optimum(p); ok != some || some && !near(is, want) {
			t.Fatalf("%v, %v, but the cheapest tree has %v, %v", is, ok, want, some)
		}
	})
}

func TestSolveAgainstExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 25, 8, nil)
		exact, some := optimum(p)
		budget := rapid.SampledFrom([]int64{1, 50, 500, 1 << 20}).Draw(t, "budget")
		tree, err := Solve(p, Options{Budget: budget, Bound: rapid.Bool().Draw(t, "bound")})
		if !some || err != nil {
			if some || !errors.Is(err, ErrDisconnected) {
				t.Fatalf("exact: %v; solve: %v", some, err)
			}
			return
		}
		if err := Check(p, tree.Edges); err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, e := range tree.Edges {
			total += p.Cost[e]
		}
		switch {
		case total != tree.Cost:
			t.Fatalf("a cost of %v, the edges cost %v", tree.Cost, total)
		case tree.Cost < exact && !near(tree.Cost, exact):
			t.Fatalf("%v below the optimum %v", tree.Cost, exact)
		case tree.Bound > exact+1e-9:
			t.Fatalf("the bound %v is above the optimum %v", tree.Bound, exact)
		case budget == 1<<20 && !near(tree.Cost, exact):
			t.Fatalf("%v, the optimum is %v", tree.Cost, exact)
		case tree.Cost > 2*(1-1/float64(max(2, len(p.Terminals))))*exact+1e-9:
			t.Fatalf("%v against %v breaks Mehlhorn's bound", tree.Cost, exact)
		}
	})
}

func TestLimitsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 12, 6, []int32{0, 1, 2, 2, 3, Unlimited, Unlimited})
		want, some := cheapest(p)
		tree, err := Solve(p, Options{Budget: 1 << 16, Bound: true})
		if err != nil {
			if some && !errors.Is(err, ErrNoTree) || !some && !errors.Is(err, ErrNoTree) && !errors.Is(err, ErrDisconnected) {
				t.Fatalf("tree: %v; %v", some, err)
			}
			return
		}
		if err := Check(p, tree.Edges); err != nil {
			t.Fatal(err)
		}
		if tree.Cost < want && !near(tree.Cost, want) || tree.Bound > want+1e-9 {
			t.Fatalf("cost %v, bound %v, optimum %v", tree.Cost, tree.Bound, want)
		}
	})
}

// Where limits bind nothing is promised; this says what is reached.
func TestLimitsRarelyHideATree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	limits := []int32{1, 2, 2, 3, 3, Unlimited}
	there, found, optimal := 0, 0, 0
	for range 400 {
		p := random(r, 8, 13, 4)
		p.Limit = make([]int32, 8)
		for v := range p.Limit {
			p.Limit[v] = limits[r.IntN(len(limits))]
		}
		want, some := cheapest(p)
		if !some {
			continue
		}
		there++
		if tree, err := Solve(p, Options{Budget: 1 << 16}); err == nil {
			found++
			if tree.Cost == want {
				optimal++
			}
		}
	}
	t.Logf("of %d problems that have a tree, one was found for %d, the cheapest for %d", there, found, optimal)
	if found*100 < there*98 || optimal*100 < there*90 {
		t.Errorf("of %d problems that have a tree, one was found for %d, the cheapest for %d", there, found, optimal)
	}
}

// random returns a connected problem of costs 1 to 10.
func random(r *rand.Rand, nodes, edges, terminals int) Problem {
	var ends [][2]int32
	for v := 1; v < nodes; v++ {
		ends = append(ends, [2]int32{int32(r.IntN(v)), int32(v)})
	}
	for len(ends) < edges {
		if u, v := int32(r.IntN(nodes)), int32(r.IntN(nodes)); u != v {
			ends = append(ends, [2]int32{u, v})
		}
	}
	g, err := NewGraph(nodes, ends)
	if err != nil {
		panic(err)
	}
	p := Problem{Graph: g, Cost: make([]float64, edges)}
	for e := range p.Cost {
		p.Cost[e] = float64(1 + r.IntN(10))
	}
	for _, v := range r.Perm(nodes)[:terminals] {
		p.Terminals = append(p.Terminals, int32(v))
	}
	return p
}

// A fabric as pathsel sees it: hosts of one or two links that only end, some
// switches that only forward.
func TestHostsAndForwardingSwitches(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		const leaves, switches, hosts = 20, 40, 60
		p := random(r, switches, 90, 2)
		ends := p.Graph.Ends()
		p.Terminals = p.Terminals[:0]
		p.Limit = make([]int32, switches+hosts)
		for v := range int32(switches) {
			p.Limit[v] = Unlimited
			if v >= leaves && r.IntN(2) == 0 {
				p.Limit[v] = 2
			}
		}
		for h := int32(switches); h < switches+hosts; h++ {
			p.Limit[h] = 1
			for range 1 + r.IntN(2) {
				ends = append(ends, [2]int32{h, int32(r.IntN(leaves))})
				p.Cost = append(p.Cost, 1)
			}
			p.Terminals = append(p.Terminals, h)
		}
		p.Graph, _ = NewGraph(switches+hosts, ends)
		tree, err := Solve(p, Options{Budget: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(p, tree.Edges); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSameProblemSameTree(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5 {
		p := random(r, 200, 400, 60)
		first, err := Solve(p, Options{Budget: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Solve(p, Options{Budget: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(first, again); d != "" {
			t.Error(d)
		}
	}
}

// Only the first tree may take more than the budget.
func TestWorkEndsWithTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		nodes := rapid.IntRange(20, 400).Draw(t, "nodes")
		p := random(r, nodes, nodes*rapid.IntRange(1, 6).Draw(t, "density"), rapid.IntRange(2, 20+nodes/3).Draw(t, "terminals")%nodes+1)
		if rapid.Bool().Draw(t, "equal") {
			for e := range p.Cost {
				p.Cost[e] = 1
			}
		}
		first, err := firstTree(p)
		if err != nil {
			t.Fatal(err)
		}
		budget := int64(math.Exp2(rapid.Float64Range(0, 20).Draw(t, "budget")))
		tree, err := Solve(p, Options{Budget: budget, Bound: rapid.Bool().Draw(t, "bound")})
		if err != nil {
			t.Fatal(err)
		}
		if most := max(budget, first.Work); tree.Work > most {
			t.Fatalf("work %d, the budget is %d, the first tree takes %d", tree.Work, budget, first.Work)
		}
		if tree.Cost > first.Cost || tree.Bound > tree.Cost || Check(p, tree.Edges) != nil {
			t.Fatalf("%v, the first tree costs %v; %v", tree, first.Cost, Check(p, tree.Edges))
		}
	})
}

func TestMoreBudgetIsNoWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 10 {
		p := random(r, 100, 220, 40)
		last := math.Inf(1)
		for _, budget := range []int64{1, 10_000, 100_000, 1_000_000} {
			tree, err := Solve(p, Options{Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			if tree.Cost > last {
				t.Errorf("a budget of %d gives %v, a smaller one %v", budget, tree.Cost, last)
			}
			last = tree.Cost
		}
	}
}

// Of two terminals the tree is a shortest path, and of all nodes a minimum
// spanning tree: gonum knows both.
func TestAgainstGonum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 25, 2, nil)
		view := weighted(&p)
		ends := []int32{p.Terminals[0], p.Terminals[len(p.Terminals)-1]}
		want := path.DijkstraFrom(view.Node(int64(ends[0])), view).WeightTo(int64(ends[1]))
		tree, err := Solve(p, Options{})
		if math.IsInf(want, 1) != errors.Is(err, ErrDisconnected) || err == nil && !near(tree.Cost, want) {
			t.Fatalf("%v, %v; the shortest path has %v", tree, err, want)
		}
		p.Terminals = nil
		for v := range int32(p.Graph.Nodes()) {
			p.Terminals = append(p.Terminals, v)
		}
		if tree, err = Solve(p, Options{}); err != nil {
			return
		}
		kruskal := path.Kruskal(simple.NewWeightedUndirectedGraph(0, math.Inf(1)), view)
		prim := path.Prim(simple.NewWeightedUndirectedGraph(0, math.Inf(1)), view)
		if !near(tree.Cost, kruskal) || !near(tree.Cost, prim) {
			t.Fatalf("%v, Kruskal %v, Prim %v", tree.Cost, kruskal, prim)
		}
	})
}

// weighted returns the problem's graph for gonum's algorithms: of parallel edges the
// cheapest, and none that is forbidden.
func weighted(p *Problem) *simple.WeightedUndirectedGraph {
	g := simple.NewWeightedUndirectedGraph(0, math.Inf(1))
	for v := range int64(p.Graph.Nodes()) {
		g.AddNode(simple.Node(v))
	}
	for e, ends := range p.Graph.Ends() {
		x, y := simple.Node(ends[0]), simple.Node(ends[1])
		if old, ok := g.Weight(x.ID(), y.ID()); !math.IsInf(p.Cost[e], 1) && (!ok || p.Cost[e] < old) {
			g.SetWeightedEdge(simple.WeightedEdge{F: x, T: y, W: p.Cost[e]})
		}
	}
	return g
}

// firstTree returns Mehlhorn's tree without local search, or another where that
// breaks a limit.
func firstTree(p Problem) (*Tree, error) { return Solve(p, Options{Budget: 1}) }

// ascentBound returns the best bound of dual ascents from that many terminals.
func ascentBound(p Problem, roots int) (float64, error) {
	g, err := newNet(&p, &meter{budget: math.MaxInt64}, true)
	if err != nil {
		return 0, err
	}
	best := g.raise(g.base)
	if len(g.terms) == 1 {
		return best, nil
	}
	a := newAscent(g)
	for _, root := range g.terms[:min(roots, len(g.terms))] {
		a.run(root)
		best = max(best, g.raise(g.base+a.bound))
	}
	return best, nil
}

func TestBoundIsBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 25, 8, nil)
		exact, some := optimum(p)
		if !some {
			t.Skip("no tree")
		}
		one, err := ascentBound(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		all, err := ascentBound(p, len(p.Terminals))
		if err != nil || one > all || all > exact+1e-9 {
			t.Fatalf("bounds %v and %v, the optimum is %v; %v", one, all, exact, err)
		}
	})
}

// A terminal that may only be a leaf lies on the cheap way between two others,
// whatever their numbers are.
func TestLeafOnTheWay(t *testing.T) {
	solvers := map[string]func(Problem) (*Tree, error){
		"Mehlhorn": firstTree,
		"Solve":    func(p Problem) (*Tree, error) { return Solve(p, Options{}) },
	}
	for between := range int32(3) {
		one, two := (between+1)%3, (between+2)%3
		g, err := NewGraph(3, [][2]int32{{one, between}, {between, two}, {one, two}})
		if err != nil {
			t.Fatal(err)
		}
		for limit, cost := range map[int32]float64{1: 11, 2: 2, Unlimited: 2} {
			p := Problem{Graph: g, Cost: []float64{1, 1, 10}, Limit: []int32{2, 2, 2}, Terminals: []int32{0, 1, 2}}
			p.Limit[between] = limit
			if is, _ := optimum(p); is != cost {
				t.Errorf("Optimum, limit %d of node %d: %v", limit, between, is)
			}
			for how, solve := range solvers {
				if tree, err := solve(p); err != nil || tree.Cost != cost || Check(p, tree.Edges) != nil {
					t.Errorf("%s, limit %d of node %d: %v, %v", how, limit, between, tree, err)
				}
			}
		}
	}
}
