package main

import (
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// sentBytes is the bytes that each end of a link has sent, in the order of
// topology.Link.Ends.
type sentBytes [2]uint64

// bounds are what links must have carried, in bytes, while trees were in
// use.
type bounds struct {
	Least uint64 // on a tree: in each direction at least this
	Most  uint64 // on a tree: in each direction at most this; 0: any
	Stray uint64 // on no tree: in each direction at most this
}

// misplaced is a link whose traffic is not that of the trees.
type misplaced struct {
	Link  topology.LinkID
	Name  string // such as "leaf-0:5--spine-0:1"
	From  string // the node that sent
	Bytes uint64
	On    bool // the link is on a tree
	Want  uint64
}

// Error names the link and says what is wrong.
func (m *misplaced) Error() string {
	switch {
	case m.On && m.Bytes < m.Want:
		return fmt.Sprintf("link %s is on a tree, and carried %d bytes from %s; at least %d were to be", m.Name, m.Bytes, m.From, m.Want)
	case m.On:
		return fmt.Sprintf("link %s is on a tree, and carried %d bytes from %s; at most %d were to be", m.Name, m.Bytes, m.From, m.Want)
	}
	return fmt.Sprintf("link %s is on no tree, and carried %d bytes from %s; at most %d were to be", m.Name, m.Bytes, m.From, m.Want)
}

// audit compares what the links of g carried, by LinkID, with where the trees
// are, and returns each direction of a link that does not fit, by LinkID.
func audit(g *topology.Graph, trees []pathsel.Tree, carried []sentBytes, b bounds) []*misplaced {
	on := make([]bool, g.Links())
	for i := range trees {
		for l := range trees[i].Links() {
			on[l] = true
		}
	}
	var wrong []*misplaced
	for l, link := range g.AllLinks() {
		for end, bytes := range carried[l] {
			m := &misplaced{Link: l, Bytes: bytes, On: on[l]}
			switch {
			case on[l] && bytes < b.Least:
				m.Want = b.Least
			case on[l] && b.Most > 0 && bytes > b.Most:
				m.Want = b.Most
			case !on[l] && bytes > b.Stray:
				m.Want = b.Stray
			default:
				continue
			}
			m.Name, m.From = g.LinkName(l), g.Name(link.Ends[end].Node)
			wrong = append(wrong, m)
		}
	}
	return wrong
}
