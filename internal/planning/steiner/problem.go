package steiner

import (
	"errors"
	"fmt"
	"math"
)

// Errors of a problem.
var (
	// ErrProblem says that a problem is not well formed: arrays whose lengths
	// do not agree, node or edge numbers out of range, a cost that is negative
	// or not a number, a terminal named twice.
	ErrProblem = errors.New("malformed Steiner problem")

	// ErrDisconnected says that no tree joins the terminals, whatever it
	// costs: a path between two of them would need a forbidden node or edge.
	ErrDisconnected = errors.New("terminals cannot be joined")

	// ErrNoTree says that no tree within the limits was found. There may be one.
	ErrNoTree = errors.New("no tree found within the nodes' limits")
)

// Unlimited is the limit of a node that may have any number of tree edges.
const Unlimited int32 = math.MaxInt32

// A Problem asks for the cheapest tree that spans the terminals. Solving reads
// it and never writes.
type Problem struct {
	Graph *Graph

	// Cost has the cost of every edge, by edge number: at least 0, in any unit.
	// +Inf forbids the edge. Whole numbers below 2^53 in sum are exact, and let
	// bounds be rounded up to the next whole number.
	Cost []float64

	// Limit has, by node, how many tree edges the node may have: 0 forbids the
	// node, 1 lets it be a leaf only, 2 lets it forward but not branch,
	// Unlimited sets no limit. Nil stands for Unlimited everywhere.
	Limit []int32

	// Terminals are the nodes that the tree spans, each once, in any order; at
	// least one. The root of a rooted tree is a terminal like the others.
	Terminals []int32
}

// limit returns the limit of node v.
func (p *Problem) limit(v int32) int32 {
	if p.Limit == nil {
		return Unlimited
	}
	return p.Limit[v]
}

// Validate returns an error that wraps ErrProblem and names what is wrong, or
// nil. It takes time linear in the graph.
func (p *Problem) Validate() error {
	if p.Graph == nil {
		return fmt.Errorf("%w: no graph", ErrProblem)
	}
	nodes, edges := p.Graph.Nodes(), p.Graph.Edges()
	switch {
	case len(p.Cost) != edges:
		return fmt.Errorf("%w: %d costs for %d edges", ErrProblem, len(p.Cost), edges)
	case p.Limit != nil && len(p.Limit) != nodes:
		return fmt.Errorf("%w: %d limits for %d nodes", ErrProblem, len(p.Limit), nodes)
	case len(p.Terminals) == 0:
		return fmt.Errorf("%w: no terminal", ErrProblem)
	}
	for e, c := range p.Cost {
		if !(c >= 0) {
			return fmt.Errorf("%w: edge %d costs %v", ErrProblem, e, c)
		}
	}
	for v, l := range p.Limit {
		if l < 0 {
			return fmt.Errorf("%w: node %d has the limit %d", ErrProblem, v, l)
		}
	}
	seen := make([]bool, nodes)
	for _, t := range p.Terminals {
		if t < 0 || int(t) >= nodes {
			return fmt.Errorf("%w: terminal %d of a graph of %d nodes", ErrProblem, t, nodes)
		}
		if seen[t] {
			return fmt.Errorf("%w: terminal %d is named twice", ErrProblem, t)
		}
		seen[t] = true
	}
	return nil
}
