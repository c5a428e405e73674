package pathsel

import (
	"container/heap"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// byTime returns the tree of least latency of those whose paths to the root are
// shortest in time: Dijkstra from every root that is tried, a switch that is on
// the tree already being preferred among equals.
func (p *Planner) byTime(a asked) (candidate, bool) {
	f := newSubgraph(a)
	if f.attachMembers() != nil {
		return candidate{}, false
	}
	roots := f.rankRoots()
	try := max(rootBudget/(8*(len(f.edges)+len(f.switches)+1)), minRoots)
	var best candidate
	found := false
	for _, root := range roots[:min(len(roots), try)] {
		t, ok := p.shortestTime(f, root)
		if !ok {
			continue
		}
		c := p.candidate(a, t, ByShortestPaths)
		if order := c.figures.Compare(best.figures, LeastLatency); !found || order < 0 || order == 0 && c.hash < best.hash {
			best, found = c, true
		}
	}
	best.tried = min(len(roots), try)
	return best, found
}

// shortestTime returns the tree of one root, unless a switch would have too many
// children.
func (p *Planner) shortestTime(f *subgraph, root int32) (Tree, bool) {
	n := len(f.switches)
	away := make([]time.Duration, n)
	up := make([]edge, n)
	for i := range away {
		away[i] = -1
	}
	line := &queue{{root, 0, edge{to: -1}}}
	for line.Len() > 0 {
		next := heap.Pop(line).(arrival)
		if away[next.at] >= 0 {
			continue
		}
		away[next.at], up[next.at] = next.after, next.up
		for _, e := range f.at(next.at) {
			if away[e.to] < 0 {
				after := next.after + p.latency(e.link) + p.cfg.Model.SwitchHop
				heap.Push(line, arrival{e.to, after, edge{to: next.at, link: e.link}})
			}
		}
	}
	on := make([]bool, n)
	on[root] = true
	var links []topology.LinkID
	for rank := range f.Members {
		best, bestAfter := edge{to: -1}, time.Duration(0)
		for _, e := range f.at(f.member(rank)) {
			after := away[e.to] + p.latency(e.link)
			if away[e.to] >= 0 && (best.to < 0 || after < bestAfter || after == bestAfter && on[e.to] && !on[best.to]) {
				best, bestAfter = e, after
			}
		}
		if best.to < 0 {
			return Tree{}, false
		}
		links = append(links, best.link)
		for at := best.to; !on[at]; at = up[at].to {
			on[at] = true
			links = append(links, up[at].link)
		}
	}
	w := newWiring(p, f.asked, len(links)+1)
	for _, l := range links {
		w.join(p.graph.Link(l).Ends[0].Node, l)
	}
	return w.tree(w.at(f.switches[root]), make([]Leaf, len(f.Members)))
}

// arrival is a switch and when it is reached.
type arrival struct {
	at    int32
	after time.Duration
	up    edge
}

// queue is a heap of arrivals, the earliest first, among equals the one of the
// lower number.
type queue []arrival

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	x, y := q[i], q[j]
	switch {
	case x.after != y.after:
		return x.after < y.after
	case x.at != y.at:
		return x.at < y.at
	}
	return x.up.link < y.up.link
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push and Pop are for package heap.
func (q *queue) Push(x any) { *q = append(*q, x.(arrival)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
