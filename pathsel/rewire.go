package pathsel

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// meet joins fragments over the crossings up to a length, and returns how many
// joined: the shortest first, then those over the switch that joins the most
// fragments, then the least used.
func (m *repairing) meet(most int32) int {
	slices.SortFunc(m.cross, func(c, d crossing) int {
		v, w := &m.nodes[c.via], &m.nodes[d.via]
		if order := cmp.Or(cmp.Compare(c.length, d.length), cmp.Compare(w.joins, v.joins)); order != 0 {
			return order
		}
		if c.via != d.via {
			if order := cmp.Or(cmp.Compare(m.busy(v), m.busy(w)), cmp.Compare(v.hash, w.hash)); order != 0 {
				return order
			}
		}
		return cmp.Or(cmp.Compare(m.load.LinkTrees(c.link), m.load.LinkTrees(d.link)), cmp.Compare(c.link, d.link))
	})
	joined, rest := 0, m.cross[:0]
	for _, c := range m.cross {
		if c.length > most {
			rest = append(rest, c)
			continue
		}
		if m.sets.Find(m.nodes[c.x].region) == m.sets.Find(m.nodes[c.y].region) {
			continue
		}
		m.include(c.x)
		m.include(c.y)
		m.bind(c.bond)
		joined++
	}
	m.cross = rest
	return joined
}

// busy returns the trees on a switch; a member has none.
func (m *repairing) busy(j *joint) int {
	if m.load == nil || m.p.graph.IsHost(j.node) {
		return 0
	}
	return m.load.SwitchTrees(j.node)
}

// include puts a node that the search has reached on the tree, and those
// between it and its fragment.
func (m *repairing) include(i int32) {
	for ; !m.nodes[i].on; i = m.nodes[i].up {
		m.nodes[i].on = true
		m.edges = append(m.edges, bond{i, m.nodes[i].up, m.nodes[i].link})
	}
}

// wiring gives the edges of a repairing their directions.
type wiring struct {
	*repairing
	near    [][]bond
	lowest  []int32 // by node: the lowest rank of the members that it has itself
	members []int32 // by node: how many
}

// wire notes the edges of every node, without those that lead to no member.
func (w *wiring) wire() {
	for _, e := range w.edges {
		w.near[e.x], w.near[e.y] = append(w.near[e.x], e), append(w.near[e.y], e)
	}
	var ends []int32
	for i := range w.near {
		ends = append(ends, int32(i))
	}
	for len(ends) > 0 {
		i := ends[len(ends)-1]
		ends = ends[:len(ends)-1]
		if len(w.near[i]) != 1 || w.members[i] > 0 || w.p.graph.IsHost(w.nodes[i].node) {
			continue
		}
		e := w.near[i][0]
		w.near[i] = nil
		j := e.other(i)
		w.near[j] = slices.DeleteFunc(w.near[j], func(b bond) bool { return b == e })
		ends = append(ends, j)
	}
}

// somewhere returns a node that is surely on the tree: a switch with a member,
// or else a member.
func (w *wiring) somewhere() int32 {
	if i := slices.IndexFunc(w.members, func(n int32) bool { return n > 0 }); i >= 0 {
		return int32(i)
	}
	return int32(slices.IndexFunc(w.nodes, func(j joint) bool { return w.p.graph.IsHost(j.node) }))
}

func (b bond) other(i int32) int32 {
	if b.x == i {
		return b.y
	}
	return b.x
}

// root returns the old root while it has two children, and else the switch in
// the middle of the tree; -1 if none can be it.
func (w *wiring) root() int32 {
	if w.alive[0] {
		if r := w.at(w.old.Vertices[0].Switch); len(w.near[r])+int(w.members[r]) > 1 || len(w.nodes) == 1 {
			if w.fits(r, true) {
				return r
			}
		}
	}
	order, away := w.walk(w.somewhere())
	far := w.furthest(order, away)
	order, fromOne := w.walk(far)
	_, fromOther := w.walk(w.furthest(order, fromOne))
	best, bestFar := int32(-1), int32(0)
	for _, i := range order {
		if !w.p.graph.IsSwitch(w.nodes[i].node) || !w.fits(i, true) {
			continue
		}
		reach := max(fromOne[i], fromOther[i])
		if best < 0 || reach < bestFar || reach == bestFar && w.nodes[i].hash < w.nodes[best].hash {
			best, bestFar = i, reach
		}
	}
	return best
}

// fits reports whether a node can serve its children.
func (w *wiring) fits(i int32, root bool) bool {
	children := len(w.near[i]) + int(w.members[i])
	if !root {
		children--
	}
	return children <= w.view.Capability(w.nodes[i].node).Children
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
		for _, e := range w.near[order[k]] {
			if j := e.other(order[k]); away[j] < 0 {
				away[j] = away[order[k]] + 1
				order = append(order, j)
			}
		}
	}
	return order, away
}

// furthest returns the node with a member that is the furthest; a detached
// member is its own.
func (w *wiring) furthest(order, away []int32) int32 {
	best, bestAway := order[0], int32(-1)
	for _, i := range order {
		reach := away[i]
		if w.members[i] > 0 {
			reach++
		} else if w.p.graph.IsSwitch(w.nodes[i].node) {
			continue
		}
		if reach > bestAway {
			best, bestAway = i, reach
		}
	}
	return best
}

// tree fills result, and reports false where a switch has too many children.
func (w *wiring) tree(root int32) bool {
	order, away := w.walk(root)
	low := slices.Clone(w.lowest)
	for k := len(order) - 1; k > 0; k-- {
		for _, e := range w.near[order[k]] {
			if j := e.other(order[k]); away[j] < away[order[k]] {
				low[j] = min(low[j], low[order[k]])
			}
		}
	}
	t := Tree{Leaves: slices.Clone(w.old.Leaves)}
	vertex := make([]int32, len(w.nodes))
	t.Vertices = append(make([]Vertex, 0, len(order)), Vertex{Switch: w.nodes[root].node, Parent: -1, Up: topology.NoLink})
	line := []int32{root}
	for k := 0; k < len(line); k++ {
		i := line[k]
		if !w.fits(i, i == root) {
			return false
		}
		slices.SortFunc(w.near[i], func(a, b bond) int { return cmp.Compare(low[a.other(i)], low[b.other(i)]) })
		for _, e := range w.near[i] {
			j := e.other(i)
			if away[j] < away[i] {
				continue
			}
			n := w.nodes[j].node
			if w.p.graph.IsHost(n) {
				t.Leaves[w.p.rank[n]] = Leaf{Host: n, Vertex: vertex[i], Link: e.link}
				continue
			}
			vertex[j] = int32(len(t.Vertices))
			t.Vertices = append(t.Vertices, Vertex{Switch: n, Parent: vertex[i], Up: e.link})
			line = append(line, j)
		}
	}
	for rank, kept := range w.leaves {
		if kept {
			l := &t.Leaves[rank]
			l.Vertex = vertex[w.now[l.Vertex]]
		}
	}
	w.result = t
	return true
}
