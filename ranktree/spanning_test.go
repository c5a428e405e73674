package ranktree

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// oracleComplete fills a tree level by level.
func oracleComplete(n, arity int) oracle {
	o := make(oracle, n)
	for rank := range o {
		o[rank] = -1
	}
	next := 1
	for parent := 0; next < n; parent++ {
		for range arity {
			if next < n {
				o[next] = parent
				next++
			}
		}
	}
	return o
}

// rotate renumbers: rank r of the result is what (r - root) mod n was.
func (o oracle) rotate(root int) oracle {
	n := len(o)
	r := make(oracle, n)
	for rank, parent := range o {
		if parent >= 0 {
			parent = (parent + root) % n
		}
		r[(rank+root)%n] = parent
	}
	return r
}

func (o oracle) reach(rank int) int {
	deepest := 0
	for _, child := range o.children(rank) {
		deepest = max(deepest, 1+o.reach(child))
	}
	return deepest
}

// compareSpanning holds a tree against an oracle whose root is rank root.
func compareSpanning(t rapid.TB, tree Spanning, o oracle, root int) {
	t.Helper()
	if tree.Size() != len(o) {
		t.Fatalf("%v: size %d, want %d", tree, tree.Size(), len(o))
	}
	for rank, want := range o {
		if parent, ok := tree.Parent(rank); ok != (want >= 0) || ok && parent != want {
			t.Fatalf("%v: Parent(%d) = %d, %v, want %d", tree, rank, parent, ok, want)
		}
		children := tree.AppendChildren(nil, rank)
		slices.Sort(children)
		if want := o.children(rank); !slices.Equal(children, want) {
			t.Fatalf("%v: children of %d are %v, want %v", tree, rank, children, want)
		}
		if got, want := tree.Count(rank), len(o.beneath(rank)); got != want {
			t.Fatalf("%v: Count(%d) = %d, want %d", tree, rank, got, want)
		}
		if got, want := tree.Reach(rank), o.reach(rank); got != want {
			t.Fatalf("%v: Reach(%d) = %d, want %d", tree, rank, got, want)
		}
		n := len(o)
		slices.SortFunc(children, func(a, b int) int {
			return cmp.Or(o.reach(b)-o.reach(a), len(o.beneath(b))-len(o.beneath(a)), (b-root+n)%n-(a-root+n)%n)
		})
		if got := AppendDeepestFirst(nil, tree, rank); !slices.Equal(got, children) {
			t.Fatalf("%v: children of %d are served in the order %v, want %v", tree, rank, got, children)
		}
	}
}

func TestSpanningTreesAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 120).Draw(t, "n")
		k := rapid.IntRange(2, 12).Draw(t, "k")
		root := rapid.IntRange(0, n-1).Draw(t, "root")
		for _, tt := range []struct {
			tree   Spanning
			oracle oracle
		}{
			{KNomial(n, k), oracleKNomial(n, k)},
			{KAry(n, k), oracleKAry(n, k)},
			{CompleteKAry(n, k), oracleComplete(n, k)},
			{CompleteKAry(n, 1), oracleComplete(n, 1)},
			{Flat(n), oracleKAry(n, max(1, n-1))},
		} {
			compareSpanning(t, tt.tree, tt.oracle, 0)
			compareSpanning(t, Rotate(tt.tree, root), tt.oracle.rotate(root), root)
		}
	})
}

