package hostlib

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPending: requests are found by their numbers until they are taken, in whatever
// order, and come in the order in which they were added.
func TestPending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pending
		if start := rapid.Uint64().Draw(t, "first number"); rapid.Bool().Draw(t, "not from 0") {
			p.oldest, p.next = start, start
		}
		first := p.next
		want := map[uint64]*Request{}
		added := uint64(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "adds") {
				r := &Request{}
				if n := p.add(r); n != first+added {
					t.Fatalf("number %d, want %d", n, first+added)
				}
				want[first+added] = r
				added++
				continue
			}
			n := first + rapid.Uint64Range(0, added+1).Draw(t, "taken") - 1
			if got := p.take(n); got != want[n] {
				t.Fatalf("request %d is %p, want %p", n, got, want[n])
			}
			delete(want, n)
		}
		if p.areSome() != (len(want) > 0) {
			t.Fatalf("there are some: %v, want %d", p.areSome(), len(want))
		}
		var inOrder, all []*Request
		for _, n := range slices.SortedFunc(maps.Keys(want), func(a, b uint64) int { return int(int64(a - b)) }) {
			inOrder = append(inOrder, want[n])
		}
		if p.each(func(r *Request) { all = append(all, r) }); !slices.Equal(all, inOrder) {
			t.Fatalf("%d requests, want %d, or in another order", len(all), len(inOrder))
		}
		if len(p.ring) > 1 && uint64(len(p.ring)) >= 2*max(1, added) {
			t.Fatalf("a ring of %d places for %d requests", len(p.ring), added)
		}
	})
}
