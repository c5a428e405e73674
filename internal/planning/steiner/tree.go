package steiner

import "slices"

// outside is the parent of a node that is not on the tree.
const outside int32 = -2

// rooted is a tree in a net, turned towards one of its terminals. A change
// costs time in proportion to what it moves, not to the tree.
type rooted struct {
	g      *net
	root   int32
	parent []int32 // by node; -1 at the root, outside off the tree
	up     []int32 // by node: the edge to the parent
	degree []int32 // by node: tree edges, 0 off the tree
	child  []int32 // by node: the first of its children, or -1
	next   []int32 // by node: the next child of its parent, or -1
	prev   []int32 // by node: the one before it, or -1
	nodes  []int32 // of the tree
	place  []int32 // by node of the tree: its place in nodes

	first, half []int32 // scratch of build: by node, by half edge

	recorded bool // steps are written to journal
	journal  []step
}

// step is one change of a tree.
type step struct {
	kind               int8
	node, parent, edge int32
}

const (
	stepAdd int8 = iota
	stepRemove
	stepLink
	stepCut
)

func newRooted(g *net) *rooted {
	n := g.nodes()
	t := &rooted{
		g: g, parent: make([]int32, n), up: make([]int32, n), degree: make([]int32, n),
		child: make([]int32, n), next: make([]int32, n), prev: make([]int32, n),
		place: make([]int32, n), first: make([]int32, n),
	}
	for v := range t.parent {
		t.parent[v] = outside
	}
	return t
}

// build makes t the tree of the given edges, which must be one that spans the
// terminals; at least one edge.
func (t *rooted) build(edges []int32) {
	g := t.g
	g.meter.add(len(edges))
	for _, v := range t.nodes {
		t.parent[v], t.degree[v] = outside, 0
	}
	t.nodes = t.nodes[:0]
	t.half = slices.Grow(t.half[:0], 2*len(edges))[:2*len(edges)]
	for _, e := range edges {
		t.first[g.ends[e][0]], t.first[g.ends[e][1]] = -1, -1
	}
	for i, e := range edges {
		for side, v := range g.ends[e] {
			t.half[2*i+side] = t.first[v]
			t.first[v] = int32(2*i + side)
		}
	}
	t.root = g.terms[0]
	t.add(t.root)
	for i := 0; i < len(t.nodes); i++ {
		v := t.nodes[i]
		for h := t.first[v]; h >= 0; h = t.half[h] {
			if e := edges[h/2]; i == 0 || e != t.up[v] {
				w := g.other(e, v)
				t.add(w)
				t.link(w, v, e)
			}
		}
	}
}

// edges appends the tree's edges to out.
func (t *rooted) edges(out []int32) []int32 {
	for _, v := range t.nodes {
		if v != t.root {
			out = append(out, t.up[v])
		}
	}
	return out
}

// record begins a change that keep ends, or undo.
func (t *rooted) record() { t.recorded, t.journal = true, t.journal[:0] }

func (t *rooted) keep() { t.recorded = false }

func (t *rooted) undo() {
	t.recorded = false
	for _, s := range slices.Backward(t.journal) {
		switch s.kind {
		case stepAdd:
			t.remove(s.node)
		case stepRemove:
			t.add(s.node)
		case stepLink:
			t.cut(s.node)
		case stepCut:
			t.link(s.node, s.parent, s.edge)
		}
	}
}

func (t *rooted) note(s step) {
	if t.recorded {
		t.journal = append(t.journal, s)
	}
}

// add puts v on the tree, without an edge.
func (t *rooted) add(v int32) {
	t.note(step{kind: stepAdd, node: v})
	t.parent[v], t.child[v], t.degree[v] = -1, -1, 0
	t.place[v] = int32(len(t.nodes))
	t.nodes = append(t.nodes, v)
}

// remove takes v, which has no edge, off the tree.
func (t *rooted) remove(v int32) {
	t.note(step{kind: stepRemove, node: v})
	last := t.nodes[len(t.nodes)-1]
	t.nodes[t.place[v]], t.place[last] = last, t.place[v]
	t.nodes = t.nodes[:len(t.nodes)-1]
	t.parent[v] = outside
}

// link makes v, the top of its part, a child of u.
func (t *rooted) link(v, u, edge int32) {
	t.note(step{stepLink, v, u, edge})
	t.parent[v], t.up[v] = u, edge
	t.next[v], t.prev[v] = t.child[u], -1
	if c := t.child[u]; c >= 0 {
		t.prev[c] = v
	}
	t.child[u] = v
	t.degree[u]++
	t.degree[v]++
}

// cut parts v from its parent; it is then the top of its part.
func (t *rooted) cut(v int32) {
	u, next, prev := t.parent[v], t.next[v], t.prev[v]
	t.note(step{stepCut, v, u, t.up[v]})
	if prev >= 0 {
		t.next[prev] = next
	} else {
		t.child[u] = next
	}
	if next >= 0 {
		t.prev[next] = prev
	}
	t.parent[v] = -1
	t.degree[u]--
	t.degree[v]--
}

// evert makes v the top of its part.
func (t *rooted) evert(v int32) {
	steps := 0
	for above, edge := int32(-1), int32(-1); v >= 0; steps++ {
		up, e := t.parent[v], t.up[v]
		if up >= 0 {
			t.cut(v)
		}
		if above >= 0 {
			t.link(v, above, edge)
		}
		above, edge, v = v, e, up
	}
	t.g.meter.add(steps)
}

// reroot turns the tree, whose top is v, towards a terminal near v.
func (t *rooted) reroot(v int32) {
	top := v
	for !t.g.term[v] {
		v = t.child[v] // a leaf is a terminal
	}
	if v != top {
		t.evert(v)
	}
	t.root = v
}

// on says whether v is on the tree.
func (t *rooted) on(v int32) bool { return t.parent[v] != outside }

// key says whether v, on the tree, is a terminal or a branch.
func (t *rooted) key(v int32) bool { return t.g.term[v] || t.degree[v] >= 3 }

// prune returns edges without those that lead to leaves which are no
// terminals, until there is none. The edges are a tree; keep is scratch by node.
func (g *net) prune(edges []int32) []int32 {
	degree := make([]int32, g.nodes())
	touch := make([]int32, g.nodes()) // sum of the edges at a node: of a leaf, its edge
	for _, e := range edges {
		for _, v := range g.ends[e] {
			degree[v]++
			touch[v] ^= e
		}
	}
	dropped := make(map[int32]bool)
	for _, e := range edges {
		for _, v := range g.ends[e] {
			for degree[v] == 1 && !g.term[v] {
				cut := touch[v]
				dropped[cut] = true
				degree[v] = 0
				v = g.other(cut, v)
				degree[v]--
				touch[v] ^= cut
			}
		}
	}
	if len(dropped) == 0 {
		return edges
	}
	return slices.DeleteFunc(edges, func(e int32) bool { return dropped[e] })
}

// within says whether edges keep the limits of all nodes.
func (g *net) within(edges []int32) bool {
	degree := make([]int32, g.nodes())
	for _, e := range edges {
		for _, v := range g.ends[e] {
			if degree[v]++; degree[v] > g.limit[v] {
				return false
			}
		}
	}
	return true
}
