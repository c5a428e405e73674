package ranktree

import (
	"cmp"
	"fmt"
	"slices"
)

// Spanning is what a spanning tree over the ranks 0 to Size()-1 has to answer,
// each question by arithmetic or from what a tree was given. To add a shape is
// to write these methods. Those that take a rank panic where it is not one of
// the tree's.
type Spanning interface {
	Size() int
	// Parent returns the parent of rank, and false for the root.
	Parent(rank int) (parent int, ok bool)
	// AppendChildren appends the children of rank to dst, in an order of the
	// tree's own.
	AppendChildren(dst []int, rank int) []int
	// Count returns how many ranks are beneath rank, itself included.
	Count(rank int) int
	// Reach returns how many edges there are from rank to the deepest leaf
	// beneath it: 0 for a leaf.
	Reach(rank int) int
	String() string
}

// Count returns how many ranks are beneath rank, itself included.
func (t Tree) Count(rank int) int { return t.find(rank).size }

// Reach returns how many edges there are from rank to the deepest leaf beneath
// it: a part of a tree is a smaller tree of the same kind.
func (t Tree) Reach(rank int) int {
	return Tree{n: t.find(rank).size, k: t.k, shape: t.shape}.Height()
}

// AppendDeepestFirst appends the children of rank to dst in the order in which
// they are best served: the deeper the tree beneath a child the sooner, of equal
// depth the larger, and of equal size the higher rank first. In a partial tree that
// is not the order of falling ranks: of the binomial tree of 9, rank 8 is a leaf. In a Rotated tree
// the ranks before the rotation count, so that every root has the same order.
func AppendDeepestFirst(dst []int, t Spanning, rank int) []int {
	if r, ok := t.(Rotated); ok {
		start := len(dst)
		dst = AppendDeepestFirst(dst, r.of, r.inner(rank))
		for i := range dst[start:] {
			dst[start+i] = r.outer(dst[start+i])
		}
		return dst
	}
	start := len(dst)
	dst = t.AppendChildren(dst, rank)
	slices.SortFunc(dst[start:], func(a, b int) int {
		return cmp.Or(cmp.Compare(t.Reach(b), t.Reach(a)), cmp.Compare(t.Count(b), t.Count(a)), cmp.Compare(b, a))
	})
	return dst
}

// Rotated is a tree whose root is another rank: rank r of it has the place that
// (r - root) mod n has in the tree it was made of.
type Rotated struct {
	of   Spanning
	root int
}

// Rotate returns t with root for its root instead of rank 0. It panics unless
// root is a rank of t. To rotate once more starts from t, not from the result.
func Rotate(t Spanning, root int) Rotated {
	if root < 0 || root >= t.Size() {
		panic(fmt.Sprintf("tree: rank %d cannot be the root of the %v", root, t))
	}
	return Rotated{t, root}
}

func (r Rotated) inner(rank int) int {
	if n := r.of.Size(); rank < 0 || rank >= n {
		panic(fmt.Sprintf("tree: rank %d is not in the %v", rank, r))
	}
	if rank -= r.root; rank < 0 {
		rank += r.of.Size()
	}
	return rank
}

func (r Rotated) outer(rank int) int {
	if n := r.of.Size(); rank >= n-r.root {
		return rank - (n - r.root)
	}
	return rank + r.root
}

// Size returns how many ranks the tree spans.
func (r Rotated) Size() int { return r.of.Size() }

// Parent returns the parent of rank, and false for the root.
func (r Rotated) Parent(rank int) (parent int, ok bool) {
	if parent, ok = r.of.Parent(r.inner(rank)); !ok {
		return 0, false
	}
	return r.outer(parent), true
}

// AppendChildren appends the children of rank to dst, in the order in which the
// tree that was rotated has them.
func (r Rotated) AppendChildren(dst []int, rank int) []int {
	start := len(dst)
	dst = r.of.AppendChildren(dst, r.inner(rank))
	for i := range dst[start:] {
		dst[start+i] = r.outer(dst[start+i])
	}
	return dst
}

// Count returns how many ranks are beneath rank, itself included.
func (r Rotated) Count(rank int) int { return r.of.Count(r.inner(rank)) }

// Reach returns how many edges there are from rank to the deepest leaf beneath
// it.
func (r Rotated) Reach(rank int) int { return r.of.Reach(r.inner(rank)) }

// String returns the tree and its root, such as "binomial tree of 16 from 3".
func (r Rotated) String() string { return fmt.Sprintf("%v from %d", r.of, r.root) }