// Point 46 of the requirements of server collectives: the vectors of binomial
// trees, by the formulas that it gives.
func TestPoint46Binomial(t *testing.T) {
	full, partial := KNomial(16, 2), KNomial(14, 2)
	if got := full.Children(12); !slices.Equal(got, []int{13, 14}) {
		t.Errorf("16 nodes: children of 12 are %v, want 13 and 14", got)
	}
	if got, _ := full.Parent(15); got != 14 {
		t.Errorf("16 nodes: the parent of 15 is %d, want 14", got)
	}
	if got := partial.Children(12); !slices.Equal(got, []int{13}) {
		t.Errorf("14 nodes: children of 12 are %v, want 13", got)
	}
	if got := partial.Count(8); got != 6 {
		t.Errorf("14 nodes: %d beneath 8, want 6", got)
	}
	for n := 1; n <= 70; n++ {
		tree := KNomial(n, 2)
		for r := 1; r < n; r++ {
			p, _ := tree.Parent(r)
			if want := r & (r - 1); p != want {
				t.Fatalf("%v: the parent of %d is %d, want %d", tree, r, p, want)
			}
			size := r - p
			if d := 2*r - p - 1; d >= n {
				size = n - r
			}
			if got := tree.Count(r); got != size {
				t.Fatalf("%v: %d beneath %d, want %d", tree, got, r, size)
			}
		}
	}
}

// Point 47: the rounds of 16 nodes. A node serves one child in a round.
func TestPoint47Rounds(t *testing.T) {
	tree := KNomial(16, 2)
	has, next := []int{0}, map[int][]int{}
	want := [][]int{{8}, {4, 12}, {2, 6, 10, 14}, {1, 3, 5, 7, 9, 11, 13, 15}}
	for round, reached := range want {
		var got []int
		for _, rank := range has {
			if _, ok := next[rank]; !ok {
				next[rank] = AppendDeepestFirst(nil, tree, rank)
			}
			if len(next[rank]) > 0 {
				got, next[rank] = append(got, next[rank][0]), next[rank][1:]
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, reached) {
			t.Errorf("round %d reaches %v, want %v", round+1, got, reached)
		}
		has = append(has, got...)
	}
}

// Point 48: the vectors of quadnomial trees.
func TestPoint48KNomial(t *testing.T) {
	tree := KNomial(16, 4)
	for rank, want := range map[int]int{14: 12, 12: 0} {
		if got, _ := tree.Parent(rank); got != want {
			t.Errorf("the parent of %d is %d, want %d", rank, got, want)
		}
	}
	if got := tree.Children(12); !slices.Equal(got, []int{13, 14, 15}) {
		t.Errorf("children of 12 are %v, want 13, 14 and 15", got)
	}
	if got := tree.Children(7); len(got) > 0 {
		t.Errorf("7 has children %v, want none", got)
	}
	for n := 1; n <= 100; n++ {
		tree := KNomial(n, 4)
		for r := 1; r < n; r++ {
			p, _ := tree.Parent(r)
			power := 1 // K^D, D the integer floor of log_K(R-P)
			for power*4 <= r-p {
				power *= 4
			}
			if got, want := tree.Count(r), min(power, n-r); got != want {
				t.Fatalf("%v: %d beneath %d, want %d", tree, got, r, want)
			}
		}
	}
}

// Point 50: the vectors of complete 3-ary trees, and roots other than rank 0.
func TestPoint50Complete(t *testing.T) {
	tree := CompleteKAry(12, 3)
	if got := tree.Children(3); !slices.Equal(got, []int{10, 11}) {
		t.Errorf("children of 3 are %v, want 10 and 11", got)
	}
	rotated := Rotate(tree, 5)
	if _, ok := rotated.Parent(5); ok {
		t.Error("the root that it was rotated to has a parent")
	}
	if got := rotated.AppendChildren(nil, 8); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("rotated by 5, children of 8 are %v, want 3 and 4", got)
	}
}

// Point 51: in partial trees the order of depth is not that of falling ranks.
func TestPoint51DeepestFirst(t *testing.T) {
	if got, want := AppendDeepestFirst(nil, KNomial(9, 2), 0), []int{4, 2, 8, 1}; !slices.Equal(got, want) {
		t.Errorf("binomial, 9: served in the order %v, want %v", got, want)
	}
	if got, want := AppendDeepestFirst(nil, CompleteKAry(6, 3), 0), []int{1, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("3-ary, 6: served in the order %v, want %v", got, want)
	}
	if got, want := AppendDeepestFirst(nil, CompleteKAry(6, 2), 0), []int{1, 2}; !slices.Equal(got, want) {
		t.Errorf("binary, 6: served in the order %v, want %v: of equal depth the larger first", got, want)
	}
	if got, want := AppendDeepestFirst(nil, Rotate(KNomial(9, 2), 7), 7), []int{2, 0, 6, 8}; !slices.Equal(got, want) {
		t.Errorf("binomial, 9 from 7: served in the order %v, want %v", got, want)
	}
}

