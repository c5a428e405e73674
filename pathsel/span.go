package pathsel

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// spanner finds the shortest-path tree of fewest links from one root after
// another. Level j of a root holds the points at distance j from it.
type spanner struct {
	*subgraph
	residents *residents

	root     int32
	distance *places   // of the points reached from this root
	levels   [][]int32 // the points on the tree, by level: members, then switches
	up       []edge    // by point on the tree: the way to its parent
	children []int32   // by switch: on the tree so far
	vertices int       // switches on the tree
	bound    int       // vertices that any such tree has at least
	hopeless bool      // no such tree can be: children limits

	// Of the level that is being covered, by switch of the next level.
	covers  []int32 // children without a parent that it could take
	weight  []int32 // trees on its links to them
	marked  *places
	forced  []int32 // children that it has in every tree from this root
	certain *places // points that every tree from this root has

	exactLeft int // steps of branch and bound left
	crowded   shortage
	crowdedAt topology.NodeID
}

// residents lists the members with a link to each switch.
type residents struct{ offset, members []int32 }

func newSpanner(f *subgraph) *spanner {
	points, n := len(f.switches)+len(f.Members), len(f.switches)
	return &spanner{
		subgraph: f, residents: f.listResidents(), distance: newPlaces(points),
		up: make([]edge, points), children: make([]int32, n), covers: make([]int32, n), weight: make([]int32, n),
		forced: make([]int32, n),
		marked: newPlaces(n), certain: newPlaces(points),
		exactLeft: exactBudget, crowdedAt: topology.NoNode,
	}
}

func (f *subgraph) listResidents() *residents {
	r := &residents{offset: make([]int32, len(f.switches)+1)}
	for rank := range f.Members {
		for _, e := range f.at(f.member(rank)) {
			r.offset[e.to+1]++
		}
	}
	for i := range f.switches {
		r.offset[i+1] += r.offset[i]
	}
	r.members = make([]int32, r.offset[len(f.switches)])
	next := slices.Clone(r.offset)
	for rank := range f.Members {
		for _, e := range f.at(f.member(rank)) {
			r.members[next[e.to]] = f.member(rank)
			next[e.to]++
		}
	}
	return r
}

// span finds the tree from root and reports whether there is one. Where the
// root's best tree is sure to be worse than target, any tree will do.
func (s *spanner) span(root int32, target *Cost) bool {
	s.root = root
	if !s.measure() {
		return false
	}
	greedy := s.descend()
	if s.hopeless || greedy && s.vertices == s.bound {
		return greedy
	}
	if greedy && target != nil {
		least := Cost{Hops: s.bound - 1 + len(s.Members), Depth: s.depth()}
		if least.Hops > target.Hops || least.Hops == target.Hops && least.Depth > target.Depth {
			return true
		}
	}
	return s.improve(greedy)
}

// measure finds the distances from the root, up to the furthest member, and
// puts the members on their levels.
func (s *spanner) measure() bool {
	s.distance.clear()
	s.distance.set(s.root, 0)
	for i := range s.levels {
		s.levels[i] = s.levels[i][:0]
	}
	waiting := len(s.Members)
	front, next := []int32{s.root}, []int32(nil)
	for d := int32(0); len(front) > 0; d++ {
		next = next[:0]
		for _, v := range front {
			for _, m := range s.residents.members[s.residents.offset[v]:s.residents.offset[v+1]] {
				if _, reached := s.distance.get(m); !reached {
					s.distance.set(m, d+1)
					s.put(int(d)+1, m)
					waiting--
				}
			}
		}
		if waiting == 0 {
			return true
		}
		for _, v := range front {
			for _, e := range s.at(v) {
				if _, reached := s.distance.get(e.to); !reached {
					s.distance.set(e.to, d+1)
					next = append(next, e.to)
				}
			}
		}
		front, next = next, front
	}
	return false
}

func (s *spanner) put(level int, point int32) {
	for len(s.levels) <= level {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], point)
}

// parents calls f for the edges of a point on level j that lead to level j-1.
func (s *spanner) parents(point int32, level int, f func(edge)) {
	for _, e := range s.at(point) {
		if d, reached := s.distance.get(e.to); reached && int(d) == level-1 {
			f(e)
		}
	}
}

