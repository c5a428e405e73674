package pathsel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

// breaks takes one to three links or switches of a tree down.
func breaks(rng *rand.Rand, tree Tree) []topology.Change {
	var changes []topology.Change
	for range 1 + rng.IntN(3) {
		v := tree.Vertices[rng.IntN(len(tree.Vertices))]
		switch {
		case rng.IntN(2) == 0:
			changes = append(changes, topology.NodeState(v.Switch, false))
		case v.Up != topology.NoLink:
			changes = append(changes, topology.LinkState(v.Up, false))
		default:
			changes = append(changes, topology.LinkState(tree.Leaves[rng.IntN(len(tree.Leaves))].Link, false))
		}
	}
	return changes
}

// TestRepairTouchesNothingElse breaks trees and holds the repaired ones against
// all that a tree must be, and against what could have stayed.
func TestRepairTouchesNothingElse(t *testing.T) {
	planners := map[string]*Planner{}
	names := append([]string{"fat-tree:8", "leaf-spine:3,8,4"}, smallFabrics...)
	for _, name := range names {
		planners[name] = planner(t, smallFabric(t, name))
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := planners[rapid.SampledFrom(names).Draw(rt, "fabric")]
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		req := usual(randomGroup(rng, p.graph, 24))
		plan, err := p.Plan(p.graph.View(), nil, req)
		if err != nil {
			rt.Fatal(err)
		}
		view := changed(t, p.graph, breaks(rng, plan.Tree)...)
		r, err := p.Repair(view, nil, req, plan.Tree)
		fresh, freshErr := p.Plan(view, nil, req)
		if (err == nil) != (freshErr == nil) {
			rt.Fatalf("repair: %v; plan: %v", err, freshErr)
		}
		if err != nil {
			if !errors.Is(err, ErrNoTree) {
				rt.Fatal(err)
			}
			return
		}
		if err := r.Tree.Validate(view); err != nil {
			rt.Fatal(err)
		}
		checkTree(t, view, nil, req, r.Tree)
		if r.Against(fresh) == "" {
			rt.Fatal("nothing said against a fresh plan")
		}
		if !r.Fresh {
			checkKept(rt, view, plan.Tree, r)
		}
	})
}

// checkKept holds that every link of the old tree that could be used is still
// used, except where it leads to no member: put back, it would be an end.
func checkKept(t *rapid.T, view topology.View, old Tree, r Repaired) {
	g := view.Graph()
	on := map[topology.NodeID]bool{}
	for _, v := range r.Tree.Vertices {
		on[v.Switch] = true
	}
	for _, l := range r.Tree.Leaves {
		on[l.Host] = true
	}
	for _, l := range r.Dropped {
		ends := g.Link(l).Ends
		if on[ends[0].Node] && on[ends[1].Node] {
			t.Fatalf("%s was dropped, and both its ends are on the tree", g.LinkName(l))
		}
	}
	for _, l := range r.Lost {
		if view.Usable(l) {
			t.Fatalf("%s counts as lost, and is up", g.LinkName(l))
		}
	}
	if kept := old.Hops() - len(r.Lost) - len(r.Dropped); kept+len(r.Added) != r.Tree.Hops() {
		t.Fatalf("%d links kept and %d added make %d", kept, len(r.Added), r.Tree.Hops())
	}
}

