package steiner

import "slices"

// free is the component of a node that is on no component.
const free int32 = -1

// A local improves a tree by moves until none of them helps, or the budget
// ends. The moves never make it dearer and keep the limits.
type local struct {
	g    *net
	t    *rooted
	cost []float64 // by edge: what the search goes by
	eps  float64   // what a move must save

	// Moves begin at the nodes of scope only, if it is not nil.
	scope []bool

	labels *labels
	// The exchange under way takes away the nodes of the subtree of top, but
	// not those of the subtrees of lower. Component 0 is what is outside of top,
	// component i+1 is the subtree of lower[i].
	top    int32
	lower  []int32
	joined forest  // of components
	size   []int32 // by component that is the root of its set
	extra  []int32 // nodes of the new paths
	part   []int32 // by node: component, if it is in extra
	mark   []int32 // by node: equals now if it is in extra
	now    int32
	delta  []int32 // by node: edges won and lost
	moved  []int32 // nodes whose delta may not be 0
	added  []int32 // edges of the new paths
	gone   []bool  // by edge, scratch

	journal []hold // of insert
	climbed []int32
	climb   int32
	near    []arc
	nodes   []int32 // a snapshot of the tree's nodes
}

func newLocal(g *net) *local {
	n := g.nodes()
	return &local{
		g: g, t: newRooted(g), cost: g.cost, labels: newLabels(n),
		part: make([]int32, n), mark: make([]int32, n), delta: make([]int32, n),
		gone: make([]bool, g.edges()), climbed: make([]int32, n),
	}
}

// run improves the tree until no move helps. The tree is in l.t.
func (l *local) run() {
	l.eps = 1e-9 * l.total(l.t.edges)
	for better := true; better && !l.g.meter.spent(); {
		better = l.insertAll()
		better = l.exchangeAll() || better
		better = l.eliminateAll() || better
	}
}

func (l *local) covers(v int32) bool { return l.scope == nil || l.scope[v] }

func (l *local) total(edges []int32) float64 {
	total := 0.0
	for _, e := range edges {
		total += l.cost[e]
	}
	return total
}

// exchangeAll tries for every key path to join its two sides at less cost.
func (l *local) exchangeAll() (better bool) {
	l.nodes = append(l.nodes[:0], l.t.order...)
	for _, v := range l.nodes {
		if !l.covers(v) || !l.t.on(v) || l.t.parent[v] < 0 || !l.t.key(v) {
			continue
		}
		if l.g.meter.spent() {
			break
		}
		above, last := l.t.keyAbove(v)
		l.lower = append(l.lower[:0], v)
		better = l.exchange(above, last) || better
	}
	return better
}

// eliminateAll tries for every branch that is no terminal to do without it:
// it goes with all key paths at it, and the parts are joined at less cost.
func (l *local) eliminateAll() (better bool) {
	t := l.t
	l.nodes = append(l.nodes[:0], t.order...)
	for _, v := range l.nodes {
		if !l.covers(v) || !t.on(v) || l.g.term[v] || t.degree[v] < 3 {
			continue
		}
		if l.g.meter.spent() {
			break
		}
		l.lower = l.lower[:0]
		for c := t.at[v] + 1; c < t.end[v]; c = t.end[t.order[c]] {
			below := c
			for !t.key(t.order[below]) {
				below++
			}
			l.lower = append(l.lower, t.order[below])
		}
		above, last := t.keyAbove(v)
		better = l.exchange(above, last) || better
	}
	return better
}

// exchange takes away the nodes below above that are in the subtree of top but
// in none of those of l.lower, with their edges, and joins what is left by
// shortest paths, the smallest component first. It reports whether that made
// the tree cheaper; if not, it changes nothing.
func (l *local) exchange(above, top int32) bool {
	saved := l.takeAway(above, top)
	ok := true
	for range l.lower {
		length, found := l.rejoin(saved - l.eps)
		if !found {
			ok = false
			break
		}
		saved -= length
	}
	if ok {
		l.commit()
	}
	for _, v := range l.moved {
		l.delta[v] = 0
	}
	return ok
}

// takeAway begins an exchange and returns what the edges taken away cost.
func (l *local) takeAway(above, top int32) (saved float64) {
	t := l.t
	l.top = top
	l.now++
	l.moved, l.extra, l.added = l.moved[:0], l.extra[:0], l.added[:0]
	l.joined = l.joined[:0]
	l.size = l.size[:0]
	l.joined = append(l.joined, 0)
	l.size = append(l.size, int32(len(t.order))-(t.end[top]-t.at[top]))
	l.shift(above, -1)
	for i, v := range l.lower {
		l.joined = append(l.joined, int32(i+1))
		l.size = append(l.size, t.end[v]-t.at[v])
		l.shift(v, -1)
		saved += l.cost[t.up[v]]
	}
	l.eachTaken(func(v int32) { saved += l.cost[t.up[v]] })
	return saved
}