// descend covers level after level from the furthest inwards, each greedily,
// and sums up the lower bound on the way. It reports false where the children
// that switches can serve did not suffice.
func (s *spanner) descend() bool {
	clear(s.children)
	clear(s.forced)
	s.certain.clear()
	s.vertices, s.bound, s.hopeless = 1, 1, false
	for rank := range s.Members {
		s.certain.set(s.member(rank), 0)
	}
	for level := len(s.levels) - 1; level > 0; level-- {
		if len(s.levels[level]) == 0 {
			continue
		}
		least := s.leastParents(level)
		if !s.cover(level) {
			return false
		}
		if level > 1 {
			s.bound += least
			s.vertices += s.switchesOn(level - 1)
		}
	}
	return true
}

func (s *spanner) switchesOn(level int) int {
	n := 0
	for _, p := range s.levels[level] {
		if s.rank(p) < 0 {
			n++
		}
	}
	return n
}

// leastParents returns the parents that the certain points of a level need at
// least: as many as there are points with no possible parent in common. It makes
// those certain that are some point's only parent, and finds the root hopeless
// if one of these would have more children than it can serve.
func (s *spanner) leastParents(level int) int {
	s.marked.clear()
	apart, only := 0, 0
	for _, p := range s.levels[level] {
		if _, certain := s.certain.get(p); !certain {
			continue
		}
		options, last, free := 0, int32(-1), true
		s.parents(p, level, func(e edge) {
			_, marked := s.marked.get(e.to)
			options, last, free = options+1, e.to, free && !marked
		})
		if free {
			apart++
			s.parents(p, level, func(e edge) { s.marked.set(e.to, 0) })
		}
		if options == 1 {
			if s.forced[last]++; s.forced[last] > s.room[last] {
				s.hopeless = true
			}
			if _, known := s.certain.get(last); !known {
				s.certain.set(last, 0)
				only++
			}
		}
	}
	return max(apart, only, 1)
}

// cost returns what the tree found costs.
func (s *spanner) cost() Cost {
	load := s.busy[s.root]
	for level := 1; level < len(s.levels); level++ {
		for _, p := range s.levels[level] {
			load += s.up[p].load
			if s.rank(p) < 0 {
				load += s.busy[p]
			}
		}
	}
	return Cost{Hops: s.vertices - 1 + len(s.Members), Depth: s.depth(), Load: int(load)}
}

// depth returns the furthest level that has points.
func (s *spanner) depth() int {
	depth := len(s.levels) - 1
	for len(s.levels[depth]) == 0 {
		depth--
	}
	return depth
}

// tree returns the tree found, the vertices of a level by their lowest ranks.
func (s *spanner) tree() Tree {
	lowest := map[int32]int{}
	for level := len(s.levels) - 1; level > 0; level-- {
		for _, p := range s.levels[level] {
			low := s.rank(p)
			if low < 0 {
				low = lowest[p]
			}
			if old, ok := lowest[s.up[p].to]; !ok || low < old {
				lowest[s.up[p].to] = low
			}
		}
	}
	t := Tree{
		Vertices: append(make([]Vertex, 0, s.vertices), Vertex{Switch: s.switches[s.root], Parent: -1, Up: topology.NoLink}),
		Leaves:   make([]Leaf, len(s.Members)),
	}
	number := map[int32]int32{s.root: 0}
	for level := 1; level < len(s.levels); level++ {
		switches := slices.DeleteFunc(slices.Clone(s.levels[level]), func(p int32) bool { return s.rank(p) >= 0 })
		slices.SortFunc(switches, func(a, b int32) int { return cmp.Compare(lowest[a], lowest[b]) })
		for _, v := range switches {
			number[v] = int32(len(t.Vertices))
			t.Vertices = append(t.Vertices, Vertex{Switch: s.switches[v], Parent: number[s.up[v].to], Up: s.up[v].link})
		}
	}
	for rank, host := range s.Members {
		up := s.up[s.member(rank)]
		t.Leaves[rank] = Leaf{Host: host, Vertex: number[up.to], Link: up.link}
	}
	return t
}
