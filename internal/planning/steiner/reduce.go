package steiner

import (
	"math"
	"slices"
)

// A reducer takes nodes and edges away from a problem, and keeps the cost of an
// optimal tree. It holds the graph in linked lists, from which edges can be
// taken and to which they can be added.
type reducer struct {
	first  []int32 // by node: 2e+side of its first edge, or -1
	next   []int32 // by 2e+side
	ends   [][2]int32
	cost   []float64
	label  []int32
	gone   []bool // by edge
	degree []int32
	limit  []int32
	term   []bool
	terms  int

	stuck  bool    // a leaf has two terminals behind it
	queue  []int32 // nodes to look at
	queued []bool
	base   float64
	fixed  []int32
	parts  *parts
}

// newReducer returns a reducer of a graph without edges.
func newReducer(limit []int32, terms []int32, edges int, p *parts) *reducer {
	nodes := len(limit)
	r := &reducer{
		first: make([]int32, nodes), degree: make([]int32, nodes), limit: limit,
		next: make([]int32, 0, 2*edges), ends: make([][2]int32, 0, edges),
		cost: make([]float64, 0, edges), label: make([]int32, 0, edges), gone: make([]bool, 0, edges),
		term: make([]bool, nodes), terms: len(terms), queued: make([]bool, nodes), parts: p,
	}
	for v := range r.first {
		r.first[v] = -1
	}
	for _, t := range terms {
		r.term[t] = true
	}
	return r
}

// usable says whether an edge between u and v can be on a tree at all: two
// leaves that share an edge would be a tree of their own.
func (r *reducer) usable(u, v int32) bool {
	lu, lv := r.limit[u], r.limit[v]
	return lu > 0 && lv > 0 && (lu > 1 || r.term[u]) && (lv > 1 || r.term[v]) &&
		(lu > 1 || lv > 1 || r.terms <= 2)
}

func (r *reducer) link(u, v int32, cost float64, label int32) {
	e := int32(len(r.cost))
	r.ends = append(r.ends, [2]int32{u, v})
	r.cost = append(r.cost, cost)
	r.label = append(r.label, label)
	r.gone = append(r.gone, false)
	r.next = append(r.next, r.first[u], r.first[v])
	r.first[u], r.first[v] = 2*e, 2*e+1
	r.degree[u]++
	r.degree[v]++
}

func (r *reducer) unlink(e int32) {
	r.gone[e] = true
	for _, v := range r.ends[e] {
		r.degree[v]--
		r.look(v)
	}
}

func (r *reducer) look(v int32) {
	if !r.queued[v] {
		r.queued[v] = true
		r.queue = append(r.queue, v)
	}
}

// live appends the edges left at v to out; it forgets those that are gone.
func (r *reducer) live(v int32, out []int32) []int32 {
	at := &r.first[v]
	for *at >= 0 {
		half := *at
		if r.gone[half/2] {
			*at = r.next[half]
			continue
		}
		out = append(out, half/2)
		at = &r.next[half]
	}
	return out
}

// run applies the reductions until none is left to apply.
func (r *reducer) run() {
	r.dropParallel()
	for v := range int32(len(r.first)) {
		r.look(v)
	}
	for len(r.queue) > 0 {
		v := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		r.queued[v] = false
		switch {
		case r.degree[v] == 1 && r.term[v]:
			r.fold(v)
		case r.degree[v] == 1:
			r.unlink(r.live(v, nil)[0])
		case r.degree[v] == 2 && !r.term[v]:
			r.bypass(v)
		}
	}
}

// fold takes away a terminal with one edge, which is on every tree; the other
// end becomes a terminal instead.
func (r *reducer) fold(t int32) {
	if r.terms == 1 || r.stuck {
		return
	}
	e := r.live(t, nil)[0]
	u := r.ends[e][0] ^ r.ends[e][1] ^ t
	r.base += r.cost[e]
	r.fixed = append(r.fixed, r.label[e])
	r.term[t] = false
	r.terms--
	if !r.term[u] {
		r.term[u] = true
		r.terms++
	}
	if r.limit[u] != Unlimited {
		r.limit[u]--
	}
	if r.limit[u] == 0 && r.terms > 1 {
		r.stuck = true
	}
	r.unlink(e)
}

// bypass replaces a node of two edges, which is no terminal, by one edge.
func (r *reducer) bypass(v int32) {
	var room [2]int32
	pair := r.live(v, room[:0])
	a := r.ends[pair[0]][0] ^ r.ends[pair[0]][1] ^ v
	b := r.ends[pair[1]][0] ^ r.ends[pair[1]][1] ^ v
	cost := r.cost[pair[0]] + r.cost[pair[1]]
	r.unlink(pair[0])
	r.unlink(pair[1])
	if !r.usable(a, b) {
		return
	}
	near := a
	if r.degree[b] < r.degree[a] {
		near = b
	}
	for _, e := range r.live(near, nil) {
		if r.ends[e][0]^r.ends[e][1] == a^b {
			if r.cost[e] <= cost {
				return
			}
			r.unlink(e)
		}
	}
	r.link(a, b, cost, r.parts.join(r.label[pair[0]], r.label[pair[1]]))
	r.look(a)
	r.look(b)
}

