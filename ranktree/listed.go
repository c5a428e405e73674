package ranktree

import (
	"errors"
	"fmt"
)

// ErrList reports that a list of parents is no tree.
var ErrList = errors.New("tree: not the parents of a tree")

// Listed is a tree that was given rank by rank, for shapes that no arithmetic
// reports. Unlike the others it keeps some words for every rank.
type Listed struct {
	name   string
	parent []int32 // -1: the root
	next   []int32 // of the same parent; -1: none
	first  []int32 // child; -1: none
	count  []int32
	reach  []int32
}

// List returns the tree in which rank r has the parent parents[r], and the root
// -1. Children are in ascending order. The name stands for the tree in texts. It
// fails with ErrList where that is no tree.
func List(name string, parents []int32) (*Listed, error) {
	n := len(parents)
	t := &Listed{
		name: name, parent: parents, next: make([]int32, n), first: make([]int32, n),
		count: make([]int32, n), reach: make([]int32, n),
	}
	for r := range t.first {
		t.first[r], t.next[r] = -1, -1
	}
	root := -1
	for r := n - 1; r >= 0; r-- {
		p := parents[r]
		switch {
		case p == -1 && root < 0:
			root = r
		case p < 0 || int(p) >= n:
			return nil, fmt.Errorf("%w: rank %d of %d is beneath %d, beside the root %d", ErrList, r, n, p, root)
		default:
			t.next[r], t.first[p] = t.first[p], int32(r)
		}
	}
	if root < 0 {
		return nil, fmt.Errorf("%w: none of %d is the root", ErrList, n)
	}
	order := make([]int32, 1, n) // parents before their children
	order[0] = int32(root)
	for i := 0; i < len(order); i++ {
		for c := t.first[order[i]]; c >= 0; c = t.next[c] {
			order = append(order, c)
		}
	}
	if len(order) < n {
		return nil, fmt.Errorf("%w: %d of %d are beneath themselves", ErrList, n-len(order), n)
	}
	for i := n - 1; i >= 0; i-- {
		r := order[i]
		t.count[r]++
		if p := parents[r]; p >= 0 {
			t.count[p] += t.count[r]
			t.reach[p] = max(t.reach[p], t.reach[r]+1)
		}
	}
	return t, nil
}

// Size returns how many ranks the tree spans.
func (t *Listed) Size() int { return len(t.parent) }

// Parent returns the parent of rank, and false for the root.
func (t *Listed) Parent(rank int) (parent int, ok bool) {
	if t.parent[rank] < 0 {
		return 0, false
	}
	return int(t.parent[rank]), true
}

// AppendChildren appends the children of rank to dst, in ascending order.
func (t *Listed) AppendChildren(dst []int, rank int) []int {
	for c := t.first[rank]; c >= 0; c = t.next[c] {
		dst = append(dst, int(c))
	}
	return dst
}

// Count returns how many ranks are beneath rank, itself included.
func (t *Listed) Count(rank int) int { return int(t.count[rank]) }

// Reach returns how many edges there are from rank to the deepest leaf beneath
// it.
func (t *Listed) Reach(rank int) int { return int(t.reach[rank]) }

// String returns the tree's name and size.
func (t *Listed) String() string { return fmt.Sprintf("%s of %d", t.name, t.Size()) }
