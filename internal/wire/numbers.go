package wire

import "math/bits"

// Numbers is a set of chunk numbers from First on, as far as its bits reach.
type Numbers struct {
	First uint32
	Bits  []uint64 // bit i of word j stands for First + 64j + i
}

// Init makes s the empty set that can hold the n numbers from first on.
func (s *Numbers) Init(first uint32, n int) {
	words := (n + 63) / 64
	s.First = first
	if cap(s.Bits) < words {
		s.Bits = make([]uint64, words)
		return
	}
	s.Bits = s.Bits[:words]
	clear(s.Bits)
}

// Set adds number n; one out of reach is ignored.
func (s *Numbers) Set(n uint32) {
	if i := n - s.First; i>>6 < uint32(len(s.Bits)) {
		s.Bits[i>>6] |= 1 << (i & 63)
	}
}

// Has reports whether n is in s.
func (s *Numbers) Has(n uint32) bool {
	i := n - s.First
	return i>>6 < uint32(len(s.Bits)) && s.Bits[i>>6]&(1<<(i&63)) != 0
}

// Add adds every number of t that s can hold.
func (s *Numbers) Add(t *Numbers) {
	t.Each(s.Set)
}

// Each calls f with every number in s, in order.
func (s *Numbers) Each(f func(n uint32)) {
	for j, w := range s.Bits {
		for ; w != 0; w &= w - 1 {
			f(s.First + uint32(64*j+bits.TrailingZeros64(w)))
		}
	}
}
