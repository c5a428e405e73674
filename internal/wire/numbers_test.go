package wire

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestNumbers compares a set with a map, also across the wrap of numbers.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]uint32{0, 100, ^uint32(0) - 70}).Draw(t, "first")
		size := rapid.IntRange(0, 200).Draw(t, "size")
		var s, other Numbers
		s.Init(1, 300)
		s.Set(7)
		s.Init(first, size)
		other.Init(first-3, 64)
		want := map[uint32]bool{}
		offset := rapid.Uint32Range(0, 300)
		for _, i := range rapid.SliceOf(offset).Draw(t, "set") {
			n := first - 20 + i
			s.Set(n)
			if n-first < uint32((size+63)/64*64) {
				want[n] = true
			}
		}
		for _, i := range rapid.SliceOf(offset).Draw(t, "add") {
			n := first - 20 + i
			other.Set(n)
			if other.Has(n) && n-first < uint32(64*len(s.Bits)) {
				want[n] = true
			}
		}
		s.Add(&other)
		for n := first - 30; n != first+400; n++ {
			if s.Has(n) != want[n] {
				t.Fatalf("Has(%d) = %v", n, s.Has(n))
			}
		}
		var each []uint32
		s.Each(func(n uint32) { each = append(each, n) })
		rising := slices.IsSortedFunc(each, func(a, b uint32) int { return int(int32(a - b)) })
		if len(each) != len(want) || !rising {
			t.Fatalf("Each %v, want %d numbers", each, len(want))
		}
	})
}
