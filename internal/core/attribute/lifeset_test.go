package attribute

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// TestLifeSet compares the set with a map.
func TestLifeSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s lifeSet
		want := map[attributes.Life]bool{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			l := attributes.Life(rapid.Uint64Range(0, 40).Draw(t, "life")) << (5 * rapid.IntRange(0, 1).Draw(t, "shift"))
			if rapid.Bool().Draw(t, "add") {
				s.add(l)
				want[l] = l != 0
			} else {
				s.remove(l)
				want[l] = false
			}
			n := 0
			for l, in := range want {
				if s.has(l) != in {
					t.Fatalf("%d: %v, want %v", l, s.has(l), in)
				}
				if in {
					n++
				}
			}
			s.each(func(l attributes.Life) {
				if n--; !want[l] {
					t.Fatalf("%d is in it", l)
				}
			})
			if n != 0 || 4*s.count > 3*len(s.table) {
				t.Fatalf("%d more than there are, %d of %d", n, s.count, len(s.table))
			}
		}
	})
}

// each calls do for all lives, in no particular order.
func (s *lifeSet) each(do func(attributes.Life)) {
	for _, l := range s.table {
		if l != 0 {
			do(l)
		}
	}
}
