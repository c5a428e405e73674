package pathsel

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/topology"
)

// Route is an edge of a tree that leads over several links, through switches
// that forward and do not reduce.
type Route struct {
	Vertex int32             // of the child, an index in Tree.Vertices; -1 where it is a member
	Rank   int32             // of the child; -1 where it is a vertex
	Links  []topology.LinkID // from the child to the parent, two at least; the first is its Up or Link
}

// routeIndex has the routes of a tree by child: a vertex, or ofRank of a member.
type routeIndex map[int32][]topology.LinkID

func ofRank(rank int) int32 { return ^int32(rank) }

func (r *Route) child() int32 {
	if r.Vertex >= 0 {
		return r.Vertex
	}
	return ofRank(int(r.Rank))
}

func (t Tree) routesByChild() routeIndex {
	if len(t.Routes) == 0 {
		return nil
	}
	x := make(routeIndex, len(t.Routes))
	for i := range t.Routes {
		x[t.Routes[i].child()] = t.Routes[i].Links
	}
	return x
}

// of returns the links of the edge to a child, whose first is given.
func (x routeIndex) of(child int32, first topology.LinkID) []topology.LinkID {
	if links := x[child]; links != nil {
		return links
	}
	return []topology.LinkID{first}
}

// links returns how many links the edge to a child has.
func (x routeIndex) links(child int32) int { return max(1, len(x[child])) }

// times returns how many edges lead over each link, if any has several; nil
// where no edge is a route.
func (t Tree) times() map[topology.LinkID]int {
	if len(t.Routes) == 0 {
		return nil
	}
	times := map[topology.LinkID]int{}
	for l := range t.Links() {
		times[l]++
	}
	return times
}

// Edges are the edges of a tree, for who asks for many.
type Edges struct {
	tree   *Tree
	routes routeIndex
}

// Edges returns the tree's.
func (t *Tree) Edges() Edges { return Edges{t, t.routesByChild()} }

// OfVertex returns the links from vertex v to its parent, v's own end first: one,
// or those of a route. The root has none.
func (e Edges) OfVertex(v int) []topology.LinkID {
	if up := e.tree.Vertices[v].Up; up != topology.NoLink {
		return e.routes.of(int32(v), up)
	}
	return nil
}

// OfLeaf returns the links from a member to its switch likewise.
func (e Edges) OfLeaf(rank int) []topology.LinkID {
	return e.routes.of(ofRank(rank), e.tree.Leaves[rank].Link)
}

// Edge returns the links of the edge from vertex v to its parent, v's own end
// first: one, or those of a route. The root has none.
func (t Tree) Edge(v int) []topology.LinkID { return t.Edges().OfVertex(v) }

// Forwarders returns the switches that the tree's edges pass and that do not
// reduce, in the order of Routes, each once for each edge through it.
func (t Tree) Forwarders(g *topology.Graph) []topology.NodeID {
	var all []topology.NodeID
	for _, p := range t.Routes {
		at := t.childOf(p)
		for _, l := range p.Links[:len(p.Links)-1] {
			at = g.Across(l, at)
			all = append(all, at)
		}
	}
	return all
}

func (t Tree) childOf(p Route) topology.NodeID {
	if p.Vertex >= 0 {
		return t.Vertices[p.Vertex].Switch
	}
	return t.Leaves[p.Rank].Host
}

// checkRoutes reports the first route that is none between its ends over usable
// links, or that passes a vertex of the tree. Routes may have links and
// forwarding switches in common.
func (t Tree) checkRoutes(view topology.View, seen map[topology.NodeID]bool) error {
	g := view.Graph()
	for i, p := range t.Routes {
		isVertex := p.Vertex > 0 && int(p.Vertex) < len(t.Vertices) && p.Rank == -1
		isLeaf := p.Vertex == -1 && p.Rank >= 0 && int(p.Rank) < len(t.Leaves)
		if !isVertex && !isLeaf || len(p.Links) < 2 {
			return fmt.Errorf("route %d is of no child, or has fewer than two links", i)
		}
		var first topology.LinkID
		var parent int32
		if isVertex {
			first, parent = t.Vertices[p.Vertex].Up, t.Vertices[p.Vertex].Parent
		} else {
			first, parent = t.Leaves[p.Rank].Link, t.Leaves[p.Rank].Vertex
		}
		if p.Links[0] != first {
			return fmt.Errorf("route %d does not begin with its child's link", i)
		}
		at := t.childOf(p)
		for k, l := range p.Links {
			if !g.HasLink(l) || g.Link(l).Ends[0].Node != at && g.Link(l).Ends[1].Node != at {
				return fmt.Errorf("route %d breaks at link %d", i, l)
			}
			if !view.Usable(l) {
				return fmt.Errorf("link %s or a node at its end is down", g.LinkName(l))
			}
			at = g.Across(l, at)
			if k < len(p.Links)-1 && (seen[at] || !g.IsSwitch(at)) {
				return fmt.Errorf("route %d passes %s, which is a vertex of the tree or no switch", i, g.Name(at))
			}
		}
		if at != t.Vertices[parent].Switch {
			return errors.New("a route ends at another switch than its child's parent")
		}
	}
	return nil
}
