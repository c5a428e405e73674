package member

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// TestDirectory: it finds whom it holds, forgets the others, and gives no number
// to two.
func TestDirectory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDirectory()
		held := map[gossip.ID]int{}
		numbers := map[gossip.ID]Index{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			id := idOf(string(rune('a' + rapid.IntRange(0, 25).Draw(t, "id"))))
			if rapid.Bool().Draw(t, "other") {
				id = gossip.ID(fmt.Sprintf("n%d@10.0.0.1:1", rapid.IntRange(0, 100).Draw(t, "n")))
			}
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0, 1:
				i := d.Add(id)
				d.Hold(i)
				if held[id]++; held[id] > 1 && numbers[id] != i {
					t.Fatalf("%s is %d and %d", id, numbers[id], i)
				}
				numbers[id] = i
			case 2:
				if held[id] > 0 {
					d.Release(numbers[id])
					held[id]--
				}
			case 3:
				d.Add(id)
				d.Sweep()
			}
		}
		d.Sweep()
		used := map[Index]gossip.ID{}
		for id, n := range held {
			i, ok := d.Find(id.Key())
			if ok != (n > 0) {
				t.Fatalf("%s, held %d times, is found: %v", id, n, ok)
			}
			if ok && (d.ID(i) != id || d.Key(i) != id.Key() || used[i] != "") {
				t.Fatalf("%d is %s and %s", i, d.ID(i), used[i])
			}
			if ok {
				used[i] = id
			}
		}
	})
}
