package steiner

import (
	"errors"
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
)

// ErrTree says that edges are not a tree as a problem wants it.
var ErrTree = errors.New("not a Steiner tree of the problem")

// Check returns an error that wraps ErrTree and names what is wrong if edges
// are not, in any order, a tree that spans the terminals, over edges of finite
// cost, within the limits and without a leaf that is no terminal. It is written
// apart from what makes trees.
func Check(p Problem, edges []int32) error {
	ends := p.Graph.Ends()
	degree := make([]int32, p.Graph.Nodes())
	joined := disjoint.New(p.Graph.Nodes())
	for _, e := range edges {
		if e < 0 || int(e) >= len(ends) {
			return fmt.Errorf("%w: no edge %d", ErrTree, e)
		}
		if math.IsInf(p.Cost[e], 1) {
			return fmt.Errorf("%w: edge %d is forbidden", ErrTree, e)
		}
		u, v := ends[e][0], ends[e][1]
		if !joined.Join(u, v) {
			return fmt.Errorf("%w: edge %d closes a circle", ErrTree, e)
		}
		degree[u]++
		degree[v]++
	}
	terminal := make([]bool, len(degree))
	for _, t := range p.Terminals {
		terminal[t] = true
		if joined.Find(t) != joined.Find(p.Terminals[0]) {
			return fmt.Errorf("%w: terminals %d and %d are apart", ErrTree, p.Terminals[0], t)
		}
	}
	return checkNodes(&p, degree, terminal, joined)
}

func checkNodes(p *Problem, degree []int32, terminal []bool, joined disjoint.Sets) error {
	for i, d := range degree {
		v := int32(i)
		switch {
		case d > p.limit(v):
			return fmt.Errorf("%w: node %d has %d edges, its limit is %d", ErrTree, v, d, p.limit(v))
		case d == 1 && !terminal[v]:
			return fmt.Errorf("%w: node %d is a leaf and no terminal", ErrTree, v)
		case d > 0 && joined.Find(v) != joined.Find(p.Terminals[0]):
			return fmt.Errorf("%w: node %d is apart", ErrTree, v)
		}
	}
	return nil
}
