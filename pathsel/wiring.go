package pathsel

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// wiring is an undirected tree of which a Tree is to be made: its nodes are switches
// and members. Members may also be left out of the nodes, and only be counted at
// their switches.
type wiring struct {
	p *Planner
	asked
	nodes   []topology.NodeID
	place   map[topology.NodeID]int32 // in nodes, of those that join has met
	near    [][]bond                  // by node
	lowest  []int32                   // by node: the lowest rank that is its own: a member's, or of the members counted there
	members []int32                   // by node: the members that are counted there
	vertex  []int32                   // by node, of the tree that was made
	routes  [][]topology.LinkID       // of the edges of several links
}

// bond is an edge of a wiring, from x to y.
type bond struct {
	x, y  int32
	link  topology.LinkID // the one, or that at x
	route int32           // of an edge of several links its place in routes, plus one; they lead from x to y
}

func (b *bond) other(i int32) int32 {
	if b.x == i {
		return b.y
	}
	return b.x
}

// newWiring returns a wiring with room for some nodes.
func newWiring(p *Planner, a asked, nodes int) *wiring {
	return &wiring{
		p: p, asked: a, place: map[topology.NodeID]int32{}, nodes: make([]topology.NodeID, 0, nodes),
		near: make([][]bond, 0, nodes), lowest: make([]int32, 0, nodes), members: make([]int32, 0, nodes),
	}
}

// add adds a node.
func (w *wiring) add(n topology.NodeID) int32 {
	lowest := int32(len(w.Members))
	if w.p.graph.IsHost(n) {
		lowest = w.p.rank[n]
	}
	w.nodes, w.near = append(w.nodes, n), append(w.near, nil)
	w.lowest, w.members = append(w.lowest, lowest), append(w.members, 0)
	return int32(len(w.nodes) - 1)
}

// at returns the node of a switch or member, which is added if it is new.
func (w *wiring) at(n topology.NodeID) int32 {
	i, met := w.place[n]
	if !met {
		i = w.add(n)
		w.place[n] = i
	}
	return i
}

// join adds an edge over links that begins at a node.
func (w *wiring) join(from topology.NodeID, links ...topology.LinkID) {
	b := bond{x: w.at(from), y: w.at(w.p.follow(from, links)), link: links[0]}
	if len(links) > 1 {
		w.routes = append(w.routes, links)
		b.route = int32(len(w.routes))
	}
	w.tie(b)
}

// follow returns where links lead from a node.
func (p *Planner) follow(n topology.NodeID, links []topology.LinkID) topology.NodeID {
	for _, l := range links {
		n = p.graph.Across(l, n)
	}
	return n
}

// tie notes an edge at both its ends.
func (w *wiring) tie(b bond) {
	w.near[b.x], w.near[b.y] = append(w.near[b.x], b), append(w.near[b.y], b)
}

// centre returns the switch that can be the root of which the furthest member is
// the nearest; -1 if none can be it.
func (w *wiring) centre() int32 {
	order, away := w.walk(w.somewhere())
	order, fromOne := w.walk(w.furthest(order, away))
	_, fromOther := w.walk(w.furthest(order, fromOne))
	best, bestFar, bestHash := int32(-1), int32(0), uint64(0)
	for _, i := range order {
		if !w.p.graph.IsSwitch(w.nodes[i]) || !w.fits(i, true) {
			continue
		}
		far, hash := max(fromOne[i], fromOther[i]), mix(w.hash, uint64(w.nodes[i]))
		if best < 0 || far < bestFar || far == bestFar && hash < bestHash {
			best, bestFar, bestHash = i, far, hash
		}
	}
	return best
}

// somewhere returns a node that is surely on the tree: a switch with members, or
// else a member.
func (w *wiring) somewhere() int32 {
	if i := slices.IndexFunc(w.members, func(n int32) bool { return n > 0 }); i >= 0 {
		return int32(i)
	}
	return int32(slices.IndexFunc(w.nodes, w.p.graph.IsHost))
}

// fits reports whether a node can serve its children.
func (w *wiring) fits(i int32, root bool) bool {
	children := len(w.near[i]) + int(w.members[i])
	if !root {
		children--
	}
	return children <= w.view.Capability(w.nodes[i]).Children
}

// walk returns the nodes in the order of their distances from one, and these.
func (w *wiring) walk(from int32) (order, away []int32) {
	away = make([]int32, len(w.nodes))
	for i := range away {
		away[i] = -1
	}
	away[from] = 0
	order = append(order, from)
	for k := 0; k < len(order); k++ {
		near := w.near[order[k]]
		for e := range near {
			if j := near[e].other(order[k]); away[j] < 0 {
				away[j] = away[order[k]] + 1
				order = append(order, j)
			}
		}
	}
	return order, away
}

// furthest returns the node with a member that is the furthest.
func (w *wiring) furthest(order, away []int32) int32 {
	best, bestAway := order[0], int32(-1)
	for _, i := range order {
		reach := away[i]
		if w.members[i] > 0 {
			reach++
		} else if w.p.graph.IsSwitch(w.nodes[i]) {
			continue
		}
		if reach > bestAway {
			best, bestAway = i, reach
		}
	}
	return best
}

// tree directs all edges to a root. It fills in the leaves of members that are
// nodes, and reports false where a switch has too many children.
func (w *wiring) tree(root int32, leaves []Leaf) (Tree, bool) {
	order, away := w.walk(root)
	low := slices.Clone(w.lowest)
	for k := len(order) - 1; k > 0; k-- {
		i := order[k]
		for e := range w.near[i] {
			if j := w.near[i][e].other(i); away[j] < away[i] {
				low[j] = min(low[j], low[i])
			}
		}
	}
	t := Tree{Leaves: leaves}
	w.vertex = make([]int32, len(w.nodes))
	t.Vertices = append(make([]Vertex, 0, len(order)), Vertex{Switch: w.nodes[root], Parent: -1, Up: topology.NoLink})
	line := []int32{root}
	for k := 0; k < len(line); k++ {
		i := line[k]
		if !w.fits(i, i == root) {
			return Tree{}, false
		}
		slices.SortFunc(w.near[i], func(a, b bond) int { return cmp.Compare(low[a.other(i)], low[b.other(i)]) })
		for e := range w.near[i] {
			if j := w.near[i][e].other(i); away[j] > away[i] {
				if w.hang(&t, &w.near[i][e], j, w.vertex[i]) {
					line = append(line, j)
				}
			}
		}
	}
	return t, true
}

// hang makes a node a child of a vertex, and reports whether it is a vertex itself.
func (w *wiring) hang(t *Tree, b *bond, child, parent int32) bool {
	n, up, route := w.nodes[child], b.link, Route{Vertex: -1, Rank: -1}
	if b.route > 0 {
		route.Links = slices.Clone(w.routes[b.route-1])
		if b.x != child {
			slices.Reverse(route.Links)
		}
		up = route.Links[0]
	}
	isVertex := w.p.graph.IsSwitch(n)
	if isVertex {
		w.vertex[child] = int32(len(t.Vertices))
		route.Vertex = w.vertex[child]
		t.Vertices = append(t.Vertices, Vertex{Switch: n, Parent: parent, Up: up})
	} else {
		route.Rank = w.p.rank[n]
		t.Leaves[route.Rank] = Leaf{Host: n, Vertex: parent, Link: up}
	}
	if b.route > 0 {
		t.Routes = append(t.Routes, route)
	}
	return isVertex
}
