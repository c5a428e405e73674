// Package disjoint keeps disjoint sets of small integers: union-find with halved
// paths.
package disjoint

// Sets has, by integer, another one of its set, or itself.
type Sets []int32

// New returns the integers below n, each alone.
func New(n int) Sets {
	s := make(Sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// Find returns the one that stands for x's set: the least of it.
func (s Sets) Find(x int32) int32 {
	for s[x] != x {
		s[x] = s[s[x]]
		x = s[x]
	}
	return x
}

// Join unites the sets of x and y, and reports whether they were two.
func (s Sets) Join(x, y int32) bool {
	x, y = s.Find(x), s.Find(y)
	if x == y {
		return false
	}
	s[max(x, y)] = min(x, y)
	return true
}

// Count returns how many sets there are.
func (s Sets) Count() (sets int) {
	for i, up := range s {
		if int(up) == i {
			sets++
		}
	}
	return sets
}
