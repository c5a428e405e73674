package nearest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		var q Queue
		var want []Entry
		for range n {
			e := Entry{float64(r.IntN(10)), int32(r.IntN(10))}
			q.Push(e.Dist, e.Node)
			want = append(want, e)
		}
		slices.SortFunc(want, func(x, y Entry) int { return cmp.Or(cmp.Compare(x.Dist, y.Dist), cmp.Compare(x.Node, y.Node)) })
		for i, e := range want {
			if got := q.Pop(); got != e {
				t.Fatalf("of %d, %d: %v, not %v", n, i, got, e)
			}
		}
	}
}
