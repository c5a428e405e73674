package steiner

// A grower builds trees as Takahashi and Matsuyama do: from a start, the
// nearest terminal is joined to the tree by a shortest path, again and again.
// It keeps the limits: a node that has all its edges gets no further one.
type grower struct {
	g      *net
	labels *labels
	on     []bool // by node: on the tree
	degree []int32
	nodes  []int32 // on the tree
	edges  []int32
}

func newGrower(g *net) *grower {
	n := g.nodes()
	return &grower{g: g, labels: newLabels(n), on: make([]bool, n), degree: make([]int32, n)}
}

// grow returns the edges of a tree that begins at start, by the given costs and
// over the edges that are allowed (nil: all); ok is false if it found none, or
// the budget ended. The
// result is good until the next call.
func (w *grower) grow(start int32, cost []float64, allowed []bool) (edges []int32, ok bool) {
	for _, v := range w.nodes {
		w.on[v], w.degree[v] = false, 0
	}
	w.nodes, w.edges = w.nodes[:0], w.edges[:0]
	w.labels.reset()
	w.add(start)
	missing := len(w.g.terms)
	if w.g.term[start] {
		missing--
	}
	for missing > 0 {
		v, dist, some := w.labels.nearest()
		switch {
		case !some || w.g.meter.spent():
			return nil, false
		case w.g.term[v] && !w.on[v]:
			if w.join(v) {
				missing--
			} else {
				w.restart()
			}
		case w.on[v] && w.degree[v] >= w.g.limit[v]:
		default:
			w.relax(v, dist, cost, allowed)
		}
	}
	w.edges = w.g.prune(w.edges)
	return w.edges, w.g.within(w.edges)
}

func (w *grower) relax(v int32, dist float64, cost []float64, allowed []bool) {
	arcs := w.g.at(v)
	w.g.meter.add(len(arcs))
	for _, a := range arcs {
		if w.on[a.to] || allowed != nil && !allowed[a.edge] || !w.g.passable(a.to) && !w.g.term[a.to] {
			continue
		}
		w.labels.offer(a.to, dist+cost[a.edge], a.edge)
	}
}

// add puts v on the tree.
func (w *grower) add(v int32) {
	w.on[v] = true
	w.nodes = append(w.nodes, v)
	w.labels.offer(v, 0, -1)
}

// join puts the path that leads to the terminal v on the tree. It reports false
// if the path begins at a node which has had all its edges meanwhile.
func (w *grower) join(v int32) bool {
	base := v
	for !w.on[base] {
		base = w.g.other(w.labels.via[base], base)
	}
	if w.degree[base] >= w.g.limit[base] {
		return false
	}
	for v != base {
		e := w.labels.via[v]
		below := w.g.other(e, v)
		w.edges = append(w.edges, e)
		w.degree[v]++
		w.degree[below]++
		w.add(v)
		v = below
	}
	return true
}

// restart forgets all paths found, and searches again from the nodes of the
// tree that can have a further edge.
func (w *grower) restart() {
	w.labels.reset()
	for _, v := range w.nodes {
		if w.degree[v] < w.g.limit[v] {
			w.labels.offer(v, 0, -1)
		}
	}
}
