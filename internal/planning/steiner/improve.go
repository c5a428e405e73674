package steiner

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
)

// A local improves a tree by moves until none of them helps, or the budget
// ends. The moves keep the limits.
type local struct {
	g    *net
	t    *rooted
	cost []float64 // by edge: what the search goes by, at least g.cost
	// A move must save more than this; below 0, it may cost less than that.
	least float64

	// Moves begin at the nodes of scope only, if it is not nil.
	scope []bool

	rng *rand.Rand // if not nil, chance chooses among equal paths

	exchanger
	climbed []int32 // by node: the climb that came there first, see meet
	climb   int32
	gain    float64 // of the last move that was made
	near    []arc
	nodes   []int32 // a snapshot of nodes
	count   []int32 // by node: neighbours on the tree, scratch of beside
}

func newLocal(g *net) *local {
	n := g.nodes()
	l := &local{g: g, t: newRooted(g), cost: g.cost, climbed: make([]int32, n), count: make([]int32, n)}
	l.exchanger = newExchanger(g)
	return l
}

// run improves the tree until no move helps. The tree is in l.t.
func (l *local) run() {
	l.least = 1e-9 * l.total()
	for better := true; better && !l.g.meter.spent(); {
		better = l.insertAll()
		better = l.exchangeAll() || better
		better = l.eliminateAll() || better
	}
}

func (l *local) covers(v int32) bool { return l.scope == nil || l.scope[v] }

// total returns the cost of the tree.
func (l *local) total() float64 {
	total := 0.0
	for _, v := range l.t.nodes {
		if v != l.t.root {
			total += l.cost[l.t.up[v]]
		}
	}
	return total
}

// exchangeAll tries for every key path to join its two sides at less cost.
func (l *local) exchangeAll() (better bool) {
	l.nodes = append(l.nodes[:0], l.t.nodes...)
	for _, v := range l.nodes {
		if !l.covers(v) || !l.t.on(v) || l.t.parent[v] < 0 || !l.t.key(v) {
			continue
		}
		if l.g.meter.spent() {
			break
		}
		better = l.exchangePath(v) || better
	}
	return better
}

// eliminateAll tries for every branch that is no terminal to do without it:
// it goes with all key paths at it, and the parts are joined at less cost.
func (l *local) eliminateAll() (better bool) {
	t := l.t
	l.nodes = append(l.nodes[:0], t.nodes...)
	for _, v := range l.nodes {
		if !l.covers(v) || !t.on(v) || l.g.term[v] || t.degree[v] < 3 {
			continue
		}
		if l.g.meter.spent() {
			break
		}
		better = l.eliminate(v) || better
	}
	return better
}

// An exchanger takes a part out of the tree and joins what is left. The nodes
// of all pieces but one, which is the largest or nearly so, are enumerated; an
// exchange thus costs no more than what is small of it.
type exchanger struct {
	labels   *labels
	cheapest []float64 // by node: the cheapest of its edges
	floor    float64   // of all edges

	pieces []piece       // the first is above what is taken away, the others hang below
	open   []int32       // pieces that may have more than one node, scratch
	tops   []int32       // by piece: its node next to what is taken away
	joined disjoint.Sets // of pieces
	big    int32         // the piece that is not enumerated
	part   []int32       // by node, if mark says so: its piece, or free if it is taken away
	mark   []int32       // by node: equals now if part reports it
	now    int32
	taken  []int32 // nodes taken away
	delta  []int32 // by node: edges won and lost
	moved  []int32 // nodes whose delta may not be 0
	joints []joint
	added  []int32 // edges of the new paths
}

// piece is a part of the tree that an exchange leaves, or several of them that
// are joined again, under the least of their numbers.
type piece struct {
	nodes []int32 // found so far, those of new paths included
	seen  int     // nodes whose neighbours were found
}

// joint is a new path from the top of a piece, once that is turned so, to the
// node far of another one: edges of added, from far on.
type joint struct{ top, far, begin, end int32 }

const (
	free   int32 = -1 // the piece of a node that is on no piece
	barred int32 = -2 // and that is not to be on one

	elsewhere int32 = -3 // the piece of a node that is on one not yet enumerated
)

func newExchanger(g *net) exchanger {
	n := g.nodes()
	x := exchanger{
		labels: newLabels(n), cheapest: make([]float64, n),
		part: make([]int32, n), mark: make([]int32, n), delta: make([]int32, n),
	}
	for v := range x.cheapest {
		x.cheapest[v] = math.Inf(1)
		for _, a := range g.at(int32(v)) {
			x.cheapest[v] = min(x.cheapest[v], g.cost[a.edge])
		}
	}
	x.floor = slices.Min(x.cheapest)
	return x
}

// exchangePath tries to join the two sides of the key path above v anew, and
// reports whether it did.
func (l *local) exchangePath(v int32) bool {
	l.begin()
	saved := l.cost[l.t.up[v]]
	above := l.t.parent[v]
	for ; !l.t.key(above); above = l.t.parent[above] {
		saved += l.take(above)
	}
	l.leave(above)
	l.leave(v)
	return l.rejoinAll(saved)
}

