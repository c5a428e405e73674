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