// eachTaken calls do for each node that is taken away.
func (l *local) eachTaken(do func(v int32)) {
	t := l.t
	for i := t.at[l.top]; i < t.end[l.top]; i++ {
		v := t.order[i]
		if slices.Contains(l.lower, v) {
			i = t.end[v] - 1
			continue
		}
		do(v)
	}
}

func (l *local) shift(v, by int32) {
	l.delta[v] += by
	l.moved = append(l.moved, v)
}

// component returns the component of v, or free.
func (l *local) component(v int32) int32 {
	if l.mark[v] == l.now {
		return l.joined.root(l.part[v])
	}
	t := l.t
	if !t.on(v) {
		return free
	}
	at := t.at[v]
	if at < t.at[l.top] || at >= t.end[l.top] {
		return l.joined.root(0)
	}
	for i, w := range l.lower {
		if at >= t.at[w] && at < t.end[w] {
			return l.joined.root(int32(i + 1))
		}
	}
	return free
}

// spare says whether v, on a component, may have one edge more.
func (l *local) spare(v int32) bool {
	limit := l.g.limit[v]
	if limit == Unlimited {
		return true
	}
	degree := l.delta[v]
	if l.mark[v] != l.now {
		degree += l.t.degree[v]
	}
	return degree < limit
}

// rejoin joins the smallest component to another one by a shortest path, if
// that costs less than bound.
func (l *local) rejoin(bound float64) (length float64, found bool) {
	from := free
	for i := range l.joined {
		if c := int32(i); l.joined.root(c) == c && (from == free || l.size[c] < l.size[from]) {
			from = c
		}
	}
	length, last, near := l.search(from, bound)
	if last < 0 {
		return 0, false
	}
	far := l.g.other(last, near)
	to := l.component(far)
	l.added = append(l.added, last)
	l.shift(far, 1)
	for l.component(near) == free {
		l.shift(near, 2)
		l.mark[near], l.part[near] = l.now, from
		l.extra = append(l.extra, near)
		e := l.labels.via[near]
		l.added = append(l.added, e)
		near = l.g.other(e, near)
	}
	l.shift(near, 1)
	size := l.size[from] + l.size[to]
	l.joined.unite(from, to)
	l.size[l.joined.root(from)] = size
	return length, true
}

// search finds the shortest path from component from to another one. It returns
// the path's length, its last edge and that edge's near end; the edge is -1 if
// no path is shorter than bound.
func (l *local) search(from int32, bound float64) (length float64, last, near int32) {
	l.labels.reset()
	s := frontier{l: l, from: from, length: bound, last: -1}
	t := l.t
	for i, root := range l.joined {
		switch {
		case l.joined.root(root) != from:
		case i == 0:
			s.leave(t.order[:t.at[l.top]])
			s.leave(t.order[t.end[l.top]:])
		default:
			w := l.lower[i-1]
			s.leave(t.order[t.at[w]:t.end[w]])
		}
	}
	for _, v := range l.extra {
		if l.component(v) == from && l.spare(v) {
			s.relax(v, 0)
		}
	}
	for {
		v, dist, some := l.labels.nearest()
		if !some || dist >= s.length {
			return s.length, s.last, s.near
		}
		s.relax(v, dist)
	}
}

// frontier is the state of one search.
type frontier struct {
	l          *local
	from       int32
	length     float64 // of the best path so far, or the bound
	last, near int32
}

// leave starts paths at nodes.
func (s *frontier) leave(nodes []int32) {
	for _, v := range nodes {
		if s.l.spare(v) {
			s.relax(v, 0)
		}
	}
}

func (s *frontier) relax(v int32, dist float64) {
	l := s.l
	arcs := l.g.at(v)
	l.g.meter.add(len(arcs))
	for _, a := range arcs {
		length := dist + l.cost[a.edge]
		if length >= s.length {
			continue
		}
		switch c := l.component(a.to); {
		case c == s.from:
		case c == free:
			if l.g.passable(a.to) {
				l.labels.offer(a.to, length, a.edge)
			}
		case l.spare(a.to):
			s.length, s.last, s.near = length, a.edge, v
		}
	}
}

// commit makes the exchange part of the tree.
func (l *local) commit() {
	t := l.t
	gone := func(v int32) { l.gone[t.up[v]] = true }
	l.eachTaken(gone)
	for _, v := range l.lower {
		gone(v)
	}
	edges := l.added
	for _, e := range t.edges {
		if !l.gone[e] {
			edges = append(edges, e)
		}
		l.gone[e] = false
	}
	l.added = edges
	t.build(edges)
}
