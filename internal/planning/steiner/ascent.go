package steiner

import (
	"math"

	"github.com/tributary-fabric/tributary/internal/planning/nearest"
)

// An ascent is Wong's dual ascent: from reduced costs equal to the costs, a cut
// that separates a terminal from the root, and whose terminal no other active
// one reaches over arcs without reduced cost, is chosen; its arcs are reduced
// by the least of them, and the bound rises by as much; until the root reaches
// every terminal over arcs without reduced cost.
type ascent struct {
	g       *net
	root    int32
	bound   float64   // without what the net has folded away
	reduced []float64 // by 2*edge+side: the arc that leaves ends[side]

	active []bool // by node: a terminal not yet known to be reached
	seen   []int32
	now    int32
	queue  []int32
	cut    []int32 // arcs into the queue's nodes
	heap   nearest.Queue

	from, to *labels
}

func newAscent(g *net) *ascent {
	return &ascent{
		g: g, reduced: make([]float64, 2*g.edges()),
		active: make([]bool, g.nodes()), seen: make([]int32, g.nodes()),
		from: newLabels(g.nodes()), to: newLabels(g.nodes()),
	}
}

// run climbs towards root while the budget lasts. The bound is a lower bound
// wherever it ends.
func (a *ascent) run(root int32) {
	g := a.g
	a.begin(root)
	a.heap = a.heap[:0]
	for _, t := range g.terms {
		if a.active[t] = t != root; a.active[t] {
			a.heap.Push(float64(len(g.at(t))), t)
		}
	}
	for len(a.heap) > 0 {
		if g.meter.spent() {
			return
		}
		a.step(a.heap.Pop())
	}
}

// begin forgets all cuts.
func (a *ascent) begin(root int32) {
	a.root, a.bound = root, 0
	for e, c := range a.g.cost {
		a.reduced[2*e], a.reduced[2*e+1] = c, c
	}
}

// step raises the cut round one terminal, or puts it off or to rest.
func (a *ascent) step(top nearest.Entry) {
	t := top.Node
	if !a.separate(t) {
		a.active[t] = false
		return
	}
	// A cut that has grown much waits until it is the smallest.
	size := float64(len(a.cut))
	if len(a.heap) == 0 || size <= a.heap[0].Dist || size <= top.Dist {
		a.raise()
	}
	a.heap.Push(size, t)
}

// raise reduces the arcs of the cut by the least of them, and returns by how
// much.
func (a *ascent) raise() float64 {
	least := math.Inf(1)
	for _, arc := range a.cut {
		least = min(least, a.reduced[arc])
	}
	a.bound += least
	for _, arc := range a.cut {
		a.reduced[arc] -= least
	}
	return least
}

// separate finds the cut round t: the arcs that lead to the nodes from which t
// is reached over arcs without reduced cost. It reports false if the root or an
// active terminal is among these nodes, if nothing leads to them: a leaf is
// behind leaves, or if the budget ends.
func (a *ascent) separate(t int32) bool {
	if !a.surround(t) {
		return false
	}
	size := 0
	for _, arc := range a.cut {
		if a.seen[a.g.ends[arc/2][arc&1]] != a.now {
			a.cut[size] = arc
			size++
		}
	}
	a.cut = a.cut[:size]
	return size > 0
}

// surround marks the nodes from which t is reached over arcs without reduced
// cost, and collects the arcs with reduced cost that lead to one of them when
// it is found. It reports false if the root or an active terminal is among them,
// or the budget ends.
func (a *ascent) surround(t int32) bool {
	g := a.g
	a.now++
	a.seen[t] = a.now
	a.queue, a.cut = append(a.queue[:0], t), a.cut[:0]
	for i := 0; i < len(a.queue); i++ {
		v := a.queue[i]
		if g.meter.spent() {
			return false
		}
		arcs := g.at(v)
		g.meter.add(len(arcs))
		for _, out := range arcs {
			u := out.to
			if a.seen[u] == a.now || u != a.root && !g.passable(u) {
				continue
			}
			arc := a.into(out.edge, v)
			if a.reduced[arc] > 0 {
				a.cut = append(a.cut, arc)
				continue
			}
			if u == a.root || a.active[u] {
				return false
			}
			a.seen[u] = a.now
			a.queue = append(a.queue, u)
		}
	}
	return true
}

// into returns the arc of edge e that leads to v.
func (a *ascent) into(e, v int32) int32 {
	if a.g.ends[e][1] == v {
		return 2 * e
	}
	return 2*e + 1
}

// free marks the edges that have an arc without reduced cost.
func (a *ascent) free(allowed []bool) {
	for e := range allowed {
		allowed[e] = a.reduced[2*e] == 0 || a.reduced[2*e+1] == 0
	}
}

// distances finds the reduced distances of every node from the root, and to the
// nearest terminal.
func (a *ascent) distances() {
	a.from.reset()
	a.from.offer(a.root, 0, -1)
	a.spread(a.from, 1)
	a.to.reset()
	for _, t := range a.g.terms {
		if t != a.root {
			a.to.offer(t, 0, -1)
		}
	}
	a.spread(a.to, 0)
}

// spread ends the search that l has begun: along the arcs if forth is 1,
// against them if it is 0.
func (a *ascent) spread(l *labels, forth int32) {
	g := a.g
	for {
		v, dist, some := l.nearest()
		if !some {
			return
		}
		arcs := g.at(v)
		g.meter.add(len(arcs))
		for _, out := range arcs {
			l.offer(out.to, dist+a.reduced[a.into(out.edge, v)^forth], out.edge)
		}
	}
}

// useful marks the edges that a tree which costs less than cost can have, and
// counts them. It goes by the reduced cost of the cheapest way from the root
// over the edge to a terminal.
func (a *ascent) useful(cost float64) (kept []bool, left int) {
	g := a.g
	a.distances()
	room := cost - g.slack(cost) - a.bound
	kept = make([]bool, g.edges())
	for e, ends := range g.ends {
		u, v := ends[0], ends[1]
		kept[e] = a.from.at(u)+a.reduced[2*e]+a.to.at(v) <= room ||
			a.from.at(v)+a.reduced[2*e+1]+a.to.at(u) <= room
		if kept[e] {
			left++
		}
	}
	return kept, left
}
