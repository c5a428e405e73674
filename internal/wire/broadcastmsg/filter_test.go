package broadcastmsg

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// chosen returns the ranks that a filter chooses of n.
func chosen(f Filter, n int) (ranks []int, ok bool) {
	ranges, ok := f.Chosen(n)
	if !ok {
		return nil, false
	}
	for from, to := range ranges {
		for rank := from; rank < to; rank++ {
			ranks = append(ranks, rank)
		}
	}
	return ranks, true
}

// TestFilter: a filter chooses who it was made of, is one of a group of that size
// alone where it names the last ranks, is never longer than a bit a rank, and of a
// few runs takes a few bytes.
func TestFilter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 300).Draw(t, "members")
		dense := rapid.IntRange(1, 40).Draw(t, "one in")
		in := make([]bool, n)
		for i := range in {
			in[i] = rapid.IntRange(0, dense).Draw(t, "") == 0
		}
		if dense%2 == 0 {
			for i := range in {
				in[i] = !in[i]
			}
		}
		var want []int
		for rank, yes := range in {
			if yes {
				want = append(want, rank)
			}
		}
		if len(want) == 0 || len(want) == n {
			t.Skip("all, or nobody")
		}
		f := MakeFilter(n, func(rank int) bool { return in[rank] })
		got, ok := chosen(f, n)
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("%x chooses %v of %d, want %v", f, got, n, want)
		}
		if len(f) > 1+(n+7)/8 {
			t.Errorf("%d bytes for %d ranks", len(f), n)
		}
		if _, ok := chosen(f, 1); ok {
			t.Errorf("%x is one of a single rank", f)
		}
	})
	for _, tt := range []struct {
		n    int
		in   func(int) bool
		want Filter
	}{
		{1 << 20, func(r int) bool { return r != 5 }, Filter{0, 0, 5, 1}},
		{1 << 20, func(r int) bool { return r == 5 }, Filter{0, 5, 1}},
		{300, func(r int) bool { return r >= 128 }, Filter{0, 128, 1}},
		{24, func(r int) bool { return r%2 == 0 }, Filter{1, 0xaa, 0xaa, 0xaa}},
	} {
		if got := MakeFilter(tt.n, tt.in); !bytes.Equal(got, tt.want) {
			t.Errorf("%x, want %x", got, tt.want)
		}
	}
}

// TestFiltersOfAnotherGroup: what does not choose some and leave out some of n
// members is no filter of theirs.
func TestFiltersOfAnotherGroup(t *testing.T) {
	for _, tt := range []struct {
		f    Filter
		n    int
		want bool
	}{
		{Filter{0, 5}, 6, true}, {Filter{0, 5}, 5, false},
		{Filter{0, 5, 1}, 7, true}, {Filter{0, 5, 1}, 6, false}, // its last run has no end
		{Filter{1, 0xaa}, 8, true}, {Filter{1, 0xaa}, 7, true}, {Filter{1, 0xaa}, 6, false}, {Filter{1, 0xaa}, 9, false},
		{Filter{1, 0xff}, 8, false}, {Filter{1, 0}, 8, false},
		{nil, 8, false}, {Filter{0}, 8, false}, {Filter{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 8, false},
	} {
		if _, ok := tt.f.Chosen(tt.n); ok != tt.want {
			t.Errorf("%x of %d: %v", tt.f, tt.n, ok)
		}
	}
}

// FuzzFilter: whatever is a filter of a group is written as it was, unless runs
// and bits are both possible.
func FuzzFilter(f *testing.F) {
	f.Add([]byte{0, 5, 1}, 9)
	f.Add([]byte{1, 0xaa, 0xaa, 0xa0}, 20)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n &= 1<<12 - 1
		ranks, ok := chosen(b, n)
		if !ok {
			return
		}
		in := map[int]bool{}
		for i, rank := range ranks {
			if in[rank] = true; rank >= n || i > 0 && rank <= ranks[i-1] {
				t.Fatalf("%x chooses %v of %d", b, ranks, n)
			}
		}
		again := MakeFilter(n, func(rank int) bool { return in[rank] })
		if again[0] == b[0] && !bytes.Equal(again, b) || len(again) > len(b) {
			t.Errorf("%x of %d is written %x", b, n, again)
		}
	})
}
