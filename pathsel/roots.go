package pathsel

import (
	"cmp"
	"math/bits"
	"slices"
)

// rootRank is what orders a candidate root before its tree is known.
type rootRank struct {
	bound int32 // vertices that a tree from here needs at least, of the sample
	depth int32 // distance to the furthest of the sample
	busy  int32
	hash  uint64
	root  int32
}

func (r rootRank) compare(s rootRank) int {
	return cmp.Or(cmp.Compare(r.bound, s.bound), cmp.Compare(r.depth, s.depth), cmp.Compare(r.busy, s.busy),
		cmp.Compare(r.hash, s.hash), cmp.Compare(r.root, s.root))
}

// rankRoots returns the switches that reach every sampled member, the most
// promising first. It runs one breadth-first search from up to 64 members at
// once, a bit each (after Then et al.: The More the Merrier: Efficient
// Multi-Source Graph Traversal, VLDB 2014).
func (f *subgraph) rankRoots() []int32 {
	sources := f.sample()
	all := ^uint64(0) >> (64 - len(sources))
	n := len(f.switches)
	seen, now, next := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	for bit, member := range sources {
		for _, e := range f.at(member) {
			now[e.to] |= 1 << bit
		}
	}
	ranks := make([]rootRank, n)
	for v := range ranks {
		ranks[v].depth = -1
	}
	for depth, more := int32(0), true; more; depth++ {
		more = false
		for v := range n {
			fresh := now[v] &^ seen[v]
			now[v] = 0
			if fresh == 0 {
				continue
			}
			more = true
			seen[v] |= fresh
			// A level without members still has a vertex that passes on.
			r := &ranks[v]
			r.bound += int32(bits.OnesCount64(fresh)) + depth - r.depth - 1
			r.depth = depth
			for _, e := range f.at(int32(v)) {
				next[e.to] |= fresh
			}
		}
		now, next = next, now
	}
	reaching := ranks[:0]
	for v, r := range ranks {
		if seen[v] == all {
			r.root, r.busy, r.hash = int32(v), f.busy[v], mix(f.hash, uint64(f.switches[v]))
			reaching = append(reaching, r)
		}
	}
	slices.SortFunc(reaching, rootRank.compare)
	roots := make([]int32, len(reaching))
	for i, r := range reaching {
		roots[i] = r.root
	}
	return roots
}

// sample returns up to 64 members on switches of their own, evenly from all such.
func (f *subgraph) sample() []int32 {
	taken := newPlaces(len(f.switches))
	var apart []int32
	for rank := range f.Members {
		point := f.member(rank)
		first := f.at(point)[0].to
		if _, ok := taken.get(first); !ok {
			taken.set(first, 0)
			apart = append(apart, point)
		}
	}
	const most = 64
	if len(apart) <= most {
		return apart
	}
	sample := make([]int32, most)
	for i := range sample {
		sample[i] = apart[i*len(apart)/most]
	}
	return sample
}
