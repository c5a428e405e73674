package steiner

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/check/steinertest"
)

// raw returns the net of a random problem, and a tree of it that leaves room
// for the moves.
func raw(t *rapid.T) (g *net, edges []int32) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	nodes := rapid.IntRange(4, 40).Draw(t, "nodes")
	p := random(r, nodes, nodes+rapid.IntRange(0, 2*nodes).Draw(t, "more"), rapid.IntRange(2, nodes).Draw(t, "terminals"))
	if rapid.Bool().Draw(t, "equal") {
		for e := range p.Cost {
			p.Cost[e] = 1
		}
	}
	if rapid.Bool().Draw(t, "free") { // some edges cost nothing
		for e := range p.Cost {
			p.Cost[e] *= float64(r.IntN(2))
		}
	}
	if rapid.Bool().Draw(t, "limited") {
		p.Limit = make([]int32, nodes)
		for v := range p.Limit {
			p.Limit[v] = []int32{2, 3, 4, Unlimited}[r.IntN(4)]
		}
	}
	g, err := newNet(&p, &meter{budget: math.MaxInt64}, false)
	if err != nil {
		t.Skip("apart")
	}
	for _, start := range g.terms {
		if edges, ok := newGrower(g).grow(start, g.cost, nil); ok && len(edges) > 0 {
			return g, edges
		}
	}
	t.Skip("no tree")
	return nil, nil
}

// valid fails if l's tree is not one of g, or what it knows of itself is wrong.
func valid(t *rapid.T, l *local) {
	g, tree := l.g, l.t
	edges := tree.edges(nil)
	if !g.spans(edges) || !g.within(edges) || len(g.prune(slices.Clone(edges))) != len(edges) {
		t.Fatalf("edges %v are no tree within the limits without useless leaves", edges)
	}
	if len(tree.nodes) != len(edges)+1 || !g.term[tree.root] || tree.parent[tree.root] != -1 {
		t.Fatalf("%d nodes and %d edges, the root is %d", len(tree.nodes), len(edges), tree.root)
	}
	degree := make([]int32, g.nodes())
	for _, e := range edges {
		degree[g.ends[e][0]]++
		degree[g.ends[e][1]]++
	}
	if !slices.Equal(degree, tree.degree) {
		t.Fatalf("degrees %v, not %v", tree.degree, degree)
	}
	children := 0
	for i, v := range tree.nodes {
		if int(tree.place[v]) != i || !tree.on(v) {
			t.Fatalf("node %d is at %d, not at %d", v, tree.place[v], i)
		}
		for c, before := tree.child[v], int32(-1); c >= 0; c, before = tree.next[c], c {
			if tree.parent[c] != v || tree.prev[c] != before || g.other(tree.up[c], c) != v {
				t.Fatalf("node %d is a child of %d after %d", c, v, before)
			}
			children++
		}
	}
	if children != len(edges) {
		t.Fatalf("%d children and %d edges", children, len(edges))
	}
}

func TestMovesNeverWorsen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, edges := raw(t)
		l := newLocal(g)
		l.least = 1e-9
		l.t.build(edges)
		valid(t, l)
		moves := map[string]func() bool{"insert": l.insertAll, "exchange": l.exchangeAll, "eliminate": l.eliminateAll}
		for range 4 {
			name := rapid.SampledFrom([]string{"insert", "exchange", "eliminate"}).Draw(t, "move")
			before := l.total()
			better := moves[name]()
			valid(t, l)
			if after := l.total(); better != (after < before) || after > before {
				t.Fatalf("%s says %v, from %v to %v", name, better, before, after)
			}
		}
	})
}

// TestJumpsKeepATree makes the moves of the annealing, which may cost something.
func TestJumpsKeepATree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, edges := raw(t)
		s := newSolver(g, rapid.Uint64().Draw(t, "chance"))
		l := s.local
		l.rng = s.rng
		l.t.build(edges)
		for range 100 {
			before, least := l.total(), -10*s.rng.ExpFloat64()
			moved := s.jump(least)
			valid(t, l)
			if after := l.total(); moved && (!near(before-l.gain, after) || l.gain <= least) || !moved && after != before {
				t.Fatalf("moved: %v, a gain of %v, more than %v, from %v to %v", moved, l.gain, least, before, after)
			}
		}
	})
}

// After a local search no key path can be exchanged: the search from the smaller
// side finds what one from the larger side finds.
func TestExchangeFindsTheShortest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, edges := raw(t)
		l := newLocal(g)
		l.t.build(edges)
		l.run()
		for _, v := range l.t.nodes {
			if l.t.parent[v] < 0 || !l.t.key(v) {
				continue
			}
			l.begin()
			saved, above := l.cost[l.t.up[v]], l.t.parent[v]
			for ; !l.t.key(above); above = l.t.parent[above] {
				saved += l.take(above)
			}
			l.leave(above)
			l.leave(v)
			l.joined = append(l.joined[:0], 0, 1)
			for i, top := range l.tops { // all of both sides
				l.mark[top], l.part[top], l.big = l.now, int32(i), 0
			}
			for i := range l.pieces {
				for p := &l.pieces[i]; p.seen < len(p.nodes); {
					l.expand(int32(i), p)
				}
			}
			if len(l.pieces[0].nodes)+len(l.pieces[1].nodes)+len(l.taken) != len(l.t.nodes) {
				t.Fatalf("%d and %d nodes of %d", len(l.pieces[0].nodes), len(l.pieces[1].nodes), len(l.t.nodes))
			}
			for from := range int32(2) {
				if length, edge, _ := l.search(from, math.Inf(1)); edge >= 0 && length < saved-l.least {
					t.Fatalf("a path of %v replaces one of %v", length, saved)
				}
			}
			for _, w := range l.moved {
				l.delta[w] = 0
			}
		}
	})
}

// optimum returns what the cheapest tree of the net costs; false if there is none.
func (g *net) optimum() (float64, bool) {
	if len(g.terms) == 1 {
		return 0, true
	}
	return steinertest.Optimum(g.nodes(), g.ends, g.cost, g.limit, g.terms)
}

func TestReductionsKeepTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 20, 7, rapid.SampledFrom([][]int32{nil, {0, 1, Unlimited, Unlimited}}).Draw(t, "limits"))
		want, some := optimum(p)
		if !some {
			t.Skip("no tree")
		}
		g, err := newNet(&p, &meter{budget: math.MaxInt64}, true)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := g.optimum(); !ok || !near(g.base+is, want) {
			t.Fatalf("the reduced problem costs %v, not %v", g.base+is, want)
		}
		if edges, ok := g.mehlhorn(); ok && Check(p, g.expand(edges)) != nil {
			t.Fatal(Check(p, g.expand(edges)))
		}
	})
}

// What a dual ascent says no better tree can use is not on any better tree.
func TestNarrowingKeepsBetterTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 25, 7, nil)
		g, err := newNet(&p, &meter{budget: math.MaxInt64}, true)
		if err != nil || len(g.terms) == 1 {
			t.Skip("nothing to choose")
		}
		optimum, _ := g.optimum()
		a := newAscent(g)
		a.run(rapid.SampledFrom(g.terms).Draw(t, "root"))
		if a.bound > optimum+1e-9 {
			t.Fatalf("the bound %v is above the optimum %v", a.bound, optimum)
		}
		kept, _ := a.useful(optimum + 1)
		h, err := g.keep(kept)
		if err != nil {
			t.Fatal(err)
		}
		if is, ok := h.optimum(); !ok || !near(h.base+is, g.base+optimum) {
			t.Fatalf("%v is left, the optimum is %v", h.base+is, g.base+optimum)
		}
	})
}
