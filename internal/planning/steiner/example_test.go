package steiner_test

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
)

// Three hosts, 0 to 2, hang on a ring of switches, 3 to 6; switch 6 cannot
// branch. The cheapest tree of the hosts branches at switch 4.
func Example() {
	g, err := steiner.NewGraph(7, [][2]int32{{0, 3}, {1, 4}, {2, 5}, {3, 4}, {4, 5}, {5, 6}, {6, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	tree, err := steiner.Solve(steiner.Problem{
		Graph:     g,
		Cost:      []float64{1, 1, 1, 2, 2, 1, 4},
		Limit:     []int32{1, 1, 1, steiner.Unlimited, steiner.Unlimited, steiner.Unlimited, 2},
		Terminals: []int32{0, 1, 2},
	}, steiner.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("edges", tree.Edges, "cost", tree.Cost, "bound", tree.Bound)
	// Output:
	// edges [0 1 2 3 4] cost 7 bound 7
}
