package pathsel

import (
	"math/rand/v2"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// redrawn returns g without what is not up in view, its hosts and switches in
// another order.
func redrawn(t testing.TB, rng *rand.Rand, view topology.View) *topology.Graph {
	t.Helper()
	var b topology.Builder
	g, refs := view.Graph(), map[topology.NodeID]topology.Ref{}
	for _, i := range rng.Perm(g.Nodes()) {
		n := topology.NodeID(i)
		if !view.NodeUp(n) {
			continue
		}
		var err error
		if g.IsHost(n) {
			refs[n], err = b.AddHost(g.Name(n))
		} else {
			refs[n], err = b.AddSwitch(g.Name(n), g.Capability(n))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range rng.Perm(g.Links()) {
		l := topology.LinkID(i)
		if ends := g.Link(l).Ends; view.Usable(l) {
			if _, err := b.Connect(refs[ends[1].Node], ends[1].Port, refs[ends[0].Node], ends[0].Port, g.Link(l).LinkSpec); err != nil {
				t.Fatal(err)
			}
		}
	}
	next, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestRepairInAnotherGraph takes away what trees are on, instead of having it go
// down: the tree in the numbers of the new graph is whole if nothing of it went, and
// else the plan keeps what is left of it.
func TestRepairInAnotherGraph(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	repaired := 0
	for range 300 {
		g := irregular(t, rng, 8+rng.IntN(30))
		p, req := planner(t, g), usual(randomGroup(rng, g, 10))
		req.Forward = rng.IntN(4) == 0
		first, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		var changes []topology.Change
		if rng.IntN(4) > 0 {
			changes = breaks(rng, first.Tree)
		}
		view := changed(t, g, changes...)
		next := redrawn(t, rng, view)
		m := topology.NewMapping(g, next)
		old, whole := first.Renumbered(m)
		if stands := first.Tree.Validate(view) == nil; whole != stands || whole != (old.Tree.Validate(next.View()) == nil) {
			t.Fatalf("whole: %v; the tree stands: %v; in the new graph: %v", whole, stands, old.Tree.Validate(next.View()))
		}
		if back, _ := old.Tree.Renumbered(m.Inverse()); whole && back.Text(g) != first.Tree.Text(g) {
			t.Fatalf("there and back it is\n%s and was\n%s", back.Text(g), first.Tree.Text(g))
		}
		for i := range req.Members {
			req.Members[i], _ = m.At(req.Members[i])
		}
		fixed, err := planner(t, next).Repair(next.View(), nil, req, old.Tree)
		if err != nil {
			continue
		}
		if err := fixed.Tree.Validate(next.View()); err != nil {
			t.Fatal(err)
		}
		req.Old = old.Tree
		if plan, err := planner(t, next).Plan(next.View(), nil, req); err != nil || plan.Tree.Validate(next.View()) != nil {
			t.Fatalf("%+v, %v", plan, err)
		}
		if fixed.Fresh {
			continue
		}
		repaired++
		has, kept, gone := map[topology.LinkID]bool{}, 0, 0
		for l := range fixed.Tree.Links() {
			has[l] = true
		}
		for l := range old.Tree.Links() {
			if has[l] {
				kept++
			}
		}
		for l := range first.Tree.Links() {
			if _, ok := m.Link(l); !ok {
				gone++
			}
		}
		if kept+gone+len(fixed.Dropped) != first.Tree.Hops() || len(fixed.Lost) != gone || kept+len(fixed.Added) != fixed.Tree.Hops() {
			t.Fatalf("of %d links %d are kept and %d gone; %d added, %d lost, %d dropped, now %d", first.Tree.Hops(), kept, gone,
				len(fixed.Added), len(fixed.Lost), len(fixed.Dropped), fixed.Tree.Hops())
		}
	}
	if repaired < 50 {
		t.Errorf("only %d trees were repaired", repaired)
	}
}
