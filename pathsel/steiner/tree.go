package steiner

import "slices"

// outside is the parent of a node that is not on the tree.
const outside int32 = -2

// rooted is a tree in a net, turned towards one of its terminals.
type rooted struct {
	g      *net
	parent []int32 // by node; -1 at the root, outside off the tree
	up     []int32 // by node: the edge to the parent
	degree []int32 // by node: tree edges, 0 off the tree
	order  []int32 // the nodes of the tree, each subtree in one piece, its root first
	at     []int32 // by node of the tree: its place in order
	end    []int32 // by node of the tree: where its subtree ends in order
	edges  []int32 // of the tree, in no order that counts

	first, next []int32 // by half edge, scratch of build
}

func newRooted(g *net) *rooted {
	n := g.nodes()
	t := &rooted{
		g: g, parent: make([]int32, n), up: make([]int32, n), degree: make([]int32, n),
		at: make([]int32, n), end: make([]int32, n), first: make([]int32, n),
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
	for _, v := range t.order {
		t.parent[v], t.degree[v] = outside, 0
	}
	t.edges = append(t.edges[:0], edges...)
	t.next = slices.Grow(t.next[:0], 2*len(edges))[:2*len(edges)]
	for _, e := range edges {
		t.first[g.ends[e][0]], t.first[g.ends[e][1]] = -1, -1
	}
	for i, e := range edges {
		for side, v := range g.ends[e] {
			t.next[2*i+side] = t.first[v]
			t.first[v] = int32(2*i + side)
			t.degree[v]++
		}
	}
	t.turn(g.terms[0])
}

// turn orders the tree from its root outwards.
func (t *rooted) turn(root int32) {
	t.order = t.order[:0]
	t.parent[root], t.up[root] = -1, -1
	stack := []int32{root}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		t.at[v] = int32(len(t.order))
		t.order = append(t.order, v)
		for half := t.first[v]; half >= 0; half = t.next[half] {
			e := t.edges[half/2]
			if e != t.up[v] {
				w := t.g.other(e, v)
				t.parent[w], t.up[w] = v, e
				stack = append(stack, w)
			}
		}
	}
	for i := len(t.order) - 1; i >= 0; i-- {
		v := t.order[i]
		t.end[v] = int32(i + 1)
		if i+1 < len(t.order) && t.parent[t.order[i+1]] == v {
			t.end[v] = t.lastEnd(v)
		}
	}
}

// lastEnd returns where the subtree of v ends: with that of its last child,
// which is its first in the list of edges that the stack turned round.
func (t *rooted) lastEnd(v int32) int32 {
	for half := t.first[v]; half >= 0; half = t.next[half] {
		if e := t.edges[half/2]; e != t.up[v] {
			return t.end[t.g.other(e, v)]
		}
	}
	return t.at[v] + 1
}

// on says whether v is on the tree.
func (t *rooted) on(v int32) bool { return t.parent[v] != outside }

// key says whether v, on the tree, is a terminal or a branch.
func (t *rooted) key(v int32) bool { return t.g.term[v] || t.degree[v] >= 3 }

// keyAbove walks from v, not the root, to the next key node above it. It
// returns that node and the last node before it.
func (t *rooted) keyAbove(v int32) (above, last int32) {
	last = v
	for above = t.parent[v]; !t.key(above); above = t.parent[above] {
		last = above
	}
	return above, last
}

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
