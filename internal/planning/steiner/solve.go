package steiner

import (
	"fmt"
	"math"
)

// DefaultBudget is the work that Options of budget 0 allow: about a second of
// one core of a present server.
const DefaultBudget = 50_000_000

// Options say how much to do. The zero value is useful.
type Options struct {
	// Budget is the work allowed, in relaxed edges; 0 stands for DefaultBudget.
	// A first tree is always made, whatever the budget, and work passes the
	// budget for that alone. Budget 1 asks for the first tree only, improved by
	// nothing.
	Budget int64

	// Bound leaves a quarter of what the first tree does not take of the budget
	// to the search for a lower bound: the tree is that of three quarters
	// without it. Without it Tree.Bound is what was found on the way, if
	// anything.
	Bound bool
}

// A Tree spans the terminals of a problem.
type Tree struct {
	// Edges of the tree, ascending.
	Edges []int32
	// Cost is the sum of their costs.
	Cost float64
	// Bound is what every tree costs at least; 0 if nothing was found out. A
	// tree whose cost is its bound is optimal.
	Bound float64
	// Work is the number of edges that were relaxed; a tree that is built anew
	// counts its edges.
	Work int64
}

// Solve returns a tree of low cost that spans the terminals. The error wraps
// ErrProblem, ErrDisconnected or ErrNoTree.
func Solve(p Problem, o Options) (*Tree, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if o.Budget < 0 {
		return nil, fmt.Errorf("%w: a budget of %d", ErrProblem, o.Budget)
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	g, err := newNet(&p, &meter{budget: o.Budget}, true)
	if err != nil {
		return nil, err
	}
	s := newSolver(g, p.seed())
	if err := s.first(); err != nil {
		return nil, err
	}
	s.meter.budget -= ending * int64(min(g.nodes(), 2*len(s.now))+g.most())
	s.search(o.Bound)
	return s.tree(&p), nil
}

// sum returns the cost of edges.
func (p *Problem) sum(edges []int32) float64 {
	total := 0.0
	for _, e := range edges {
		total += p.Cost[e]
	}
	return total
}

// seed returns a number that depends on all of the problem that Solve reads.
func (p *Problem) seed() uint64 {
	h := uint64(14695981039346656037)
	mix := func(x uint64) { h = (h ^ x ^ x>>29) * 1099511628211 }
	mix(uint64(p.Graph.Nodes()))
	for _, w := range p.Graph.neighbors() {
		mix(uint64(w))
	}
	for _, c := range p.Cost {
		mix(math.Float64bits(c))
	}
	for _, t := range p.Terminals {
		mix(uint64(t))
	}
	return h
}
