package pathsel

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// strand is an edge of an undirected tree as one of its ends sees it.
type strand struct {
	to    topology.NodeID
	links []topology.LinkID // from here on
}

// orientation is an undirected tree.
type orientation struct {
	p *Planner
	asked
	near map[topology.NodeID][]strand
}

func newOrientation(p *Planner, a asked) *orientation {
	return &orientation{p: p, asked: a, near: map[topology.NodeID][]strand{}}
}

// add adds an edge that begins at a node.
func (o *orientation) add(from topology.NodeID, links ...topology.LinkID) {
	to := from
	for _, l := range links {
		to = o.p.graph.Across(l, to)
	}
	o.near[from] = append(o.near[from], strand{to, links})
	back := slices.Clone(links)
	slices.Reverse(back)
	o.near[to] = append(o.near[to], strand{from, back})
}

// distances returns how many edges away each node is, in the order in which
// they are met.
func (o *orientation) distances(from topology.NodeID) ([]topology.NodeID, map[topology.NodeID]int) {
	away := map[topology.NodeID]int{from: 0}
	queue := []topology.NodeID{from}
	for i := 0; i < len(queue); i++ {
		for _, e := range o.near[queue[i]] {
			if _, met := away[e.to]; !met {
				away[e.to] = away[queue[i]] + 1
				queue = append(queue, e.to)
			}
		}
	}
	return queue, away
}

// centre returns the root: the switch that can be it of which the furthest
// member is the nearest; NoNode if none can be.
func (o *orientation) centre() topology.NodeID {
	order, _ := o.distances(o.Members[0])
	one := order[len(order)-1]
	order, fromOne := o.distances(one)
	_, fromOther := o.distances(order[len(order)-1])
	best, bestFar, bestHash := topology.NoNode, 0, uint64(0)
	for _, n := range order {
		if !o.p.graph.IsSwitch(n) || len(o.near[n]) > o.view.Capability(n).Children {
			continue
		}
		far, hash := max(fromOne[n], fromOther[n]), mix(o.hash, uint64(n))
		if best == topology.NoNode || far < bestFar || far == bestFar && hash < bestHash {
			best, bestFar, bestHash = n, far, hash
		}
	}
	return best
}

// tree directs all edges to the root.
func (o *orientation) tree(root topology.NodeID) Tree {
	lowest := o.lowest(root)
	t := Tree{Vertices: []Vertex{{Switch: root, Parent: -1, Up: topology.NoLink}}, Leaves: make([]Leaf, len(o.Members))}
	for i := 0; i < len(t.Vertices); i++ {
		above := topology.NoNode
		if i > 0 {
			above = t.Vertices[t.Vertices[i].Parent].Switch
		}
		down := slices.DeleteFunc(slices.Clone(o.near[t.Vertices[i].Switch]), func(e strand) bool { return e.to == above })
		slices.SortFunc(down, func(x, y strand) int { return cmp.Compare(lowest[x.to], lowest[y.to]) })
		for _, e := range down {
			o.hang(&t, int32(i), e)
		}
	}
	return t
}

// hang adds a child and, of an edge of several links, its route.
func (o *orientation) hang(t *Tree, parent int32, e strand) {
	links := slices.Clone(e.links)
	slices.Reverse(links)
	route := Route{Vertex: -1, Rank: -1, Links: links}
	if o.p.graph.IsHost(e.to) {
		route.Rank = o.p.rank[e.to]
		t.Leaves[route.Rank] = Leaf{Host: e.to, Vertex: parent, Link: links[0]}
	} else {
		route.Vertex = int32(len(t.Vertices))
		t.Vertices = append(t.Vertices, Vertex{Switch: e.to, Parent: parent, Up: links[0]})
	}
	if len(links) > 1 {
		t.Routes = append(t.Routes, route)
	}
}

// lowest returns the lowest rank beneath each node.
func (o *orientation) lowest(root topology.NodeID) map[topology.NodeID]int32 {
	order, away := o.distances(root)
	low := make(map[topology.NodeID]int32, len(order))
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		if o.p.graph.IsHost(n) {
			low[n] = o.p.rank[n]
			continue
		}
		best := int32(len(o.Members))
		for _, e := range o.near[n] {
			if away[e.to] > away[n] {
				best = min(best, low[e.to])
			}
		}
		low[n] = best
	}
	return low
}
