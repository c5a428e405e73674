package ranktree

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// oracle is a tree reported by the parent of every rank, -1 for rank 0.
type oracle []int

// oracleKNomial clears digits in the numeral of each rank.
func oracleKNomial(n, radix int) oracle {
	o := make(oracle, n)
	for rank := range o {
		var digits []int
		for r := rank; r > 0; r /= radix {
			digits = append(digits, r%radix)
		}
		if i := slices.IndexFunc(digits, func(d int) bool { return d > 0 }); i >= 0 {
			digits[i] = 0
		}
		parent := 0
		for _, d := range slices.Backward(digits) {
			parent = parent*radix + d
		}
		o[rank] = parent
	}
	if n > 0 {
		o[0] = -1
	}
	return o
}

// oracleKAry deals the ranks beneath each one like cards, and numbers the
// trees so made in preorder.
func oracleKAry(n, arity int) oracle {
	var o oracle
	var grow func(parent, size int)
	grow = func(parent, size int) {
		if size == 0 {
			return
		}
		rank := len(o)
		o = append(o, parent)
		heaps := make([]int, arity)
		for card := range size - 1 {
			heaps[card%arity]++
		}
		for _, heap := range heaps {
			grow(rank, heap)
		}
	}
	grow(-1, n)
	return o
}

func (o oracle) children(rank int) (all []int) {
	for child, parent := range o {
		if parent == rank {
			all = append(all, child)
		}
	}
	return all
}

func (o oracle) depth(rank int) int {
	if o[rank] < 0 {
		return 0
	}
	return 1 + o.depth(o[rank])
}

// beneath returns rank and all its descendants in ascending order.
func (o oracle) beneath(rank int) []int {
	all := []int{rank}
	for _, child := range o.children(rank) {
		all = append(all, o.beneath(child)...)
	}
	slices.Sort(all)
	return all
}

func compare(t rapid.TB, tree Tree, o oracle) {
	t.Helper()
	if tree.Size() != len(o) {
		t.Fatalf("%v: size %d, want %d", tree, tree.Size(), len(o))
	}
	height := 0
	for rank, want := range o {
		if parent, ok := tree.Parent(rank); ok != (want >= 0) || ok && parent != want {
			t.Fatalf("%v: Parent(%d) = %d, %v, want %d", tree, rank, parent, ok, want)
		}
		if got, want := tree.Children(rank), o.children(rank); !slices.Equal(got, want) {
			t.Fatalf("%v: Children(%d) = %v, want %v", tree, rank, got, want)
		}
		beneath := o.beneath(rank)
		if lo, hi := tree.Subtree(rank); lo != beneath[0] || hi != beneath[len(beneath)-1]+1 || hi-lo != len(beneath) {
			t.Fatalf("%v: Subtree(%d) = [%d, %d), want %v", tree, rank, lo, hi, beneath)
		}
		if got := tree.Lowest(rank); got != beneath[0] {
			t.Fatalf("%v: Lowest(%d) = %d, want %d", tree, rank, got, beneath[0])
		}
		if got, want := tree.Depth(rank), o.depth(rank); got != want {
			t.Fatalf("%v: Depth(%d) = %d, want %d", tree, rank, got, want)
		}
		height = max(height, o.depth(rank))
	}
	if got := tree.Height(); got != height {
		t.Fatalf("%v: Height() = %d, want %d", tree, got, height)
	}
}

func TestSmallTreesAgainstOracle(t *testing.T) {
	for n := range 40 {
		for k := 1; k <= n+2; k++ {
			compare(t, KAry(n, k), oracleKAry(n, k))
			if k >= 2 {
				compare(t, KNomial(n, k), oracleKNomial(n, k))
			}
		}
		compare(t, Flat(n), oracleKAry(n, max(1, n-1)))
	}
}

func TestTreesAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		k := rapid.IntRange(2, 20).Draw(t, "k")
		compare(t, KNomial(n, k), oracleKNomial(n, k))
		compare(t, KAry(n, k), oracleKAry(n, k))
	})
}

func TestKAryIsLowest(t *testing.T) {
	for arity := 2; arity <= 5; arity++ {
		for n, capacity, height := 1, 1, 0; n <= 1000; n++ {
			if n > capacity {
				height++
				capacity = capacity*arity + 1
			}
			if got := KAry(n, arity).Height(); got != height {
				t.Fatalf("KAry(%d, %d).Height() = %d, want %d", n, arity, got, height)
			}
		}
	}
}

// A tree as large as an int allows has the same laws, seen along random walks.
func TestHugeTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1<<20, math.MaxInt).Draw(t, "n")
		k := rapid.IntRange(2, 64).Draw(t, "k")
		tree := rapid.SampledFrom([]Tree{KNomial(n, k), KAry(n, k)}).Draw(t, "tree")
		rank := rapid.IntRange(0, n-1).Draw(t, "rank")
		if tree.Depth(rank) > tree.Height() {
			t.Fatalf("%v: rank %d is %d deep, beyond the height %d", tree, rank, tree.Depth(rank), tree.Height())
		}
		for steps := tree.Depth(rank); ; steps-- {
			lo, hi := tree.Subtree(rank)
			next := rank + 1
			for _, child := range tree.Children(rank) {
				first, end := tree.Subtree(child)
				if first != next {
					t.Fatalf("%v: child %d of %d does not follow on %d", tree, child, rank, next)
				}
				if parent, _ := tree.Parent(child); parent != rank {
					t.Fatalf("%v: Parent(%d) = %d, want %d", tree, child, parent, rank)
				}
				next = end
			}
			if lo != rank || next != hi {
				t.Fatalf("%v: children of %d end at %d, its subtree at %d", tree, rank, next, hi)
			}
			parent, ok := tree.Parent(rank)
			if !ok {
				if steps != 0 {
					t.Fatalf("%v: %d steps too few to rank 0", tree, steps)
				}
				return
			}
			rank = parent
		}
	})
}

func TestMisuse(t *testing.T) {
	for name, misuse := range map[string]func(){
		"negative size":        func() { KNomial(-1, 2) },
		"radix 1":              func() { KNomial(4, 1) },
		"arity 0":              func() { KAry(4, 0) },
		"negative flat":        func() { Flat(-1) },
		"rank beyond":          func() { Flat(4).Parent(4) },
		"negative rank":        func() { KNomial(4, 2).Children(-1) },
		"any rank of no ranks": func() { Tree{}.Subtree(0) },
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
}

func TestString(t *testing.T) {
	for want, tree := range map[string]Tree{
		"binomial tree of 16": KNomial(16, 2),
		"4-nomial tree of 16": KNomial(16, 4),
		"3-ary tree of 16":    KAry(16, 3),
		"flat tree of 16":     Flat(16),
	} {
		if got := tree.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	tree, children := KNomial(1_000_000, 4), make([]int, 0, 64)
	allocs := testing.AllocsPerRun(100, func() {
		children = tree.AppendChildren(children[:0], 0)
		tree.Parent(999_999)
		tree.Subtree(4096)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func BenchmarkChildren(b *testing.B) {
	for _, tree := range []Tree{KNomial(1_000_000, 2), KNomial(1_000_000, 8), KAry(1_000_000, 2)} {
		b.Run(fmt.Sprintf("tree=%v", tree), func(b *testing.B) {
			var children []int
			rank := 0
			for b.Loop() {
				children = tree.AppendChildren(children[:0], rank)
				if rank += 4096; rank >= tree.Size() {
					rank = 0
				}
			}
		})
	}
}
