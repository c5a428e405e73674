package steiner

import (
	"fmt"
	"math"
	"slices"
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

	// Start has edges of a tree to begin with, if not nil: the tree before a
	// change, say. Those that no tree can use are dropped, and what they leave
	// apart is joined. If Start is a tree of the problem as it stands, Solve
	// returns none that costs more.
	Start []int32
}

// validate returns an error that wraps ErrProblem, or nil.
func (o *Options) validate(edges int) error {
	if o.Budget < 0 {
		return fmt.Errorf("%w: a budget of %d", ErrProblem, o.Budget)
	}
	for _, e := range o.Start {
		if e < 0 || int(e) >= edges {
			return fmt.Errorf("%w: start edge %d of %d", ErrProblem, e, edges)
		}
	}
	return nil
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
	if err := o.validate(p.Graph.Edges()); err != nil {
		return nil, err
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	g, err := newNet(&p, &meter{budget: o.Budget}, true)
	if err != nil {
		return nil, err
	}
	s := newSolver(g, p.seed())
	if o.Start != nil && Check(p, o.Start) == nil {
		s.edges, s.cost = slices.Sorted(slices.Values(o.Start)), p.sum(o.Start)
	}
	if err := s.first(o.Start); err != nil {
		return nil, err
	}
	s.meter.budget -= ending * int64(min(g.nodes(), 2*len(s.now))+g.most())
	s.search(o.Bound)
	return s.tree(&p), nil
}

// Mehlhorn returns Mehlhorn's tree without local search. Where no limit binds
// it costs at most 2(1-1/l) times the optimum, l being the least number of
// leaves of an optimal tree; where its tree breaks a limit, another tree is
// made, without a bound on its cost. The error is one of Solve's.
func Mehlhorn(p Problem) (*Tree, error) {
	return Solve(p, Options{Budget: 1})
}

// Bound returns what every tree costs at least: the best bound of Wong's dual
// ascent from that many terminals as roots, at least from one. The error wraps
// ErrProblem or ErrDisconnected.
func Bound(p Problem, roots int) (float64, error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	g, err := newNet(&p, &meter{budget: math.MaxInt64}, true)
	if err != nil {
		return 0, err
	}
	best := g.raise(g.base)
	if len(g.terms) == 1 {
		return best, nil
	}
	a := newAscent(g)
	for _, root := range g.terms[:min(max(1, roots), len(g.terms))] {
		a.run(root)
		best = max(best, g.raise(g.base+a.bound))
	}
	return best, nil
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
	for _, w := range p.Graph.Neighbor {
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
