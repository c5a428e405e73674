package schedule

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInOrder(t *testing.T) {
	for _, x := range []struct {
		places [][]string
		want   []int
	}{
		{nil, nil},
		{[][]string{{""}, {""}, {""}}, nil},
		{[][]string{{"b"}, {"b"}, {"a"}}, nil},
		{[][]string{{"b"}, {"a"}, {"b"}, {"a"}}, []int{0, 2, 1, 3}},
		{[][]string{{"b", "h"}, {"a", "h"}, {"b", "g"}, {"b", "h"}, {"a", "h"}}, []int{0, 3, 2, 1, 4}},
		{[][]string{{"a", "bc"}, {"ab", "c"}, {"a", "bc"}}, []int{0, 2, 1}},
	} {
		if diff := cmp.Diff(x.want, InOrder(x.places)); diff != "" {
			t.Errorf("%v: %s", x.places, diff)
		}
	}
}

// crossings returns the bytes that go from one leaf to another, and the most that one member sends.
func crossings(t *testing.T, c Call, a Algorithm, leaf func(rank int) int) (bytes, most int) {
	for rank := range c.Size {
		c, sent := c, 0
		c.Rank = rank
		s, err := Make(&c, a)
		if err != nil {
			t.Fatal(err)
		}
		for r := range s.Rounds {
			for _, x := range r.Sends {
				sent += x.Size
				if leaf(rank) != leaf(x.Peer) {
					bytes += x.Size
				}
			}
		}
		most = max(most, sent)
	}
	return bytes, most
}

// TestLeaves: where ranks alternate between leaves, the order of leaves takes bytes off the links
// between them, and never adds any.
func TestLeaves(t *testing.T) {
	for _, leaves := range []int{2, 4, 5} {
		for _, size := range []int{8, 12, 20, 64} {
			leaf := func(rank int) int { return rank * 7 % size % leaves }
			var places [][]string
			for rank := range size {
				places = append(places, []string{fmt.Sprint(leaf(rank))})
			}
			order := InOrder(places)
			for _, of := range []Collective{Allreduce, Reduce, Broadcast, Allgather, ReduceScatter} {
				c := Call{Collective: of, Size: size, Width: 1, Count: 64 * size, Segment: 64}
				if of == Allgather || of == ReduceScatter {
					c.Count = 64
				}
				arranged := c
				arranged.Order = order
				for _, a := range Possible(&c) {
					before, _ := crossings(t, c, a, leaf)
					after, most := crossings(t, arranged, a, leaf)
					what := fmt.Sprintf("%d members on %d leaves, %s by %s: %d bytes between leaves, %d in order", size, leaves, of, a, before, after)
					isRing := a == Ring || a == Chain // which leave each leaf once
					if after > before || isRing && after > leaves*most {
						t.Error(what)
					} else if !slices.Contains([]Algorithm{Linear, Pairwise, Bruck}, a) {
						t.Log(what)
					}
				}
			}
		}
	}
}
