package pathsel

import (
	"cmp"
	"math"
	"slices"
)

// solution is a copy of the tree that a spanner has found.
type solution struct {
	vertices int
	levels   [][]int32
	up       []edge
}

func (s *spanner) save(to *solution) {
	to.vertices = s.vertices
	to.levels = to.levels[:0]
	for _, points := range s.levels {
		to.levels = append(to.levels, slices.Clone(points))
	}
	to.up = append(to.up[:0], s.up...)
}

func (s *spanner) restore(from *solution) {
	s.vertices, s.levels = from.vertices, from.levels
	copy(s.up, from.up)
}

// improve searches the shortest-path trees of the root for one of fewer
// vertices than the greedy one, if there was any, by branch and bound within
// the budget. It reports whether there is a tree.
func (s *spanner) improve(greedy bool) bool {
	best := solution{vertices: math.MaxInt}
	if greedy {
		s.save(&best)
	}
	for level, points := range s.levels {
		s.levels[level] = slices.DeleteFunc(points, func(p int32) bool { return s.rank(p) < 0 })
	}
	clear(s.children)
	s.vertices = 1
	b := &bounder{spanner: s, best: &best, steps: min(s.exactLeft, max(exactRoot, 4*len(s.up)))}
	before := b.steps
	b.place(len(s.levels)-1, 0)
	s.exactLeft -= before - max(b.steps, 0)
	if best.vertices == math.MaxInt {
		return false
	}
	s.restore(&best)
	return true
}

// bounder is one branch-and-bound search.
type bounder struct {
	*spanner
	best  *solution
	steps int // left
}

// place tries the parents of the k-th point of a level, and of all after it.
func (b *bounder) place(level, k int) {
	if level == 0 {
		b.save(b.best)
		return
	}
	if b.steps--; b.steps < 0 {
		return
	}
	if k == len(b.levels[level]) {
		b.place(level-1, 0)
		return
	}
	p := b.levels[level][k]
	for _, e := range b.options(p, level, len(b.levels[level])-k) {
		if b.best.vertices == b.bound || b.pointless(level) {
			return
		}
		fresh := b.children[e.to] == 0 && level > 1
		b.adopt(p, level, e)
		if fresh {
			b.vertices++
		}
		b.place(level, k+1)
		b.children[e.to]--
		if fresh {
			b.vertices--
			b.levels[level-1] = b.levels[level-1][:len(b.levels[level-1])-1]
		}
	}
}

// pointless reports whether no completion can be better than the best: every
// level between here and the root has a vertex yet to come, or one already.
func (b *bounder) pointless(level int) bool {
	least := b.vertices + max(level-2, 0)
	if level > 1 && b.switchesOn(level-1) == 0 {
		least++
	}
	return least >= b.best.vertices
}

// options returns the ways of p to parents with room, in the order to try them:
// parents on the tree first, then the least used. If one on the tree has room
// for all that remain on the level, no other can lead to fewer vertices.
func (b *bounder) options(p int32, level, remaining int) []edge {
	var list []edge
	b.parents(p, level, func(e edge) {
		if b.children[e.to] < b.room[e.to] {
			list = append(list, e)
		}
	})
	slices.SortFunc(list, func(x, y edge) int {
		return cmp.Or(
			cmp.Compare(min(b.children[y.to], 1), min(b.children[x.to], 1)),
			cmp.Compare(x.load+b.busy[x.to], y.load+b.busy[y.to]),
			cmp.Compare(mix(b.hash, uint64(b.switches[x.to])), mix(b.hash, uint64(b.switches[y.to]))))
	})
	for _, e := range list {
		if b.children[e.to] > 0 && int(b.room[e.to]-b.children[e.to]) >= remaining {
			return []edge{e}
		}
	}
	if len(list) == 0 {
		b.noteCrowd(p, level)
	}
	return list
}
