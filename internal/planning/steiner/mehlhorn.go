package steiner

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
)

// bridge joins the regions of two terminals by an edge.
type bridge struct {
	length float64
	edge   int32
}

// mehlhorn returns the edges of Mehlhorn's tree: every node belongs to the
// region of its nearest terminal; of the shortest paths that cross from one
// region to another, those of a minimum spanning tree of the terminals are
// taken; then a minimum spanning tree of their nodes, without its useless
// leaves. ok is false if it breaks a limit or does not span.
func (g *net) mehlhorn() (edges []int32, ok bool) {
	l := newLabels(g.nodes())
	region := g.regions(l)
	bridges := make([]bridge, 0, g.edges())
	for e, ends := range g.ends {
		if u, v := ends[0], ends[1]; region[u] >= 0 && region[v] >= 0 && region[u] != region[v] {
			bridges = append(bridges, bridge{l.dist[u] + g.cost[e] + l.dist[v], int32(e)})
		}
	}
	slices.SortFunc(bridges, func(a, b bridge) int {
		return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(a.edge, b.edge))
	})
	g.meter.add(len(bridges))
	on := make([]bool, g.nodes())
	joined := disjoint.New(g.nodes())
	for _, b := range bridges {
		ends := g.ends[b.edge]
		if !joined.Join(region[ends[0]], region[ends[1]]) {
			continue
		}
		for _, v := range ends {
			for !on[v] {
				on[v] = true
				if e := l.via[v]; e >= 0 {
					v = g.other(e, v)
				}
			}
		}
	}
	edges = g.prune(g.spanning(g.induced(on)))
	return edges, g.spans(edges) && g.within(edges)
}

// regions labels every node that a terminal reaches with the way to its nearest
// one, and returns that terminal by node, -1 where there is none.
func (g *net) regions(l *labels) []int32 {
	region := make([]int32, g.nodes())
	for v := range region {
		region[v] = -1
	}
	l.reset()
	for _, t := range g.terms {
		region[t] = t
		l.offer(t, 0, -1)
	}
	for {
		v, dist, some := l.nearest()
		if !some {
			return region
		}
		if e := l.via[v]; e >= 0 {
			region[v] = region[g.other(e, v)]
		}
		arcs := g.at(v)
		g.meter.add(len(arcs))
		for _, a := range arcs {
			l.offer(a.to, dist+g.cost[a.edge], a.edge)
		}
	}
}

// induced returns the edges between nodes that are on.
func (g *net) induced(on []bool) []int32 {
	var edges []int32
	for e, ends := range g.ends {
		if on[ends[0]] && on[ends[1]] {
			edges = append(edges, int32(e))
		}
	}
	return edges
}

// spanning returns those of the edges that are a minimum spanning forest of
// them. It reorders edges.
func (g *net) spanning(edges []int32) []int32 {
	g.meter.add(len(edges))
	slices.SortFunc(edges, func(a, b int32) int {
		return cmp.Or(cmp.Compare(g.cost[a], g.cost[b]), cmp.Compare(a, b))
	})
	joined := disjoint.New(g.nodes())
	return slices.DeleteFunc(edges, func(e int32) bool {
		return !joined.Join(g.ends[e][0], g.ends[e][1])
	})
}

// spans says whether edges, a forest whose leaves are terminals, are one tree
// on which all terminals are.
func (g *net) spans(edges []int32) bool {
	joined := disjoint.New(g.nodes())
	for _, e := range edges {
		joined.Join(g.ends[e][0], g.ends[e][1])
	}
	root := joined.Find(g.terms[0])
	for _, t := range g.terms {
		if joined.Find(t) != root {
			return false
		}
	}
	return true
}
