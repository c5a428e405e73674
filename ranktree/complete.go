package ranktree

import "fmt"

// Complete is a k-ary tree that is filled level by level, each from the left:
// the parent of rank r is (r-1)/k, its children are rk+1 to rk+k. Unlike a Tree
// it is not numbered in preorder. Complete trees are values and equal by ==.
type Complete struct{ n, k int }

// CompleteKAry returns the complete k-ary tree over n ranks. Arity 1 gives a
// chain. It panics unless n >= 0 and arity >= 1.
func CompleteKAry(n, arity int) Complete {
	if n < 0 || arity < 1 {
		panic(fmt.Sprintf("tree: no complete k-ary tree of %d ranks and arity %d", n, arity))
	}
	return Complete{n, arity}
}

// Size returns how many ranks the tree spans.
func (t Complete) Size() int { return t.n }

// Parent returns the parent of rank, and false for rank 0, which has none.
func (t Complete) Parent(rank int) (parent int, ok bool) {
	t.check(rank)
	if rank == 0 {
		return 0, false
	}
	return (rank - 1) / t.k, true
}

// Children returns the children of rank in ascending order; nil where there
// are none.
func (t Complete) Children(rank int) []int { return t.AppendChildren(nil, rank) }

// AppendChildren appends the children of rank to dst in ascending order.
func (t Complete) AppendChildren(dst []int, rank int) []int {
	first, end := t.beneath(rank, rank+1)
	for child := first; child < end; child++ {
		dst = append(dst, child)
	}
	return dst
}

// Count returns how many ranks are beneath rank, itself included: level by
// level they are intervals.
func (t Complete) Count(rank int) int {
	t.check(rank)
	if t.k == 1 {
		return t.n - rank
	}
	count := 0
	for lo, hi := rank, rank+1; lo < hi; lo, hi = t.beneath(lo, hi) {
		count += hi - lo
	}
	return count
}

// Reach returns how many edges there are from rank to the deepest leaf beneath
// it: down along the leftmost children.
func (t Complete) Reach(rank int) int {
	t.check(rank)
	if t.k == 1 {
		return t.n - 1 - rank
	}
	reach := 0
	for lo, _ := t.beneath(rank, rank+1); lo < t.n; lo, _ = t.beneath(lo, lo+1) {
		reach++
	}
	return reach
}

// Height returns the greatest depth of any rank; 0 for a tree of no rank.
func (t Complete) Height() int {
	if t.n == 0 {
		return 0
	}
	return t.Reach(0)
}

// String returns the tree's shape and size, such as "complete 3-ary tree of 12".
func (t Complete) String() string { return fmt.Sprintf("complete %d-ary tree of %d", t.k, t.n) }

func (t Complete) check(rank int) {
	if rank < 0 || rank >= t.n {
		panic(fmt.Sprintf("tree: rank %d is not in the %v", rank, t))
	}
}

// beneath returns the children of the ranks from lo up to and without hi, an
// interval of the same kind; it is [n, n) where there are none.
func (t Complete) beneath(lo, hi int) (first, end int) {
	t.check(lo)
	return t.child(lo, 1), t.child(hi, 1)
}

// child returns rank*k + i, but n where that is no rank.
func (t Complete) child(rank, i int) int {
	if rank > (t.n-1-i)/t.k {
		return t.n
	}
	return min(t.n, rank*t.k+i)
}