// TestRepairOfSpine: after the death of the root of a group of all in a fat-tree
// one switch and its links are new, and the tree is as good as a fresh one.
func TestRepairOfSpine(t *testing.T) {
	g := fabric(t, "fat-tree:16")
	p, req := planner(t, g), usual(g.AllHosts())
	plan, err := p.Plan(g.View(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	view := changed(t, g, topology.NodeState(plan.Tree.Root(), false))
	r, err := p.Repair(view, nil, req, plan.Tree)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := p.Plan(view, nil, req)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Added) != 16 || len(r.Lost) != 16 || len(r.Dropped) != 0 || r.Fresh || r.Figures.Cost() != fresh.Figures.Cost() {
		t.Errorf("%s", r.Against(fresh))
	}
}

// TestIndex holds the index against going over all trees.
func TestIndex(t *testing.T) {
	g := fabric(t, "fat-tree:4")
	p, rng, x := planner(t, g), rand.New(rand.NewPCG(31, 32)), NewIndex(g)
	trees := map[uint32]Tree{}
	for id := range uint32(400) {
		if old, ok := trees[id-20]; ok {
			x.Remove(id-20, old)
			delete(trees, id-20)
		}
		plan, err := p.Plan(g.View(), nil, usual(randomGroup(rng, g, 8)))
		if err != nil {
			t.Fatal(err)
		}
		x.Add(id, plan.Tree)
		trees[id] = plan.Tree
		view := changed(t, g, topology.NodeState(topology.NodeID(rng.IntN(g.Nodes())), false),
			topology.LinkState(topology.LinkID(rng.IntN(g.Links())), false))
		down := map[uint32]bool{}
		for _, id := range x.Down(view) {
			down[id] = true
		}
		for id, tree := range trees {
			if broken := tree.Validate(view) != nil; broken != down[id] {
				t.Fatalf("tree %d is broken: %v; the index says %v", id, broken, down[id])
			}
		}
	}
	if len(x.entries) > 30*24 {
		t.Errorf("%d entries of 20 trees: those of removed ones are not used again", len(x.entries))
	}
}

// TestPlanKeepsWhatHolds: Plan returns the old tree repaired where no new one is
// better by more than Keep, and a new one where one is.
func TestPlanKeepsWhatHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	kept, anew := 0, 0
	planners := map[string]*Planner{}
	for _, name := range smallFabrics {
		planners[name] = planner(t, smallFabric(t, name))
	}
	for range 300 {
		p := planners[smallFabrics[rng.IntN(len(smallFabrics))]]
		req := usual(randomGroup(rng, p.graph, 8))
		req.Criterion = Criterion(rng.IntN(int(criteria)))
		first, err := p.Plan(p.graph.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		view := changed(t, p.graph, breaks(rng, first.Tree)...)
		fresh, err := p.Plan(view, nil, req)
		req.Old = first.Tree
		plan, again := p.Plan(view, nil, req)
		if (err == nil) != (again == nil) {
			t.Fatalf("%v without the old tree, %v with it", err, again)
		}
		if err != nil {
			continue
		}
		checkPlan(t, view, nil, req, &plan)
		if p.outdone(&plan.Figures, &fresh.Figures, &plan) {
			t.Fatalf("%+v, a new tree has %+v by %v", plan.Figures, fresh.Figures, plan.Criterion)
		}
		if plan.Method == ByRepair {
			kept++
			if shared(first.Tree, plan.Tree) < shared(first.Tree, fresh.Tree) {
				t.Fatalf("%d links are kept, a new tree has %d", shared(first.Tree, plan.Tree), shared(first.Tree, fresh.Tree))
			}
		} else {
			anew++
		}
	}
	if kept == 0 || anew == 0 {
		t.Errorf("%d trees were repaired, %d not", kept, anew)
	}
}

// irregular returns switches with a host each, joined at random by links of unequal
// latencies.
func irregular(t testing.TB, rng *rand.Rand, switches int) *topology.Graph {
	t.Helper()
	var b topology.Builder
	var all []topology.Ref
	connect := func(x, y topology.Ref, latency time.Duration) {
		if _, err := b.Connect(x, 0, y, 0, topology.LinkSpec{Bandwidth: 100e9, Latency: latency}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range switches {
		s, err := b.AddSwitch(fmt.Sprintf("s%d", i), topology.DefaultCapability())
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.AddHost(fmt.Sprintf("h%d", i))
		if err != nil {
			t.Fatal(err)
		}
		connect(h, s, time.Microsecond)
		for k := range min(i, 1+rng.IntN(3)) {
			other := all[rng.IntN(len(all))]
			if k == 0 {
				other = all[len(all)-1]
			}
			connect(s, other, time.Duration(1+rng.IntN(100))*time.Microsecond)
		}
		all = append(all, s)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestRepairBesideAFreshPlan breaks trees of irregular fabrics: what Plan makes of
// an old tree is behind a new one by no more than Keep, in hops, depth and latency.
// Repair alone may be: it keeps all that stands.
func TestRepairBesideAFreshPlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	var alone, beside [2]float64 // the worst of hops and of latency
	worst := func(w *[2]float64, f, fresh *Figures) {
		w[0] = max(w[0], float64(f.Hops)/float64(fresh.Hops))
		w[1] = max(w[1], float64(f.Latency)/float64(fresh.Latency))
	}
	for range 400 {
		g := irregular(t, rng, 8+rng.IntN(40))
		p, req := planner(t, g), usual(randomGroup(rng, g, 12))
		req.Criterion = []Criterion{FewestHops, LeastLatency}[rng.IntN(2)]
		first, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		view := changed(t, g, breaks(rng, first.Tree)...)
		fresh, err := p.Plan(view, nil, req)
		if err != nil {
			continue
		}
		fixed, err := p.Repair(view, nil, req, first.Tree)
		if err != nil {
			t.Fatal(err)
		}
		req.Old = first.Tree
		plan, err := p.Plan(view, nil, req)
		if err != nil {
			t.Fatal(err)
		}
		worst(&alone, &fixed.Figures, &fresh.Figures)
		worst(&beside, &plan.Figures, &fresh.Figures)
	}
	t.Logf("hops and latency against a fresh plan, at worst: alone %.2f, beside it %.2f", alone, beside)
	if most := 1 + DefaultConfig().Keep; beside[0] > most || beside[1] > most {
		t.Errorf("hops and latency are %.2f of a fresh plan's at worst", beside)
	}
}

// shared counts the links that two trees have in common.
func shared(a, b Tree) (n int) {
	has := map[topology.LinkID]bool{}
	for l := range a.Links() {
		has[l] = true
	}
	for l := range b.Links() {
		if has[l] {
			n++
		}
	}
	return n
}
