package gap

import (
	"fmt"
	"math/rand/v2"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
)

// A Case is one problem of the table.
type Case struct {
	// Name has the family and the numbers: sparse/m=2000/t=250/0.
	Name    string
	Problem steiner.Problem
	// Floor is what every tree costs at least, where that is known
	// beforehand: the published optimum of an instance. 0 where it is not.
	Floor float64
}

// The grids are gridWidth by gridHeight; the sparse graphs have as many nodes.
const (
	gridWidth  = 40
	gridHeight = 25
	nodes      = gridWidth * gridHeight
	seeds      = 2
)

// Cases returns the table's problems, always the same. None has a floor.
func Cases() []Case {
	var all []Case
	add := func(name string, p steiner.Problem) {
		all = append(all, Case{Name: name, Problem: p})
	}
	for _, edges := range []int{1250, 2000, 5000} {
		for _, terminals := range []int{10, 100, 250, 500} {
			for seed := range seeds {
				add(fmt.Sprintf("sparse/m=%d/t=%d/%d", edges, terminals, seed), sparse(edges, terminals, uint64(seed)))
			}
		}
	}
	for _, most := range []int{1, 10, 100} {
		for _, terminals := range []int{10, 50, 100, 250, 500} {
			for seed := range seeds {
				add(fmt.Sprintf("grid/c=%d/t=%d/%d", most, terminals, seed), grid(most, terminals, uint64(seed)))
			}
		}
	}
	return all
}

// sparse returns a random tree with random edges more, of costs 1 to 10.
func sparse(edges, terminals int, seed uint64) steiner.Problem {
	r := rand.New(rand.NewPCG(seed, uint64(edges)<<32|uint64(terminals)))
	return drawn(r, nodes, connected(r, nodes, edges), terminals, func() float64 { return float64(1 + r.IntN(10)) })
}

// grid returns a grid with costs of 1 to most.
func grid(most, terminals int, seed uint64) steiner.Problem {
	r := rand.New(rand.NewPCG(seed, uint64(most)<<32|uint64(terminals)))
	var ends [][2]int32
	for v := range int32(nodes) {
		if v%gridWidth < gridWidth-1 {
			ends = append(ends, [2]int32{v, v + 1})
		}
		if v+gridWidth < nodes {
			ends = append(ends, [2]int32{v, v + gridWidth})
		}
	}
	return drawn(r, nodes, ends, terminals, func() float64 { return float64(1 + r.IntN(most)) })
}
