package steiner

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/graph"
)

func TestWeighted(t *testing.T) {
	g, err := NewGraph(4, [][2]int32{{0, 1}, {1, 0}, {1, 2}, {2, 3}, {0, 3}})
	if err != nil {
		t.Fatal(err)
	}
	p := Problem{Graph: g, Cost: []float64{5, 2, 3, 1, math.Inf(1)}, Limit: []int32{9, 9, 9, 0}, Terminals: []int32{0}}
	w := NewWeighted(&p)
	if n := len(graph.NodesOf(w.Nodes())); n != 3 || w.Node(3) != nil || w.Node(-1) != nil || w.Node(2).ID() != 2 {
		t.Errorf("%d nodes", n)
	}
	for _, c := range []struct {
		x, y int64
		cost float64
		ok   bool
	}{{0, 1, 2, true}, {1, 0, 2, true}, {1, 2, 3, true}, {2, 3, math.Inf(1), false}, {0, 3, math.Inf(1), false}, {1, 1, 0, true}, {3, 3, 0, false}} {
		if cost, ok := w.Weight(c.x, c.y); cost != c.cost || ok != c.ok {
			t.Errorf("weight of %d to %d: %v, %v", c.x, c.y, cost, ok)
		}
		if c.x == c.y {
			continue
		}
		e := w.WeightedEdgeBetween(c.x, c.y)
		if (e != nil) != c.ok || (w.EdgeBetween(c.x, c.y) != nil) != c.ok || w.HasEdgeBetween(c.x, c.y) != c.ok {
			t.Errorf("edge of %d and %d: %v", c.x, c.y, e)
		}
		if c.ok && (e.From().ID() != c.x || e.ReversedEdge().From().ID() != c.y || e.Weight() != c.cost) {
			t.Errorf("edge of %d and %d: %v", c.x, c.y, e)
		}
	}
	near := w.From(1)
	if near.Node() != nil || near.Len() != 2 || !near.Next() || near.Node().ID() != 0 || near.Len() != 1 || !near.Next() || near.Next() || near.Node() != nil {
		t.Error("the walk over the neighbours of node 1")
	}
	if near.Reset(); near.Len() != 2 {
		t.Error("the walk does not begin anew")
	}
	if edges := w.WeightedEdges(); edges.Len() != 2 || edges.WeightedEdge() != nil {
		t.Errorf("%d edges", edges.Len())
	}
}

// Weighted shows a problem's graph and costs to gonum's algorithms. Nodes have
// their numbers as IDs; forbidden edges and nodes do not exist for them, and of
// parallel edges only the cheapest does. It takes no copy of the arrays.
type Weighted struct{ p *Problem }

var (
	_ graph.Undirected         = Weighted{}
	_ graph.WeightedUndirected = Weighted{}
)

// NewWeighted returns the view of a valid problem.
func NewWeighted(p *Problem) Weighted { return Weighted{p} }

// vertex is a node's number.
type vertex int32

// ID returns the number.
func (v vertex) ID() int64 { return int64(v) }

// side is an edge as seen from its end from.
type side struct {
	from, to vertex
	weight   float64
}

// From returns the end that the edge is seen from.
func (s side) From() graph.Node { return s.from }

// To returns the other end.
func (s side) To() graph.Node { return s.to }

// Weight returns the cost.
func (s side) Weight() float64 { return s.weight }

// ReversedEdge returns the edge as seen from the other end.
func (s side) ReversedEdge() graph.Edge { return side{s.to, s.from, s.weight} }

// has says whether there is a node of that number that is not forbidden.
func (w Weighted) has(id int64) bool {
	return id >= 0 && id < int64(w.p.Graph.Nodes()) && w.p.limit(int32(id)) > 0
}

// Node returns the node, or nil if it does not exist or is forbidden.
func (w Weighted) Node(id int64) graph.Node {
	if !w.has(id) {
		return nil
	}
	return vertex(id)
}

// Nodes returns all nodes that are not forbidden.
func (w Weighted) Nodes() graph.Nodes {
	var all []vertex
	for v := range int64(w.p.Graph.Nodes()) {
		if w.has(v) {
			all = append(all, vertex(v))
		}
	}
	return newVertices(all)
}

