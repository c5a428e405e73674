package broadcast

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// TestTimers: held against a list that is searched. Every alarm knows its place.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap timers
		alarms := make([]alarm, 20)
		want := map[*alarm]core.Time{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			a := &alarms[rapid.IntRange(0, len(alarms)-1).Draw(t, "alarm")]
			if rapid.Bool().Draw(t, "set") {
				at := core.Time(rapid.IntRange(1, 30).Draw(t, "at"))
				heap.set(a, at)
				want[a] = at
			} else {
				heap.stop(a)
				delete(want, a)
			}
			first := core.Never
			for _, at := range want {
				first = first.Earlier(at)
			}
			if heap.deadline() != first || len(heap) != len(want) {
				t.Fatalf("%d alarms, the first at %v; want %d and %v", len(heap), heap.deadline(), len(want), first)
			}
			for i, a := range heap {
				if int(a.place) != i+1 || a.at != want[a] || a.at < heap[(i-1)/2].at {
					t.Fatalf("the alarm at %d is out of place", i)
				}
			}
		}
	})
}
