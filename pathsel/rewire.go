package pathsel

import (
	"cmp"
	"slices"
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
		m.edges = append(m.edges, bond{x: i, y: m.nodes[i].up, link: m.nodes[i].link})
	}
}

// wired returns the tree of the edges, without those that lead to no member.
func (m *repairing) wired() *wiring {
	w := newWiring(m.p, m.asked, len(m.nodes))
	for i := range m.nodes {
		w.add(m.nodes[i].node)
	}
	for rank, kept := range m.leaves {
		if kept {
			v := m.now[m.old.Leaves[rank].Vertex]
			w.lowest[v] = min(w.lowest[v], int32(rank))
			w.members[v]++
		}
	}
	for _, e := range m.edges {
		w.tie(e)
	}
	for i := range w.near {
		for i := int32(i); len(w.near[i]) == 1 && w.members[i] == 0 && m.p.graph.IsSwitch(w.nodes[i]); {
			e := w.near[i][0]
			w.near[i] = nil
			i = e.other(i)
			w.near[i] = slices.DeleteFunc(w.near[i], func(b bond) bool { return b == e })
		}
	}
	return w
}

// root returns the old root while it has two children, and else the switch in
// the middle of the tree; -1 if none can be it.
func (m *repairing) root(w *wiring) int32 {
	if m.alive[0] {
		if r := m.now[0]; len(w.near[r])+int(w.members[r]) > 1 || len(w.nodes) == 1 {
			if w.fits(r, true) {
				return r
			}
		}
	}
	return w.centre()
}

// finish makes the tree of the edges.
func (m *repairing) finish() bool {
	w := m.wired()
	root := m.root(w)
	if root < 0 {
		return false
	}
	var ok bool
	if m.result, ok = w.tree(root, slices.Clone(m.old.Leaves)); !ok {
		return false
	}
	for rank, kept := range m.leaves {
		if kept {
			l := &m.result.Leaves[rank]
			l.Vertex = w.vertex[m.now[l.Vertex]]
		}
	}
	return true
}