// From returns the neighbours of a node.
func (w Weighted) From(id int64) graph.Nodes {
	var near []vertex
	for _, s := range w.sides(id) {
		near = append(near, s.to)
	}
	return newVertices(near)
}

// sides returns the cheapest edge to each neighbour.
func (w Weighted) sides(id int64) []side {
	if !w.has(id) {
		return nil
	}
	g, v := w.p.Graph, int32(id)
	var out []side
	place := make(map[int32]int)
	for i := g.Offset[v]; i < g.Offset[v+1]; i++ {
		to, cost := g.Neighbor[i], w.p.Cost[g.Edge[i]]
		if math.IsInf(cost, 1) || !w.has(int64(to)) {
			continue
		}
		if at, ok := place[to]; ok {
			out[at].weight = min(out[at].weight, cost)
			continue
		}
		place[to] = len(out)
		out = append(out, side{vertex(v), vertex(to), cost})
	}
	return out
}

// between returns the edge from x to y.
func (w Weighted) between(x, y int64) (side, bool) {
	for _, s := range w.sides(x) {
		if s.to.ID() == y {
			return s, true
		}
	}
	return side{}, false
}

// HasEdgeBetween says whether an edge joins x and y.
func (w Weighted) HasEdgeBetween(x, y int64) bool {
	_, ok := w.between(x, y)
	return ok
}

// Edge returns the edge from u to v, or nil.
func (w Weighted) Edge(u, v int64) graph.Edge {
	if s, ok := w.between(u, v); ok {
		return s
	}
	return nil
}

// EdgeBetween returns the edge from x to y, or nil.
func (w Weighted) EdgeBetween(x, y int64) graph.Edge { return w.Edge(x, y) }

// WeightedEdge returns the edge from u to v, or nil.
func (w Weighted) WeightedEdge(u, v int64) graph.WeightedEdge {
	if s, ok := w.between(u, v); ok {
		return s
	}
	return nil
}

// WeightedEdgeBetween returns the edge from x to y, or nil.
func (w Weighted) WeightedEdgeBetween(x, y int64) graph.WeightedEdge { return w.WeightedEdge(x, y) }

// Weight returns what the edge from x to y costs: 0 if they are one node, and
// +Inf and false if no edge joins them.
func (w Weighted) Weight(x, y int64) (float64, bool) {
	if x == y {
		return 0, w.has(x)
	}
	if s, ok := w.between(x, y); ok {
		return s.weight, true
	}
	return math.Inf(1), false
}

// WeightedEdges returns every edge once, from its smaller node.
func (w Weighted) WeightedEdges() graph.WeightedEdges {
	var all []side
	for v := range int64(w.p.Graph.Nodes()) {
		for _, s := range w.sides(v) {
			if s.from < s.to {
				all = append(all, s)
			}
		}
	}
	return &sides{walk[side]{all: all, at: -1}}
}

// walk is the state that gonum's iterators have.
type walk[T any] struct {
	all []T
	at  int
}

// Next goes to the next element and says whether there is one.
func (w *walk[T]) Next() bool {
	if w.at >= len(w.all)-1 {
		w.at = len(w.all)
		return false
	}
	w.at++
	return true
}

// Len returns how many elements are left.
func (w *walk[T]) Len() int { return max(0, len(w.all)-w.at-1) }

// Reset goes back to before the first element.
func (w *walk[T]) Reset() { w.at = -1 }

func (w *walk[T]) valid() bool { return w.at >= 0 && w.at < len(w.all) }

type vertices struct{ walk[vertex] }

func newVertices(all []vertex) graph.Nodes { return &vertices{walk[vertex]{all: all, at: -1}} }

// Node returns the present node.
func (v *vertices) Node() graph.Node {
	if !v.valid() {
		return nil
	}
	return v.all[v.at]
}

type sides struct{ walk[side] }

// WeightedEdge returns the present edge.
func (s *sides) WeightedEdge() graph.WeightedEdge {
	if !s.valid() {
		return nil
	}
	return s.all[s.at]
}
