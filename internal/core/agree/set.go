package agree

import "math/bits"

// set is a set of ranks.
type set struct {
	words []uint64
	count int
}

func newSet(size int) set { return set{words: make([]uint64, (size+63)/64)} }

func (s *set) has(rank uint32) bool { return s.words[rank/64]>>(rank%64)&1 != 0 }

// add reports whether the rank is new.
func (s *set) add(rank uint32) bool {
	if s.has(rank) {
		return false
	}
	s.words[rank/64] |= 1 << (rank % 64)
	s.count++
	return true
}

// list returns the ranks, ascending.
func (s *set) list() []uint32 {
	if s.count == 0 {
		return nil
	}
	all := make([]uint32, 0, s.count)
	for i, w := range s.words {
		for ; w != 0; w &= w - 1 {
			all = append(all, uint32(64*i+bits.TrailingZeros64(w)))
		}
	}
	return all
}

// holdsBelow reports whether all ranks below that one are in the set.
func (s *set) holdsBelow(rank uint32) bool {
	for i, w := range s.words {
		first := uint32(64 * i)
		switch {
		case first >= rank:
			return true
		case rank-first < 64:
			return ^w<<(64-(rank-first)) == 0
		case w != ^uint64(0):
			return false
		}
	}
	return true
}

// before returns the highest rank below that one which is not in the set.
func (s *set) before(rank uint32) (uint32, bool) {
	for rank > 0 {
		if rank--; !s.has(rank) {
			return rank, true
		}
	}
	return 0, false
}
