package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// The queue against a sorted list.
func TestQueueAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			at    core.Time
			token uint64
		}
		var q queue
		var oracle []entry
		for token := range uint64(rapid.IntRange(1, 200).Draw(t, "steps")) {
			if len(oracle) > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				at, _ := q.top()
				if got := (entry{at, q.pop().token}); got != oracle[0] {
					t.Fatalf("popped %v, want %v", got, oracle[0])
				}
				oracle = oracle[1:]
				continue
			}
			e := entry{core.Time(rapid.IntRange(0, 20).Draw(t, "at")), token}
			q.push(e.at, event{token: token})
			i, _ := slices.BinarySearchFunc(oracle, e.at+1, func(o entry, at core.Time) int { return int(o.at - at) })
			oracle = slices.Insert(oracle, i, e)
		}
		for _, want := range oracle {
			at, _ := q.top()
			if got := (entry{at, q.pop().token}); got != want {
				t.Fatalf("popped %v, want %v", got, want)
			}
		}
		if !q.empty() {
			t.Fatal("not empty")
		}
	})
}
