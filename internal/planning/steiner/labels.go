package steiner

import (
	"math"

	"github.com/tributary-fabric/tributary/internal/planning/nearest"
)

// labels holds what a search for shortest paths knows of each node. A search
// begins by reset, which takes no time.
type labels struct {
	dist  []float64
	via   []int32 // the last edge of the path
	round []int32 // the search that wrote dist and via
	now   int32
	heap  nearest.Queue
}

func newLabels(nodes int) *labels {
	return &labels{dist: make([]float64, nodes), via: make([]int32, nodes), round: make([]int32, nodes)}
}

func (l *labels) reset() {
	l.now++
	l.heap = l.heap[:0]
}

// offer reports that v can be reached at dist over the edge via (-1: v is where
// the search begins), and queues v if that is news.
func (l *labels) offer(v int32, dist float64, via int32) {
	if l.round[v] == l.now && l.dist[v] <= dist {
		return
	}
	l.round[v], l.dist[v], l.via[v] = l.now, dist, via
	l.heap.Push(dist, v)
}

// nearest returns the queued node of least distance; ok is false if none is.
func (l *labels) nearest() (v int32, dist float64, ok bool) {
	for len(l.heap) > 0 {
		top := l.heap.Pop()
		if l.dist[top.Node] == top.Dist {
			return top.Node, top.Dist, true
		}
	}
	return 0, 0, false
}

// at returns the distance of v, +Inf if the search did not come there.
func (l *labels) at(v int32) float64 {
	if l.round[v] != l.now {
		return math.Inf(1)
	}
	return l.dist[v]
}
