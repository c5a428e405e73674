package rpc

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// TestTreeByNames: a tree that was reported by names is found again, over parallel
// links and over switches that forward, and one of another fabric is not.
func TestTreeByNames(t *testing.T) {
	g, err := topology.Parse("four-switches:2")
	if err != nil {
		t.Fatal(err)
	}
	planner, err := pathsel.NewPlanner(g, pathsel.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var req pathsel.Request
	for h := range topology.NodeID(g.Hosts()) {
		req.Members = append(req.Members, h)
	}
	plan, err := planner.Plan(g.View(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	stateOf := func(plan pathsel.Plan, in *topology.Graph) TreeState {
		state := manager.TreeState{Plan: plan}
		var members []string
		for _, v := range plan.Tree.Vertices {
			state.Names = append(state.Names, in.Name(v.Switch))
		}
		for _, l := range plan.Tree.Leaves {
			members = append(members, in.Name(l.Host))
		}
		return newTreeState(state, members, in)
	}
	same := func(tree pathsel.Tree, in *topology.Graph) {
		t.Helper()
		s := stateOf(pathsel.Plan{Tree: tree}, in)
		got, err := s.In(in)
		if diff := cmp.Diff(tree, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	same(plan.Tree, g)

	chain, err := topology.LeafSpine(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if planner, err = pathsel.NewPlanner(chain, pathsel.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	spine, _ := chain.Lookup("spine-0")
	req = pathsel.Request{Members: []topology.NodeID{0, 1, 2, 3}, Idle: []topology.NodeID{spine}, Forward: true}
	if plan, err = planner.Plan(chain.View(), nil, req); err != nil {
		t.Fatal(err)
	}
	if len(plan.Tree.Routes) == 0 {
		t.Error("no edge is forwarded")
	}
	same(plan.Tree, chain)

	for name, spoil := range map[string]func(*TreeState){
		"a host":           func(s *TreeState) { s.Members[0].Host = "nobody" },
		"a switch":         func(s *TreeState) { s.Switches[1].Switch = "nothing" },
		"a link":           func(s *TreeState) { s.Switches[1].Links[1] = s.Switches[1].Links[0] },
		"a switch's links": func(s *TreeState) { s.Switches[1].Links = nil },
		"a member's links": func(s *TreeState) { s.Members[3].Links = nil },
		"the root's links": func(s *TreeState) { s.Switches[0].Links = s.Switches[1].Links },
	} {
		s := stateOf(plan, chain)
		spoil(&s)
		if _, err := s.In(chain); !errors.Is(err, ErrOtherFabric) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
