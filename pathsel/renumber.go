package pathsel

import "github.com/tributary-fabric/tributary/topology"

// Numbers say what the numbers of nodes and links are in another graph; false: it
// has no such node or link. A topology.Mapping is one.
type Numbers interface {
	At(topology.NodeID) (topology.NodeID, bool)
	Link(topology.LinkID) (topology.LinkID, bool)
}

// Renumbered returns t with the numbers of another graph, and whether all of it is
// there. What is not has topology.NoNode or topology.NoLink: such a tree is none any
// more, but it can be a Request's Old.
func (t Tree) Renumbered(to Numbers) (next Tree, whole bool) {
	whole = true
	node := func(n topology.NodeID) topology.NodeID {
		n, ok := to.At(n)
		whole = whole && ok
		return n
	}
	link := func(l topology.LinkID) topology.LinkID {
		l, ok := to.Link(l)
		whole = whole && ok
		return l
	}
	next.Vertices, next.Leaves = make([]Vertex, len(t.Vertices)), make([]Leaf, len(t.Leaves))
	for i, v := range t.Vertices {
		next.Vertices[i] = Vertex{Switch: node(v.Switch), Parent: v.Parent, Up: topology.NoLink}
		if v.Up != topology.NoLink {
			next.Vertices[i].Up = link(v.Up)
		}
	}
	for rank, l := range t.Leaves {
		next.Leaves[rank] = Leaf{Host: node(l.Host), Vertex: l.Vertex, Link: link(l.Link)}
	}
	for _, r := range t.Routes {
		links := make([]topology.LinkID, len(r.Links))
		for i, l := range r.Links {
			links[i] = link(l)
		}
		next.Routes = append(next.Routes, Route{Vertex: r.Vertex, Rank: r.Rank, Links: links})
	}
	return next, whole
}

// Renumbered is Tree.Renumbered for a plan. Rivals and members left out that are
// not there any more are dropped.
func (p Plan) Renumbered(to Numbers) (next Plan, whole bool) {
	next = p
	next.Tree, whole = p.Tree.Renumbered(to)
	next.Rivals, next.LeftOut = nil, nil
	for _, r := range p.Rivals {
		if root, ok := to.At(r.Root); ok {
			r.Root = root
			next.Rivals = append(next.Rivals, r)
		}
	}
	for _, o := range p.LeftOut {
		if host, ok := to.At(o.Host); ok {
			o.Host = host
			next.LeftOut = append(next.LeftOut, o)
		}
	}
	return next, whole
}
