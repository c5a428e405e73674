package aggregate_test

import (
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/reduce"
)

// A node that succeeded gathers the statuses of two children: one has two
// nodes beneath it, of which one failed; the other was not reached, with all
// three nodes beneath it.
func ExampleStatuses() {
	child := &aggregate.Statuses{}
	child.Succeed()
	child.Fail(aggregate.Failure{Node: "oss7", Nodes: 1, Code: 28, Text: "no space left"})

	node := &aggregate.Statuses{}
	node.Succeed()
	if err := node.Add(0, child.AppendTo(nil)); err != nil {
		fmt.Println(err)
	}
	node.Fail(aggregate.Failure{Node: "oss3", Nodes: 3, Code: 110, Text: "expired"})

	fmt.Println(node.Succeeded(), "succeeded,", node.Failed(), "failed")
	for _, f := range node.Failures() {
		fmt.Printf("%s and %d beneath it: %d, %s\n", f.Node, f.Nodes-1, f.Code, f.Text)
	}
	// Output:
	// 2 succeeded, 4 failed
	// oss3 and 2 beneath it: 110, expired
	// oss7 and 0 beneath it: 28, no space left
}

// Replies keep their sources on the way.
func ExampleParts() {
	child := &aggregate.Parts{}
	child.Put("oss2", []byte("4 objects"))

	node := &aggregate.Parts{}
	node.Put("oss1", []byte("9 objects"))
	if err := node.Add(0, child.AppendTo(nil)); err != nil {
		fmt.Println(err)
	}
	for part := range node.All() {
		fmt.Printf("%s: %s\n", part.Source, part.Body)
	}
	// Output:
	// oss1: 9 objects
	// oss2: 4 objects
}

// Free space is added up, server by server and pool by pool.
func ExampleVector() {
	free, err := aggregate.NewVector(reduce.Sum, reduce.Uint64, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	pools := make([]byte, aggregate.VectorSize(reduce.Sum, reduce.Uint64, 2))
	reduce.Put(pools, []uint64{100, 7})
	_ = free.Put(pools) // its own
	reduce.Put(pools, []uint64{50, 1})
	_ = free.Add(0, pools) // a child's

	sums := make([]uint64, 2)
	reduce.Get(sums, free.Result())
	fmt.Println(sums)
	// Output:
	// [150 8]
}