// eliminate tries to do without v, a branch, and the key paths at it.
func (l *local) eliminate(v int32) bool {
	t := l.t
	l.begin()
	saved := l.take(v)
	if l.rng != nil {
		l.part[v] = barred
	}
	above := t.parent[v]
	for ; !t.key(above); above = t.parent[above] {
		saved += l.take(above)
	}
	l.leave(above)
	for c := t.child[v]; c >= 0; c = t.next[c] {
		low := c
		for ; !t.key(low); low = t.child[low] {
			saved += l.take(low)
		}
		saved += l.cost[t.up[low]]
		l.leave(low)
	}
	return l.rejoinAll(saved)
}

// begin begins an exchange.
func (l *local) begin() {
	l.now++
	l.pieces, l.tops = l.pieces[:0], l.tops[:0]
	l.taken, l.moved, l.joints, l.added = l.taken[:0], l.moved[:0], l.joints[:0], l.added[:0]
}

// take takes v away, and returns what its edge to the parent costs.
func (l *local) take(v int32) float64 {
	l.mark[v], l.part[v] = l.now, free
	l.taken = append(l.taken, v)
	l.shift(v, -l.t.degree[v])
	return l.cost[l.t.up[v]]
}

// leave reports a piece: the one above what is taken away comes first, with
// the node from which that hung; the others with their tops.
func (l *local) leave(top int32) {
	i := len(l.pieces)
	if i < cap(l.pieces) {
		l.pieces = l.pieces[:i+1]
	} else {
		l.pieces = append(l.pieces, piece{})
	}
	p := &l.pieces[i]
	p.nodes, p.seen = append(p.nodes[:0], top), 0
	l.tops = append(l.tops, top)
	l.shift(top, -1)
}

func (l *local) shift(v, by int32) {
	l.delta[v] += by
	l.moved = append(l.moved, v)
}

// enumerate finds the nodes of the open pieces but the largest, in turns, so
// that it takes no more steps in that than in another one. It reports false if
// the budget ends.
func (l *local) enumerate() bool {
	open := l.open
	for _, i := range open {
		l.mark[l.tops[i]], l.part[l.tops[i]] = l.now, i
	}
	for len(open) > 1 {
		if l.g.meter.spent() {
			return false
		}
		l.g.meter.add(len(open))
		left := open[:0]
		for _, i := range open {
			p := &l.pieces[i]
			l.expand(i, p)
			if p.seen < len(p.nodes) {
				left = append(left, i)
			}
		}
		if len(left) == 0 { // they are of one size
			left = append(left, open[0])
		}
		open = left
	}
	l.big = open[0]
	return true
}

// expand finds the neighbours of one node of a piece.
func (l *local) expand(i int32, p *piece) {
	t := l.t
	v := p.nodes[p.seen]
	p.seen++
	for c := t.child[v]; c >= 0; c = t.next[c] {
		l.find(c, i, p)
	}
	if up := t.parent[v]; i == 0 && up >= 0 {
		l.find(up, i, p)
	}
}

func (l *local) find(v, i int32, p *piece) {
	if l.mark[v] != l.now {
		l.mark[v], l.part[v] = l.now, i
		p.nodes = append(p.nodes, v)
	}
}

// rejoinAll joins the pieces by shortest paths, the smallest first, if that
// costs little enough; if not, it changes nothing. Pieces of one leaf come before
// all others: most exchanges fail there, and cost nothing else.
func (l *local) rejoinAll(saved float64) bool {
	room := saved - l.least
	l.joined, l.open, l.big = l.joined[:0], l.open[:0], elsewhere
	for i, top := range l.tops {
		l.joined = append(l.joined, int32(i))
		if i == 0 || l.t.child[top] >= 0 {
			l.open = append(l.open, int32(i))
			continue
		}
		l.mark[top], l.part[top] = l.now, int32(i)
	}
	ok := l.rejoinLeaves(&room) && l.enumerate()
	if ok {
		for _, j := range l.joints {
			l.unite(l.part[j.top], l.component(j.far))
		}
		for left := len(l.tops) - 2 - len(l.joints); left >= 0 && ok; left-- {
			ok = l.rejoin(l.smallest(), &room, left)
		}
	}
	if ok {
		l.gain = room + l.least
		l.commit()
	}
	for _, v := range l.moved {
		l.delta[v] = 0
	}
	return ok
}

func (l *local) rejoinLeaves(room *float64) bool {
	for i, top := range l.tops {
		if i > 0 && l.t.child[top] < 0 {
			if left := len(l.tops) - 2 - len(l.joints); !l.rejoin(l.joined.Find(int32(i)), room, left) {
				return false
			}
		}
	}
	return true
}

