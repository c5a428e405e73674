package routing

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/topology"
)

// Route is the way of a switch to an address: by a link of its own.
type Route struct {
	Address netip.Addr
	Link    topology.LinkID
}

// table is what is known of one switch: the distance of every node in links, and the
// links of the switch that shortest paths to it begin with.
type table struct {
	view     topology.View
	graph    *topology.Graph
	from     topology.NodeID
	distance []int32 // -1: out of reach
	first    [][]topology.LinkID
}

// Of returns the routes of a switch to the addresses of all links' ends but its own, in
// the order of the links.
func Of(v topology.View, from topology.NodeID) []Route {
	t := &table{view: v, graph: v.Graph(), from: from}
	t.explore()
	var all []Route
	for l, link := range t.graph.AllLinks() {
		for _, end := range link.Ends {
			a := t.graph.AddressAt(l, end.Node)
			if !a.IsValid() || end.Node == from {
				continue
			}
			if by, ok := t.way(l, end.Node); ok {
				all = append(all, Route{Address: a, Link: by})
			}
		}
	}
	return all
}

// explore finds all shortest paths from the switch.
func (t *table) explore() {
	n := t.graph.Nodes()
	t.distance, t.first = make([]int32, n), make([][]topology.LinkID, n)
	for i := range t.distance {
		t.distance[i] = -1
	}
	t.distance[t.from] = 0
	if !t.view.NodeUp(t.from) {
		return
	}
	queue := []topology.NodeID{t.from}
	for len(queue) > 0 {
		node := queue[0]
		queue = queue[1:]
		if node != t.from && t.graph.IsHost(node) {
			continue
		}
		for _, l := range t.graph.Adjacent(node) {
			if !t.view.Usable(l) {
				continue
			}
			next := t.graph.Across(l, node)
			if t.distance[next] < 0 {
				t.distance[next] = t.distance[node] + 1
				queue = append(queue, next)
			}
			if t.distance[next] != t.distance[node]+1 {
				continue
			}
			if node == t.from {
				t.first[next] = append(t.first[next], l)
			} else {
				t.first[next] = union(t.first[next], t.first[node])
			}
		}
	}
}

// union returns the links that are in one of two rising lists, as a rising list.
func union(x, y []topology.LinkID) []topology.LinkID {
	if len(x) == 0 {
		return y[:len(y):len(y)]
	}
	all := make([]topology.LinkID, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] < y[0]:
			all, x = append(all, x[0]), x[1:]
		case x[0] > y[0]:
			all, y = append(all, y[0]), y[1:]
		default:
			all, x, y = append(all, x[0]), x[1:], y[1:]
		}
	}
	return append(append(all, x...), y...)
}

// way returns the link by which a packet to the address at the end of a link begins.
func (t *table) way(l topology.LinkID, end topology.NodeID) (topology.LinkID, bool) {
	before := t.graph.Across(l, end)
	switch {
	case !t.view.NodeUp(end):
		return 0, false
	case t.view.Usable(l) && before == t.from:
		return l, true
	case t.view.Usable(l) && t.graph.IsSwitch(before):
		return t.choose(before, int(l), int(t.distance[before])+1)
	case t.graph.IsHost(end):
		return t.choose(end, int(end), int(t.distance[end]))
	}
	return 0, false
}

// choose returns one of the links by which shortest paths to a node begin, for the
// destination of a number that is so far away.
func (t *table) choose(node topology.NodeID, number, far int) (topology.LinkID, bool) {
	by := t.first[node]
	if len(by) == 0 {
		return 0, false
	}
	if far%2 == 0 {
		number /= len(by)
	}
	return by[number%len(by)], true
}
