package steiner

import (
	"math"
	"slices"
)

// A net is a problem as the algorithms work on it: its usable nodes and edges,
// densely numbered, none of whose reductions (reduce.go) applies any more. What
// is certain to be on the tree is folded away and kept in base and fixed.
type net struct {
	offset []int32 // node v has the arcs offset[v] to offset[v+1]-1
	arcs   []arc
	ends   [][2]int32 // by edge
	cost   []float64  // by edge
	label  []int32    // by edge: what it stands for, see parts
	term   []bool     // by node
	terms  []int32
	limit  []int32 // by node; never below 2 except at terminals

	base  float64 // cost of what is folded away
	fixed []int32 // labels of what is folded away
	whole bool    // all costs are whole numbers
	equal bool    // all costs are equal
	parts *parts
	meter *meter
}

// arc is an edge as seen from one of its ends.
type arc struct{ to, edge int32 }

func (g *net) nodes() int { return len(g.term) }
func (g *net) edges() int { return len(g.cost) }

func (g *net) at(v int32) []arc { return g.arcs[g.offset[v]:g.offset[v+1]] }

// most returns the most edges that a node has.
func (g *net) most() (most int) {
	for v := range g.nodes() {
		most = max(most, int(g.offset[v+1]-g.offset[v]))
	}
	return most
}

// passable says whether a path may lead through v.
func (g *net) passable(v int32) bool { return g.limit[v] >= 2 }

// other returns the end of e that is not v.
func (g *net) other(e, v int32) int32 {
	ends := g.ends[e]
	return ends[0] ^ ends[1] ^ v
}

// slack is what a tree must be cheaper by to count as better: costs that are
// not whole are sums of rounded numbers.
func (g *net) slack(total float64) float64 {
	if g.whole {
		return 0.5
	}
	return float64(1e-9 * total)
}

// raise returns the least cost that a tree can have if none costs less than
// bound.
func (g *net) raise(bound float64) float64 {
	if g.whole {
		return math.Ceil(bound-1e-6) + 0 // no -0
	}
	return bound * (1 - 1e-10)
}

// sum returns the cost of edges, what is folded away not included.
func (g *net) sum(edges []int32) float64 {
	total := 0.0
	for _, e := range edges {
		total += g.cost[e]
	}
	return total
}

// expand returns the edges of the original problem that edges of the net and
// what is folded away stand for, ascending.
func (g *net) expand(edges []int32) []int32 {
	var out []int32
	for _, l := range g.fixed {
		out = g.parts.expand(l, out)
	}
	for _, e := range edges {
		out = g.parts.expand(g.label[e], out)
	}
	slices.Sort(out)
	return out
}

// parts reports what a label stands for: one below edges is that edge of the
// problem, another one is a path of two labels.
type parts struct {
	edges int32
	pairs [][2]int32
}

func (p *parts) join(a, b int32) int32 {
	p.pairs = append(p.pairs, [2]int32{a, b})
	return p.edges + int32(len(p.pairs)) - 1
}

func (p *parts) expand(label int32, out []int32) []int32 {
	stack := []int32{label}
	for len(stack) > 0 {
		l := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if l < p.edges {
			out = append(out, l)
			continue
		}
		pair := p.pairs[l-p.edges]
		stack = append(stack, pair[0], pair[1])
	}
	return out
}

// meter counts the work and knows when it is to end. While it is forced, it
// never is.
type meter struct {
	done, budget int64
	forced       bool
}

func (m *meter) add(relaxed int) { m.done += int64(relaxed) }
func (m *meter) spent() bool     { return !m.forced && m.done >= m.budget }

// affords says whether so much work is left.
func (m *meter) affords(work int) bool { return m.forced || m.done+int64(work) <= m.budget }

// left returns the given share of what is left.
func (m *meter) left(share float64) int64 { return int64(share * float64(max(0, m.budget-m.done))) }

// within runs step with a budget of at most so much work.
func (m *meter) within(work int64, step func()) {
	whole := m.budget
	m.budget = min(whole, m.done+work)
	step()
	m.budget = whole
}
