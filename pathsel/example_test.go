package pathsel_test

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// A second group of the same members has its root elsewhere.
func ExamplePlanner_Plan() {
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		panic(err)
	}
	planner, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		panic(err)
	}
	req := pathsel.Request{
		Members:   []topology.NodeID{0, 1, 2, 3},
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32),
		Slots: 128, ChunkBytes: 1432,
	}
	load := pathsel.NewLoad(g)
	for range 2 {
		plan, err := planner.Plan(g.View(), load, req)
		if err != nil {
			panic(err)
		}
		fmt.Print(plan.Tree.Text(g))
		load.Add(plan.Tree, req.Slots)
	}
	// Output:
	// spine-0 (root)
	//   leaf-0: h0 (rank 0), h1 (rank 1)
	//   leaf-1: h2 (rank 2), h3 (rank 3)
	// spine-1 (root)
	//   leaf-0: h0 (rank 0), h1 (rank 1)
	//   leaf-1: h2 (rank 2), h3 (rank 3)
}

func ExampleRefusal() {
	g, err := topology.LeafSpine(2, 2, 1)
	if err != nil {
		panic(err)
	}
	planner, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		panic(err)
	}
	_, err = planner.Plan(g.View(), nil, pathsel.Request{Members: []topology.NodeID{0, 1, 2, 3}, Slots: 1 << 20})
	var refusal *pathsel.Refusal
	if errors.As(err, &refusal) {
		fmt.Println("short of", refusal.Resource, "on", g.Name(refusal.Switch))
	}
	fmt.Println(err)
	// Output:
	// short of slots on leaf-0
	// plan tree: no tree: rank 0 (h0): switch leaf-0 has 32768 of its 32768 slots free, 1048576 are needed
}

// A group that asks for nothing is balanced, within what the collective and the size
// need, and the plan says what the tree costs by every criterion.
func ExamplePlanner() {
	g, err := topology.LeafSpine(2, 3, 2)
	if err != nil {
		panic(err)
	}
	planner, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		panic(err)
	}
	req := pathsel.Request{
		Members:   []topology.NodeID{0, 3, 4},
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32),
		Slots: 128, ChunkBytes: 1432,
		Purpose: pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 64 << 20},
	}
	plan, err := planner.Plan(g.View(), nil, req)
	if err != nil {
		panic(err)
	}
	fmt.Println("by", plan.Criterion, "since", plan.Because)
	fmt.Println(plan.Figures.Hops, "hops, depth", plan.Figures.Depth, "by", plan.Method, "exact:", plan.Exact)
	fmt.Println("switches", plan.Forecast.Switches, "hosts", plan.Forecast.Hosts)

	// The root dies: what still holds is kept.
	o, err := topology.NewOverlay(g).With(topology.NodeState(plan.Tree.Root(), false))
	if err != nil {
		panic(err)
	}
	repaired, err := planner.Repair(o.View(), nil, req, plan.Tree)
	if err != nil {
		panic(err)
	}
	fresh, err := planner.Plan(o.View(), nil, req)
	if err != nil {
		panic(err)
	}
	fmt.Println(repaired.Against(fresh))
	// Output:
	// by load since nothing else was asked for, within 1.1 of the time over the tree by bandwidth, as 67108864 bytes take longer on a link than on their way (from 218749 bytes)
	// 6 hops, depth 2 by levels exact: true
	// switches 15.465038ms hosts 37.660963ms
	// 3 links added, 3 links lost, 0 links dropped; as good as a fresh plan
}
