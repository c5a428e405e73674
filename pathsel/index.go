package pathsel

import (
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// Index finds the trees on a link or on a switch. It grows with the trees, and
// has four bytes a link and a switch of the graph beside. It is not safe for
// concurrent use.
type Index struct {
	graph    *topology.Graph
	links    []int32 // by link: the first of its entries, plus one
	switches []int32 // by switch index likewise
	entries  []entry
	free     int32 // the first entry that is not in use, plus one
}

// entry says that a tree is there; entries of one place are a list.
type entry struct {
	tree uint32
	next int32
}

// NewIndex returns the index of no trees in g.
func NewIndex(g *topology.Graph) *Index {
	return &Index{graph: g, links: make([]int32, g.Links()), switches: make([]int32, g.Switches())}
}

// Add notes a tree under a number of the caller's choice.
func (x *Index) Add(id uint32, t Tree) {
	x.each(t, func(list *int32) {
		if x.free == 0 {
			x.entries = append(x.entries, entry{})
			x.free = int32(len(x.entries))
		}
		at := x.free
		e := &x.entries[at-1]
		x.free, e.tree, e.next = e.next, id, *list
		*list = at
	})
}

// Remove takes back what Add noted with the same arguments.
func (x *Index) Remove(id uint32, t Tree) {
	x.each(t, func(list *int32) {
		for at := list; *at != 0; at = &x.entries[*at-1].next {
			if e := &x.entries[*at-1]; e.tree == id {
				gone := *at
				*at = e.next
				e.next, x.free = x.free, gone
				return
			}
		}
	})
}

func (x *Index) each(t Tree, f func(list *int32)) {
	for l := range t.Links() {
		f(&x.links[l])
	}
	for _, v := range t.Vertices {
		f(&x.switches[x.graph.SwitchIndex(v.Switch)])
	}
	for _, n := range t.Forwarders(x.graph) {
		f(&x.switches[x.graph.SwitchIndex(n)])
	}
}

// OnLink returns the trees on a link, in ascending order.
func (x *Index) OnLink(l topology.LinkID) []uint32 { return x.list(nil, x.links[l]) }

// OnNode returns the trees on a switch, be it that it only forwards an edge, or
// those that a host is a member of, in ascending order.
func (x *Index) OnNode(n topology.NodeID) []uint32 {
	if x.graph.IsSwitch(n) {
		return x.list(nil, x.switches[x.graph.SwitchIndex(n)])
	}
	var all []uint32
	for _, l := range x.graph.Adjacent(n) {
		all = x.list(all, x.links[l])
	}
	return all
}

// list adds the trees of a list to all.
func (x *Index) list(all []uint32, first int32) []uint32 {
	for at := first; at != 0; at = x.entries[at-1].next {
		all = append(all, x.entries[at-1].tree)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Down returns the trees that what is down in view has broken, in ascending
// order.
func (x *Index) Down(view topology.View) []uint32 {
	var all []uint32
	for n := range view.NodesDown() {
		all = append(all, x.OnNode(n)...)
	}
	for l := range view.LinksDown() {
		all = append(all, x.OnLink(l)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
