package pathsel

import (
	"math"

	"github.com/tributary-fabric/tributary/internal/planning/nearest"
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
	away, done := make([]float64, n), make([]bool, n) // ns
	up := make([]edge, n)
	for i := range away {
		away[i] = math.Inf(1)
	}
	away[root] = 0
	line := nearest.Queue{{Dist: 0, Node: root}}
	for len(line) > 0 {
		at := line.Pop().Node
		if done[at] {
			continue
		}
		done[at] = true
		for _, e := range f.at(at) {
			after := away[at] + float64(p.latency(e.link)+p.cfg.Model.SwitchHop)
			if done[e.to] || after > away[e.to] || after == away[e.to] && e.link >= up[e.to].link {
				continue
			}
			away[e.to], up[e.to] = after, edge{to: at, link: e.link}
			line.Push(after, e.to)
		}
	}
	on := make([]bool, n)
	on[root] = true
	var links []topology.LinkID
	for rank := range f.Members {
		best, bestAfter := edge{to: -1}, 0.0
		for _, e := range f.at(f.member(rank)) {
			after := away[e.to] + float64(p.latency(e.link))
			if done[e.to] && (best.to < 0 || after < bestAfter || after == bestAfter && on[e.to] && !on[best.to]) {
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
