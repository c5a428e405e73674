package steiner

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
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

// sound fails if l's tree is not one of g, or its order is wrong.
func sound(t *rapid.T, l *local) {
	g, tree := l.g, l.t
	if !g.spans(tree.edges) || !g.within(tree.edges) || len(g.prune(append([]int32(nil), tree.edges...))) != len(tree.edges) {
		t.Fatalf("edges %v are no tree within the limits without useless leaves", tree.edges)
	}
	if len(tree.order) != len(tree.edges)+1 {
		t.Fatalf("%d nodes and %d edges", len(tree.order), len(tree.edges))
	}
	for i, v := range tree.order {
		if int(tree.at[v]) != i {
			t.Fatalf("node %d is not at %d", v, tree.at[v])
		}
		for j, w := range tree.order {
			x := w
			for x >= 0 && x != v {
				x = tree.parent[x]
			}
			if below := j >= i && j < int(tree.end[v]); below != (x == v) {
				t.Fatalf("the subtree of %d ends at %d: node %d at %d", v, tree.end[v], w, j)
			}
		}
	}
}

func TestMovesNeverWorsen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, edges := raw(t)
		l := newLocal(g)
		l.eps = 1e-9
		l.t.build(edges)
		sound(t, l)
		moves := map[string]func() bool{"insert": l.insertAll, "exchange": l.exchangeAll, "eliminate": l.eliminateAll}
		for range 4 {
			name := rapid.SampledFrom([]string{"insert", "exchange", "eliminate"}).Draw(t, "move")
			before := g.sum(l.t.edges)
			better := moves[name]()
			sound(t, l)
			if after := g.sum(l.t.edges); better != (after < before) || after > before {
				t.Fatalf("%s says %v, from %v to %v", name, better, before, after)
			}
		}
	})
}

// Where nothing else helps either, no key path can be exchanged: the search
// from the smaller side finds what a trial of all pairs of nodes finds.
func TestExchangeFindsTheShortest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, edges := raw(t)
		l := newLocal(g)
		l.t.build(edges)
		l.run()
		for _, v := range l.t.order {
			if l.t.parent[v] < 0 || !l.t.key(v) {
				continue
			}
			above, last := l.t.keyAbove(v)
			l.lower = append(l.lower[:0], v)
			saved := l.takeAway(above, last)
			length, edge, _ := l.search(l.joined.root(1), math.Inf(1))
			if edge >= 0 && length < saved-l.eps {
				t.Fatalf("a path of %v replaces one of %v", length, saved)
			}
			for _, w := range l.moved {
				l.delta[w] = 0
			}
		}
	})
}

func TestReductionsKeepTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t, 20, 7, rapid.SampledFrom([][]int32{nil, {0, 1, Unlimited, Unlimited}}).Draw(t, "limits"))
		want, err := Exact(p)
		if err != nil {
			t.Skip("no tree")
		}
		g, err := newNet(&p, &meter{budget: math.MaxInt64}, true)
		if err != nil {
			t.Fatal(err)
		}
		edges, ok := g.exact()
		if !ok || !near(g.base+g.sum(edges), want.Cost) {
			t.Fatalf("the reduced problem costs %v, not %v", g.base+g.sum(edges), want.Cost)
		}
		if err := Check(p, g.expand(edges)); err != nil {
			t.Fatal(err)
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
		edges, _ := g.exact()
		optimum := g.sum(edges)
		a := newAscent(g)
		a.run(rapid.SampledFrom(g.terms).Draw(t, "root"), true)
		if a.bound > optimum+1e-9 {
			t.Fatalf("the bound %v is above the optimum %v", a.bound, optimum)
		}
		kept, _ := a.useful(optimum + 1)
		h, err := g.keep(kept)
		if err != nil {
			t.Fatal(err)
		}
		if edges, ok := h.exact(); !ok || !near(h.base+h.sum(edges), g.base+optimum) {
			t.Fatalf("%v is left, the optimum is %v", h.base+h.sum(edges), g.base+optimum)
		}
	})
}