// smallest returns the smallest piece.
func (l *local) smallest() int32 {
	big, from := l.joined.Find(l.big), free
	for i := range l.joined {
		if c := int32(i); c != big && l.joined.Find(c) == c && (from == free || len(l.pieces[c].nodes) < len(l.pieces[from].nodes)) {
			from = c
		}
	}
	return from
}

// component returns the piece of v, or free.
func (l *local) component(v int32) int32 {
	if l.mark[v] == l.now {
		if l.part[v] < 0 {
			return l.part[v]
		}
		return l.joined.Find(l.part[v])
	}
	switch {
	case !l.t.on(v):
		return free
	case l.big == elsewhere:
		return elsewhere
	}
	return l.joined.Find(l.big)
}

// spare says whether v, on a piece, may have one edge more.
func (l *local) spare(v int32) bool {
	limit := l.g.limit[v]
	return limit == Unlimited || l.t.degree[v]+l.delta[v] < limit
}

// rejoin joins a piece to another one by a shortest path, if that leaves room
// for as many more.
func (l *local) rejoin(from int32, room *float64, more int) bool {
	length, last, near := l.search(from, *room-float64(l.floor*float64(more)))
	if last < 0 {
		return false
	}
	*room -= length
	far := l.g.other(last, near)
	to := l.component(far)
	j := joint{far: far, begin: int32(len(l.added))}
	l.added = append(l.added, last)
	l.shift(far, 1)
	p := &l.pieces[from]
	for l.component(near) < 0 {
		l.shift(near, 2)
		l.mark[near], l.part[near] = l.now, from
		p.nodes = append(p.nodes, near)
		e := l.labels.via[near]
		l.added = append(l.added, e)
		near = l.g.other(e, near)
	}
	l.shift(near, 1)
	j.top, j.end = near, int32(len(l.added))
	l.joints = append(l.joints, j)
	if to != elsewhere {
		l.unite(from, to)
	}
	return true
}

// unite makes one of two pieces, or of one.
func (l *local) unite(a, b int32) {
	a, b = l.joined.Find(a), l.joined.Find(b)
	if !l.joined.Join(a, b) || l.big >= 0 && l.joined.Find(l.big) == l.joined.Find(a) {
		return
	}
	p, q := &l.pieces[min(a, b)], &l.pieces[max(a, b)]
	if len(p.nodes) < len(q.nodes) {
		p.nodes, q.nodes = q.nodes, p.nodes
	}
	p.nodes = append(p.nodes, q.nodes...)
}

// search finds the shortest path from a piece to another one. It returns the
// path's length, its last edge and that edge's near end; the edge is -1 if no
// path is shorter than bound.
func (l *local) search(from int32, bound float64) (length float64, last, near int32) {
	l.labels.reset()
	s := frontier{l: l, from: from, length: bound, last: -1}
	sources, turn := l.pieces[from].nodes, 0
	if l.rng != nil {
		turn = l.rng.IntN(len(sources))
	}
	for i := range sources {
		if i += turn; i >= len(sources) {
			i -= len(sources)
		}
		if l.g.meter.spent() {
			return bound, -1, -1
		}
		if v := sources[i]; l.spare(v) && l.cheapest[v] < s.length {
			s.relax(v, 0)
			if s.length <= l.floor {
				break
			}
		}
	}
	for {
		v, dist, some := l.labels.nearest()
		if l.g.meter.spent() {
			return bound, -1, -1
		}
		if !some || dist >= s.length {
			return s.length, s.last, s.near
		}
		if dist+l.cheapest[v] < s.length {
			s.relax(v, dist)
		}
	}
}

// frontier is the state of one search.
type frontier struct {
	l          *local
	from       int32
	length     float64 // of the best path so far, or the bound
	last, near int32
}

func (s *frontier) relax(v int32, dist float64) {
	l := s.l
	arcs := l.g.at(v)
	turn := 0
	if l.rng != nil {
		turn = l.rng.IntN(len(arcs))
	}
	for i := range arcs {
		if s.length <= dist+l.floor {
			break // no other path is shorter
		}
		l.g.meter.add(1)
		if i += turn; i >= len(arcs) {
			i -= len(arcs)
		}
		a := arcs[i]
		length := dist + l.cost[a.edge]
		if length >= s.length {
			continue
		}
		switch c := l.component(a.to); {
		case c == s.from || c == barred:
		case c == free:
			if length+l.cheapest[a.to] < s.length && l.g.passable(a.to) {
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
	for _, top := range l.tops[1:] {
		t.cut(top)
	}
	for _, v := range l.taken {
		t.cut(v)
	}
	for _, v := range l.taken {
		t.remove(v)
	}
	for _, j := range l.joints {
		t.evert(j.top)
		at := j.far
		for _, e := range l.added[j.begin:j.end] {
			v := l.g.other(e, at)
			if !t.on(v) {
				t.add(v)
			}
			t.link(v, at, e)
			at = v
		}
	}
	if l.big > 0 {
		t.reroot(l.tops[l.big])
	}
}
