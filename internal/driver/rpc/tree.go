package rpc

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrOtherFabric: a tree is on nodes or links that a graph does not have.
var ErrOtherFabric = errors.New("rpc: the fabric has no such node or link")

// In returns the tree in a graph that has its nodes and links.
func (s *TreeState) In(g *topology.Graph) (pathsel.Tree, error) {
	p := placer{graph: g}
	var t pathsel.Tree
	for i, v := range s.Switches {
		n, above := p.node(v.Switch), topology.NoNode
		if i > 0 {
			above = t.Vertices[v.Parent].Switch
		}
		up := p.edge(n, above, v.Links, int32(i), -1, &t)
		t.Vertices = append(t.Vertices, pathsel.Vertex{Switch: n, Parent: int32(v.Parent), Up: up})
	}
	for rank, l := range s.Members {
		n := p.node(l.Host)
		link := p.edge(n, t.Vertices[l.Vertex].Switch, l.Links, -1, int32(rank), &t)
		t.Leaves = append(t.Leaves, pathsel.Leaf{Host: n, Vertex: int32(l.Vertex), Link: link})
	}
	if p.err != nil {
		return pathsel.Tree{}, p.err
	}
	return t, nil
}

// placer finds names in a graph; the first that is not there counts.
type placer struct {
	graph *topology.Graph
	err   error
}

func (p *placer) fail(name string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %q, which is on a tree", ErrOtherFabric, name)
	}
}

func (p *placer) node(name string) topology.NodeID {
	n, ok := p.graph.Lookup(name)
	if !ok {
		p.fail(name)
		return 0
	}
	return n
}

// edge finds the links of an edge from a child to what is above it, which of the
// root is nothing, adds its route to t if it has several, and returns the first.
func (p *placer) edge(from, above topology.NodeID, names []string, vertex, rank int32, t *pathsel.Tree) topology.LinkID {
	if above == topology.NoNode && len(names) == 0 {
		return topology.NoLink
	}
	child := p.graph.Name(from)
	links := make([]topology.LinkID, len(names))
	for i, name := range names {
		links[i] = topology.NoLink
		for _, l := range p.graph.Adjacent(from) {
			if p.graph.LinkName(l) == name {
				links[i], from = l, p.graph.Across(l, from)
				break
			}
		}
		if links[i] == topology.NoLink {
			p.fail(name)
			return 0
		}
	}
	if from != above || len(links) == 0 {
		p.fail(child + " with what is above it")
		return 0
	}
	if len(links) > 1 {
		t.Routes = append(t.Routes, pathsel.Route{Vertex: vertex, Rank: rank, Links: links})
	}
	return links[0]
}
