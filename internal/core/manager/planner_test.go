package manager

import (
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// TestPlanner: plans come in order, each counts those before it, a later request of
// a group takes the place of one that waits, and what is used sees what was
// requested before it.
func TestPlanner(t *testing.T) {
	g := must(topology.LeafSpine(2, 2, 2))
	p := must(NewPlanner(g, pathsel.DefaultConfig()))
	request := func(group uint32, plan uint64) PlanRequest {
		return PlanRequest{Group: group, Plan: plan, Request: pathsel.Request{
			Members: []topology.NodeID{0, 1, 2, 3}, Slots: 2, ChunkBytes: 64,
		}}
	}
	seen := ""
	look := func(what string) {
		p.Use(func(_ *pathsel.Planner, view topology.View, load *pathsel.Load) {
			trees := 0
			for l := range g.Links() {
				trees += load.LinkTrees(topology.LinkID(l))
			}
			seen += fmt.Sprintf("%s: %d links of trees, up %v; ", what, trees, view.NodeUp(g.Switch(0)))
		})
	}
	look("first")
	p.Put(&Output{Plans: []PlanRequest{request(1, 1), request(2, 2)}})
	p.Put(&Output{Plans: []PlanRequest{request(1, 3)}})
	look("last")
	if !p.Waits() {
		t.Error("no plan waits")
	}
	second, ok := p.Next()
	if !ok || second.Group != 2 || second.Plan != 2 || second.Err != nil {
		t.Fatalf("the first plan is %+v, %v", second, ok)
	}
	third, ok := p.Next()
	if !ok || third.Group != 1 || third.Plan != 3 || third.Err != nil {
		t.Fatalf("the second plan is %+v, %v", third, ok)
	}
	if second.Chosen.Tree.Root() == third.Chosen.Tree.Root() {
		t.Error("the second plan has not counted the first: both have one root")
	}
	if p.Waits() {
		t.Error("a plan waits still")
	}
	if more, ok := p.Next(); ok {
		t.Errorf("a third plan %+v", more)
	}
	overlay := topology.NewOverlay(g)
	next, _, err := overlay.Apply(topology.NodeState(g.Switch(0), false))
	if err != nil {
		t.Fatal(err)
	}
	p.Put(&Output{View: next.View(), Unloads: []pathsel.Tree{second.Chosen.Tree}})
	look("end")
	p.Next()
	if want := "first: 0 links of trees, up true; last: 12 links of trees, up true; end: 6 links of trees, up false; "; seen != want {
		t.Errorf("it saw %q, want %q", seen, want)
	}
}