// A complete tree as large as an int allows has no overflow in it.
func TestHugeComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1<<20, math.MaxInt).Draw(t, "n")
		k := rapid.IntRange(2, 64).Draw(t, "k")
		tree := CompleteKAry(n, k)
		rank := rapid.IntRange(0, n-1).Draw(t, "rank")
		count, reach := 1, 0
		for _, child := range tree.Children(rank) {
			if parent, _ := tree.Parent(child); parent != rank {
				t.Fatalf("%v: Parent(%d) = %d, want %d", tree, child, parent, rank)
			}
			count += tree.Count(child)
			reach = max(reach, 1+tree.Reach(child))
		}
		if got := tree.Count(rank); got != count {
			t.Fatalf("%v: Count(%d) = %d, want %d", tree, rank, got, count)
		}
		if got := tree.Reach(rank); got != reach {
			t.Fatalf("%v: Reach(%d) = %d, want %d", tree, rank, got, reach)
		}
	})
}

func TestSpanningMisuse(t *testing.T) {
	for name, misuse := range map[string]func(){
		"negative size": func() { CompleteKAry(-1, 2) },
		"arity 0":       func() { CompleteKAry(3, 0) },
		"rank beyond":   func() { CompleteKAry(3, 2).Children(3) },
		"foreign root":  func() { Rotate(Flat(3), 3) },
		"rotated rank":  func() { Rotate(Flat(3), 1).Count(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse()
		})
	}
	if got := Rotate(CompleteKAry(12, 3), 4).String(); got != "complete 3-ary tree of 12 from 4" {
		t.Error(got)
	}
	if CompleteKAry(0, 2).Height() != 0 || CompleteKAry(13, 3).Height() != 2 {
		t.Error("heights of complete trees")
	}
}

// lastReceipt returns when the last rank beneath one that has just got a message
// has it: a send takes gap, and arrives latency after it began. In the best order
// children with the most to do behind them are served first.
func lastReceipt(t Spanning, rank, gap, latency int, best bool) int {
	children := AppendDeepestFirst(nil, t, rank)
	behind := map[int]int{}
	for _, child := range children {
		behind[child] = lastReceipt(t, child, gap, latency, best)
	}
	if best {
		slices.SortFunc(children, func(a, b int) int { return behind[b] - behind[a] })
	}
	last := 0
	for i, child := range children {
		last = max(last, i*gap+latency+behind[child])
	}
	return last
}

// TestServingOrderIsBest: no other order of serving the children brings a message
// to the last rank sooner, in whole and in partial trees.
func TestServingOrderIsBest(t *testing.T) {
	worse, trees := 0, 0
	for n := 2; n <= 130; n++ {
		for k := 2; k <= 5; k++ {
			for _, tree := range []Spanning{KNomial(n, k), CompleteKAry(n, k)} {
				for _, ol := range [][2]int{{1, 3}, {2, 2}, {3, 1}} {
					trees++
					got, want := lastReceipt(tree, 0, ol[0], ol[1], false), lastReceipt(tree, 0, ol[0], ol[1], true)
					if got != want {
						if worse++; worse <= 5 {
							t.Errorf("%v, a send %d, on its way %d: the last has it after %d, at best %d", tree, ol[0], ol[1], got, want)
						}
					}
				}
			}
		}
	}
	if worse > 0 {
		t.Errorf("%d of %d are not the best", worse, trees)
	}
}
