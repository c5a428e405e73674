package ranktree_test

import (
	"fmt"

	"github.com/tributary-fabric/tributary/ranktree"
)

// A rank of a binomial tree receives from its children, combines their vectors
// with its own in order, and sends to its parent.
func ExampleKNomial() {
	t := ranktree.KNomial(8, 2)
	for rank := range t.Size() {
		parent, ok := t.Parent(rank)
		if !ok {
			fmt.Println(rank, "is the root; children", t.Children(rank))
			continue
		}
		fmt.Println(rank, "has parent", parent, "and children", t.Children(rank))
	}
	// Output:
	// 0 is the root; children [1 2 4]
	// 1 has parent 0 and children []
	// 2 has parent 0 and children [3]
	// 3 has parent 2 and children []
	// 4 has parent 0 and children [5 6]
	// 5 has parent 4 and children []
	// 6 has parent 4 and children [7]
	// 7 has parent 6 and children []
}

func ExampleKAry() {
	t := ranktree.KAry(9, 2)
	fmt.Println(t, "of height", t.Height())
	for _, child := range t.Children(0) {
		lo, hi := t.Subtree(child)
		fmt.Printf("beneath %d: ranks %d to %d\n", child, lo, hi-1)
	}
	// Output:
	// 2-ary tree of 9 of height 3
	// beneath 1: ranks 1 to 4
	// beneath 5: ranks 5 to 8
}

// A broadcast from another root than rank 0 rotates the ranks; children are
// served deepest subtree first.
func ExampleAppendDeepestFirst() {
	t := ranktree.Rotate(ranktree.KNomial(9, 2), 3)
	for _, child := range ranktree.AppendDeepestFirst(nil, t, 3) {
		fmt.Println(child, "has", t.Count(child), "beneath it, the deepest", t.Reach(child), "below")
	}
	// Output:
	// 7 has 4 beneath it, the deepest 2 below
	// 5 has 2 beneath it, the deepest 1 below
	// 2 has 1 beneath it, the deepest 0 below
	// 4 has 1 beneath it, the deepest 0 below
}

func ExampleCompleteKAry() {
	t := ranktree.CompleteKAry(12, 3)
	fmt.Println(t.Children(0), t.Children(3), t.Count(1))
	// Output: [1 2 3] [10 11] 4
}

func ExampleFlat() {
	t := ranktree.Flat(5)
	fmt.Println(t.Children(0), t.Height())
	// Output: [1 2 3 4] 1
}

// Five hosts on three leaf switches under a spine: rank 1, the root, serves its
// neighbour, and the message goes once around the spine.
func ExampleAlongSwitches() {
	up := []int32{-1, 0, 0, 0}   // the spine, and its leaves
	at := []int32{1, 1, 2, 3, 3} // the leaf of each host
	t, err := ranktree.AlongSwitches(up, at, 1, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for rank := range t.Size() {
		fmt.Println(rank, "sends to", t.AppendChildren(nil, rank))
	}
	// Output:
	// 0 sends to []
	// 1 sends to [0 2]
	// 2 sends to [3]
	// 3 sends to [4]
	// 4 sends to []
}
