package disjoint

import (
	"math/rand/v2"
	"testing"
)

// Beside labels that are rewritten at every union.
func TestSets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		s, label, sets := New(n), make([]int, n), n
		for i := range label {
			label[i] = i
		}
		for range 2 * n {
			x, y := r.IntN(n), r.IntN(n)
			if s.Join(int32(x), int32(y)) != (label[x] != label[y]) {
				t.Fatalf("%d and %d: %v", x, y, label)
			}
			from, to := max(label[x], label[y]), min(label[x], label[y])
			if from != to {
				sets--
			}
			for i := range label {
				if label[i] == from {
					label[i] = to
				}
			}
		}
		for i := range label {
			if int(s.Find(int32(i))) != label[i] {
				t.Fatalf("%d is in the set of %d and not of %d", i, s.Find(int32(i)), label[i])
			}
		}
		if s.Count() != sets {
			t.Fatalf("%d sets, not %d", s.Count(), sets)
		}
	}
}
