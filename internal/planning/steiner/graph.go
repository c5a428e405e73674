package steiner

import "fmt"

// A Graph is an undirected graph. Parallel edges are allowed, loops are not. It
// never changes, so that many problems can share one.
type Graph struct {
	nodes int
	ends  [][2]int32 // by edge, the smaller first
}

// NewGraph returns the graph of the given edges, which are numbered in their
// order. The error wraps ErrProblem.
func NewGraph(nodes int, ends [][2]int32) (*Graph, error) {
	g := &Graph{nodes: nodes, ends: make([][2]int32, len(ends))}
	for e, end := range ends {
		low, high := min(end[0], end[1]), max(end[0], end[1])
		switch {
		case low < 0 || int(high) >= nodes:
			return nil, fmt.Errorf("%w: edge %d joins the nodes %d and %d of %d", ErrProblem, e, end[0], end[1], nodes)
		case low == high:
			return nil, fmt.Errorf("%w: edge %d is a loop at node %d", ErrProblem, e, low)
		}
		g.ends[e] = [2]int32{low, high}
	}
	return g, nil
}

// Nodes returns the number of nodes.
func (g *Graph) Nodes() int { return g.nodes }

// Edges returns the number of edges.
func (g *Graph) Edges() int { return len(g.ends) }

// Ends returns the two ends of every edge, the smaller first, by edge number. The
// caller must not change them.
func (g *Graph) Ends() [][2]int32 { return g.ends }

// neighbors returns the other ends of the edges at every node, node by node, at
// each in the order of the edges.
func (g *Graph) neighbors() []int32 {
	next := make([]int32, g.nodes+1)
	for _, end := range g.ends {
		next[end[0]+1]++
		next[end[1]+1]++
	}
	for v := range g.nodes {
		next[v+1] += next[v]
	}
	all := make([]int32, 2*len(g.ends))
	for _, end := range g.ends {
		for side, v := range end {
			all[next[v]] = end[1-side]
			next[v]++
		}
	}
	return all
}
