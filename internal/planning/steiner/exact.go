package steiner

import (
	"fmt"
	"math"
	"math/bits"
)

// MaxExact is the largest number of terminals that Exact takes.
const MaxExact = 12

// exactCells is the most cells that the exact method's table may have.
const exactCells = 1 << 25

// Exact returns an optimal tree, by the dynamic programme of Dreyfus and Wagner
// as Erickson, Monma and Veinott have it: for each set of terminals and each
// node, the cheapest tree of both. It takes time and memory exponential in the
// number of terminals, uses no reduction, and is meant as an oracle. Of limits
// it holds 0, 1 and those that cannot bind. The error wraps ErrProblem,
// ErrDisconnected or ErrTooLarge.
func Exact(p Problem) (*Tree, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if len(p.Terminals) > MaxExact {
		return nil, fmt.Errorf("%w: %d terminals, at most %d", ErrTooLarge, len(p.Terminals), MaxExact)
	}
	m := &meter{budget: math.MaxInt64}
	g, err := newNet(&p, m, false)
	if err != nil {
		return nil, err
	}
	if !g.exactFits() {
		return nil, fmt.Errorf("%w: %d nodes, or limits above 1 that bind", ErrTooLarge, g.nodes())
	}
	edges, ok := g.exact()
	if !ok {
		return nil, ErrDisconnected
	}
	t := &Tree{Edges: g.expand(edges), Work: m.done}
	t.Cost = p.sum(t.Edges)
	t.Bound = t.Cost
	return t, nil
}

// exactFits says whether the exact method can solve g at all.
func (g *net) exactFits() bool {
	if len(g.terms) > MaxExact || g.nodes()<<(len(g.terms)-1) > exactCells {
		return false
	}
	for v, limit := range g.limit {
		if limit != Unlimited && !(limit == 1 && g.term[v]) {
			return false
		}
	}
	return true
}

// exactWork returns about what the exact method relaxes.
func (g *net) exactWork() float64 {
	k := float64(len(g.terms) - 1)
	return math.Pow(3, k)/2*float64(g.nodes()) + math.Pow(2, k)*float64(len(g.arcs))
}

// programme is the table of the exact method: for each set of terminals, the
// last one left out of all of them, and each node.
type programme struct {
	g    *net
	l    *labels
	best []float64 // by set*nodes+node
	how  []int32   // the last edge, or the complement of one part of the set, or begins
}

// begins marks where a terminal's own tree begins.
const begins = math.MaxInt32

// exact returns the edges of an optimal tree; ok is false if there is none.
func (g *net) exact() (edges []int32, ok bool) {
	n, free := g.nodes(), len(g.terms)-1
	p := &programme{g: g, l: newLabels(n), best: make([]float64, n<<free), how: make([]int32, n<<free)}
	for i := range p.best {
		p.best[i] = math.Inf(1)
	}
	for set := 1; set < 1<<free; set++ {
		if bits.OnesCount(uint(set)) == 1 {
			t := int(g.terms[bits.TrailingZeros(uint(set))])
			p.best[set*n+t], p.how[set*n+t] = 0, begins
		} else {
			p.merge(set)
		}
		p.spread(set)
	}
	last, all := int(g.terms[free]), 1<<free-1
	if all > 0 && math.IsInf(p.best[all*n+last], 1) {
		return nil, false
	}
	return p.trace(all, last), true
}

// merge joins, at each node that may branch, the trees of two parts of the set.
func (p *programme) merge(set int) {
	n := p.g.nodes()
	row := p.best[set*n : (set+1)*n]
	lowest := set & -set
	for part := (set - 1) & set; part > 0; part = (part - 1) & set {
		if part&lowest == 0 {
			continue
		}
		p.g.meter.add(n)
		a, b := p.best[part*n:(part+1)*n], p.best[(set^part)*n:(set^part+1)*n]
		for v := range row {
			if total := a[v] + b[v]; total < row[v] && p.g.passable(int32(v)) {
				row[v], p.how[set*n+v] = total, int32(^part)
			}
		}
	}
}

// spread carries the trees of a set over the edges.
func (p *programme) spread(set int) {
	g, n := p.g, p.g.nodes()
	p.l.reset()
	for v, total := range p.best[set*n : (set+1)*n] {
		if !math.IsInf(total, 1) {
			p.l.offer(int32(v), total, -1)
		}
	}
	for {
		v, dist, some := p.l.nearest()
		if !some {
			return
		}
		at := set*n + int(v)
		if p.l.via[v] >= 0 {
			p.best[at], p.how[at] = dist, p.l.via[v]
		}
		if !g.passable(v) && p.how[at] != begins {
			continue
		}
		arcs := g.at(v)
		g.meter.add(len(arcs))
		for _, a := range arcs {
			p.l.offer(a.to, dist+g.cost[a.edge], a.edge)
		}
	}
}

// trace returns the edges of the tree of a set and a node. Trees that were
// joined may share nodes where edges cost nothing; a spanning tree of their
// edges, without useless leaves, costs no more.
func (p *programme) trace(set, node int) []int32 {
	n := p.g.nodes()
	var edges []int32
	type cell struct{ set, node int }
	stack := []cell{{set, node}}
	for len(stack) > 0 {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if c.set == 0 {
			continue
		}
		switch how := p.how[c.set*n+c.node]; {
		case how == begins:
		case how < 0:
			part := int(^how)
			stack = append(stack, cell{part, c.node}, cell{c.set ^ part, c.node})
		default:
			edges = append(edges, how)
			stack = append(stack, cell{c.set, int(p.g.other(how, int32(c.node)))})
		}
	}
	return p.g.prune(p.g.spanning(edges))
}
