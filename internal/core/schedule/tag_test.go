package schedule

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTag: a tag says what its call is, and those of calls that differ differ.
func TestTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		c.Count = rapid.SampledFrom([]int{0, 1, 7, 1<<18 - 1, 1 << 18, 1 << 30}).Draw(t, "elements")
		serial, function, element := rapid.Uint16().Draw(t, "serial"), uint8(rapid.IntRange(0, 15).Draw(t, "function")), uint8(rapid.IntRange(0, 15).Draw(t, "element"))
		tag := c.Tag(serial, function, element)
		got := ReadTag(tag)
		want := Caption{serial, c.Collective, function, element, uint16(c.Root), c.Count}
		if c.Count >= 1<<18 || c.Collective == Allgatherv || c.Collective == ReduceScatterv {
			want.Count = -1
		}
		if got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		other := c
		other.Count += rapid.IntRange(1, 9).Draw(t, "more")
		if want.Count >= 0 && other.Tag(serial, function, element) == tag {
			t.Fatalf("%d and %d elements have one tag", c.Count, other.Count)
		}
	})
}

// TestHashesInTag: where there is no room for what members gave, the tag has a hash of it.
func TestHashesInTag(t *testing.T) {
	seen := map[uint64]bool{}
	const calls = 1000
	for i := range calls / 2 {
		long := Call{Collective: Broadcast, Count: 1<<20 + i}
		counts := Call{Collective: Allgatherv, Counts: []int{3, i, 5}}
		seen[long.Tag(1, 0, 1)], seen[counts.Tag(1, 0, 1)] = true, true
	}
	if len(seen) < calls-4 {
		t.Errorf("%d calls have %d tags", calls, len(seen))
	}
}
