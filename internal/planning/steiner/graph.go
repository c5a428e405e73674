package steiner

import "fmt"

// A Graph is an undirected graph in compressed adjacency arrays. Parallel edges
// are allowed, loops are not. Solving never writes to it, so that many problems
// can share one.
type Graph struct {
	// Offset has one more entry than there are nodes: the edges at node v are
	// entries Offset[v] to Offset[v+1]-1 of Neighbor and Edge.
	Offset []int32
	// Neighbor has the other end of each of these edges.
	Neighbor []int32
	// Edge has their numbers. Each number from 0 to Edges()-1 stands twice, at
	// the edge's two ends.
	Edge []int32
}

// NewGraph returns the graph of the given edges, which are numbered in their
// order. At a node its edges ascend. The error wraps ErrProblem.
func NewGraph(nodes int, ends [][2]int32) (*Graph, error) {
	g := &Graph{
		Offset:   make([]int32, nodes+1),
		Neighbor: make([]int32, 2*len(ends)),
		Edge:     make([]int32, 2*len(ends)),
	}
	for e, end := range ends {
		for _, v := range end {
			if v < 0 || int(v) >= nodes {
				return nil, fmt.Errorf("%w: edge %d ends at node %d of %d", ErrProblem, e, v, nodes)
			}
			g.Offset[v+1]++
		}
		if end[0] == end[1] {
			return nil, fmt.Errorf("%w: edge %d is a loop at node %d", ErrProblem, e, end[0])
		}
	}
	for v := range nodes {
		g.Offset[v+1] += g.Offset[v]
	}
	next := append([]int32(nil), g.Offset[:nodes]...)
	for e, end := range ends {
		for i, v := range end {
			g.Neighbor[next[v]], g.Edge[next[v]] = end[1-i], int32(e)
			next[v]++
		}
	}
	return g, nil
}

// Nodes returns the number of nodes.
func (g *Graph) Nodes() int { return max(0, len(g.Offset)-1) }

// Edges returns the number of edges.
func (g *Graph) Edges() int { return len(g.Edge) / 2 }

// Ends returns the two ends of every edge, the smaller first, by edge number.
func (g *Graph) Ends() [][2]int32 {
	ends := make([][2]int32, g.Edges())
	for v := range int32(g.Nodes()) {
		for i := g.Offset[v]; i < g.Offset[v+1]; i++ {
			if w := g.Neighbor[i]; v < w {
				ends[g.Edge[i]] = [2]int32{v, w}
			}
		}
	}
	return ends
}

// Validate returns an error that wraps ErrProblem and names what is wrong with
// the arrays, or nil.
func (g *Graph) Validate() error {
	nodes, half := g.Nodes(), len(g.Neighbor)
	switch {
	case half != len(g.Edge) || half%2 != 0:
		return fmt.Errorf("%w: %d neighbours and %d edge numbers", ErrProblem, half, len(g.Edge))
	case len(g.Offset) > 0 && (g.Offset[0] != 0 || int(g.Offset[nodes]) != half),
		len(g.Offset) == 0 && half > 0:
		return fmt.Errorf("%w: the offsets do not cover the %d entries", ErrProblem, half)
	}
	for v := range nodes {
		if g.Offset[v] > g.Offset[v+1] {
			return fmt.Errorf("%w: the offset falls after node %d", ErrProblem, v)
		}
	}
	return g.validateEdges()
}

// validateEdges checks that every edge stands at two different nodes, each of
// which names the other.
func (g *Graph) validateEdges() error {
	type half struct{ from, to int32 }
	first := make([]half, g.Edges())
	count := make([]int8, g.Edges())
	for v := range int32(g.Nodes()) {
		for i := g.Offset[v]; i < g.Offset[v+1]; i++ {
			w, e := g.Neighbor[i], g.Edge[i]
			switch {
			case w < 0 || int(w) >= g.Nodes() || w == v:
				return fmt.Errorf("%w: node %d has the neighbour %d", ErrProblem, v, w)
			case e < 0 || int(e) >= g.Edges():
				return fmt.Errorf("%w: node %d has the edge %d of %d", ErrProblem, v, e, g.Edges())
			case count[e] == 0:
				first[e] = half{v, w}
			case count[e] != 1 || first[e] != half{w, v}:
				return fmt.Errorf("%w: edge %d does not have two ends that name each other", ErrProblem, e)
			}
			count[e]++
		}
	}
	return nil
}
