package pathsel

import (
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// cover gives every point of a level a parent on the next, opening as few as it
// can: first those that are some point's only one, then, again and again, the
// one that takes the most of the rest.
func (s *spanner) cover(level int) bool {
	waiting := s.levels[level]
	var pending []int32
	for _, p := range waiting {
		options, only := 0, edge{}
		s.parents(p, level, func(e edge) { options, only = options+1, e })
		if options != 1 {
			pending = append(pending, p)
			continue
		}
		if !s.adopt(p, level, only) {
			s.noteCrowd(p, level)
			return false
		}
	}
	pending = s.adoptByOpen(pending, level)
	if len(pending) == 0 {
		return true
	}
	candidates := s.count(pending, level)
	for len(pending) > 0 {
		best := s.widest(candidates)
		if best < 0 {
			s.noteCrowd(pending[0], level)
			return false
		}
		pending = s.adoptBy(best, pending, level)
	}
	return true
}

// adopt gives p, on a level, the parent at the other end of e, if that has room.
// A parent's first child puts it on the tree.
func (s *spanner) adopt(p int32, level int, e edge) bool {
	if s.children[e.to] >= s.room[e.to] {
		return false
	}
	if s.children[e.to] == 0 && level > 1 {
		s.put(level-1, e.to)
	}
	s.children[e.to]++
	s.up[p] = e
	return true
}

// adoptByOpen gives parents on the tree to those points that can have one, the
// least used link first, and returns the others.
func (s *spanner) adoptByOpen(pending []int32, level int) []int32 {
	rest := pending[:0]
	for _, p := range pending {
		best, found := edge{}, false
		s.parents(p, level, func(e edge) {
			if s.children[e.to] > 0 && s.children[e.to] < s.room[e.to] && (!found || e.load < best.load) {
				best, found = e, true
			}
		})
		if !found {
			rest = append(rest, p)
			continue
		}
		s.adopt(p, level, best)
	}
	return rest
}

// count fills covers and weight for the pending points, and returns the
// switches that cover any.
func (s *spanner) count(pending []int32, level int) []int32 {
	var candidates []int32
	s.marked.clear()
	for _, p := range pending {
		s.parents(p, level, func(e edge) {
			if _, known := s.marked.get(e.to); !known {
				s.marked.set(e.to, 0)
				s.covers[e.to], s.weight[e.to] = 0, s.busy[e.to]
				candidates = append(candidates, e.to)
			}
			s.covers[e.to]++
			s.weight[e.to] += e.load
		})
	}
	return candidates
}

// widest returns the candidate that takes the most pending points, among equals
// the least used; -1 if none takes any.
func (s *spanner) widest(candidates []int32) int32 {
	best, bestTakes := int32(-1), int32(0)
	for _, v := range candidates {
		takes := min(s.covers[v], s.room[v]-s.children[v])
		if takes <= 0 || takes < bestTakes {
			continue
		}
		if takes > bestTakes || s.weight[v] < s.weight[best] || s.weight[v] == s.weight[best] && s.prefers(v, best) {
			best, bestTakes = v, takes
		}
	}
	return best
}

// prefers decides between equal switches by the hash of the group.
func (s *spanner) prefers(v, w int32) bool {
	return mix(s.hash, uint64(s.switches[v])) < mix(s.hash, uint64(s.switches[w]))
}

// adoptBy gives the parent v to the pending points that it can take, and returns
// the others.
func (s *spanner) adoptBy(v int32, pending []int32, level int) []int32 {
	rest := pending[:0]
	for _, p := range pending {
		i := slices.IndexFunc(s.at(p), func(e edge) bool { return e.to == v })
		if i < 0 || !s.adopt(p, level, s.at(p)[i]) {
			rest = append(rest, p)
			continue
		}
		s.parents(p, level, func(e edge) {
			s.covers[e.to]--
			s.weight[e.to] -= e.load
		})
	}
	return rest
}

// noteCrowd remembers a switch that has no room for point p of a level.
func (s *spanner) noteCrowd(p int32, level int) {
	s.parents(p, level, func(e edge) {
		if s.crowdedAt == topology.NoNode && s.children[e.to] >= s.room[e.to] {
			s.crowdedAt = s.switches[e.to]
			s.crowded = shortage{Children, int(s.room[e.to]), int(max(s.forced[e.to], s.room[e.to]+1))}
		}
	})
}