// dropParallel keeps the cheapest of the edges between two nodes.
func (r *reducer) dropParallel() {
	best := make([]int32, len(r.first))
	for v := range best {
		best[v] = -1
	}
	var here []int32
	for v := range int32(len(r.first)) {
		here = r.live(v, here[:0])
		for _, e := range here {
			w := r.ends[e][0] ^ r.ends[e][1] ^ v
			switch old := best[w]; {
			case old < 0:
				best[w] = e
			case r.cost[e] < r.cost[old] || r.cost[e] == r.cost[old] && e < old:
				r.unlink(old)
				best[w] = e
			default:
				r.unlink(e)
			}
		}
		for _, e := range here {
			best[r.ends[e][0]^r.ends[e][1]^v] = -1
		}
	}
}

// net returns what is left, or ErrDisconnected. What the terminals do not
// reach is left out.
func (r *reducer) net(m *meter) (*net, error) {
	number, kept := r.reach()
	g := &net{
		base: r.base, fixed: r.fixed, parts: r.parts, meter: m,
		term: make([]bool, kept), limit: make([]int32, kept), offset: make([]int32, kept+1),
	}
	for v, i := range number {
		if i >= 0 {
			g.term[i], g.limit[i] = r.term[v], r.limit[v]
		}
	}
	for i, t := range g.term {
		if t {
			g.terms = append(g.terms, int32(i))
		}
	}
	if r.stuck || len(g.terms) < r.terms {
		return nil, ErrDisconnected
	}
	for e, ends := range r.ends {
		u, v := number[ends[0]], number[ends[1]]
		if r.gone[e] || u < 0 || v < 0 {
			continue
		}
		g.ends = append(g.ends, [2]int32{u, v})
		g.cost = append(g.cost, r.cost[e])
		g.label = append(g.label, r.label[e])
		g.offset[u+1]++
		g.offset[v+1]++
	}
	g.index()
	g.whole = g.countable()
	g.equal = len(g.cost) > 0 && slices.Min(g.cost) == slices.Max(g.cost)
	return g, nil
}

// countable says whether all sums of costs are exact whole numbers.
func (g *net) countable() bool {
	total := g.base
	for _, c := range g.cost {
		if c != math.Trunc(c) {
			return false
		}
		total += c
	}
	return g.base == math.Trunc(g.base) && total < 1<<53
}

// index fills the arcs; offset[v+1] has the degree of v.
func (g *net) index() {
	for v := range g.nodes() {
		g.offset[v+1] += g.offset[v]
	}
	next := append([]int32(nil), g.offset[:g.nodes()]...)
	g.arcs = make([]arc, 2*len(g.ends))
	for e, ends := range g.ends {
		for side, v := range ends {
			g.arcs[next[v]] = arc{ends[1-side], int32(e)}
			next[v]++
		}
	}
	for v := range g.nodes() {
		if g.limit[v] >= g.offset[v+1]-g.offset[v] {
			g.limit[v] = Unlimited
		}
	}
}

// reach numbers the nodes that can be joined to the first terminal, in their
// order; the others have -1.
func (r *reducer) reach() (number []int32, count int) {
	number = make([]int32, len(r.first))
	for v := range number {
		number[v] = -1
	}
	var queue, here []int32
	for v := range int32(len(number)) {
		if r.term[v] {
			number[v] = 0
			queue = append(queue, v)
			break
		}
	}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		if i > 0 && r.limit[v] < 2 {
			continue
		}
		here = r.live(v, here[:0])
		for _, e := range here {
			if w := r.ends[e][0] ^ r.ends[e][1] ^ v; number[w] < 0 {
				number[w] = 0
				queue = append(queue, w)
			}
		}
	}
	for v := range number {
		if number[v] == 0 {
			number[v] = int32(count)
			count++
		}
	}
	return number, count
}

// newNet returns the net of a valid problem, reduced or as it is.
func newNet(p *Problem, m *meter, reduced bool) (*net, error) {
	limit := make([]int32, p.Graph.Nodes())
	for v := range limit {
		limit[v] = p.limit(int32(v))
	}
	r := newReducer(limit, p.Terminals, p.Graph.Edges(), &parts{edges: int32(p.Graph.Edges())})
	for e, ends := range p.Graph.Ends() {
		if !math.IsInf(p.Cost[e], 1) && r.usable(ends[0], ends[1]) {
			r.link(ends[0], ends[1], p.Cost[e], int32(e))
		}
	}
	if reduced {
		m.add(len(r.cost))
		r.run()
	}
	return r.net(m)
}

// keep returns the reduced net of the edges that are kept, or ErrDisconnected.
func (g *net) keep(kept []bool) (*net, error) {
	g.meter.add(g.edges())
	limit := append([]int32(nil), g.limit...)
	r := newReducer(limit, g.terms, g.edges(), g.parts)
	r.base, r.fixed = g.base, append([]int32(nil), g.fixed...)
	for e, ends := range g.ends {
		if kept[e] {
			r.link(ends[0], ends[1], g.cost[e], g.label[e])
		}
	}
	r.run()
	return r.net(g.meter)
}
