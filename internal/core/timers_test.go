package core

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTimers: held against a list that is searched. Every timer knows its place.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap Timers[int]
		timers := make([]Timer[int], 20)
		want := map[*Timer[int]]Time{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			one := &timers[rapid.IntRange(0, len(timers)-1).Draw(t, "timer")]
			first := Never
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1, 2:
				at := Time(rapid.IntRange(1, 30).Draw(t, "at"))
				heap.Set(one, at)
				want[one] = at
			case 3:
				heap.Set(one, Never)
				delete(want, one)
			default:
				now := Time(rapid.IntRange(1, 10).Draw(t, "now"))
				if due := heap.Due(now); due != nil {
					if want[due] > now || due.Running() {
						t.Fatalf("the timer of %v is due at %v", want[due], now)
					}
					delete(want, due)
				} else if heap.Next() <= now {
					t.Fatalf("nothing is due at %v, the first is at %v", now, heap.Next())
				}
			}
			for _, at := range want {
				first = first.Earlier(at)
			}
			if heap.Next() != first || len(heap) != len(want) {
				t.Fatalf("%d timers, the first at %v; want %d and %v", len(heap), heap.Next(), len(want), first)
			}
			for i, one := range heap {
				if int(one.place) != i+1 || one.At != want[one] || one.At < heap[(i-1)/2].At {
					t.Fatalf("the timer at %d is out of place", i)
				}
			}
		}
	})
}
