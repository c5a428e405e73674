package ranktree

import "fmt"

// Tree is a spanning tree over ranks 0 to Size()-1. Trees are values and equal
// by ==; the zero Tree has no ranks. The methods that take a rank panic where
// it is not one of the tree's.
type Tree struct {
	n, k  int
	shape shape
}

// shape is the kind of a tree.
type shape uint8

const (
	kNomial shape = iota
	kAry
)

// KNomial returns the k-nomial tree of the given radix over n ranks: a rank's
// parent is the rank with its lowest nonzero base-radix digit cleared. Its
// height is at most ceil(log_radix n); a rank has at most radix-1 children for
// each level. It panics unless n >= 0 and radix >= 2.
func KNomial(n, radix int) Tree {
	if n < 0 || radix < 2 {
		panic(fmt.Sprintf("tree: no k-nomial tree of %d ranks and radix %d", n, radix))
	}
	return Tree{n: n, k: radix, shape: kNomial}
}

// KAry returns the balanced tree over n ranks in which every rank has at most
// arity children: a rank divides those beneath it into arity intervals whose
// lengths differ by one at most, the longer ones first. No tree of that arity
// is lower. Arity 1 gives a chain. It panics unless n >= 0 and arity >= 1.
func KAry(n, arity int) Tree {
	if n < 0 || arity < 1 {
		panic(fmt.Sprintf("tree: no k-ary tree of %d ranks and arity %d", n, arity))
	}
	return Tree{n: n, k: arity, shape: kAry}
}

// Flat returns the tree over n ranks in which rank 0 is the parent of all
// others. It panics unless n >= 0.
func Flat(n int) Tree { return KAry(n, max(1, n-1)) }

// Size returns how many ranks the tree spans.
func (t Tree) Size() int { return t.n }

// Parent returns the parent of rank, and false for rank 0, which has none.
func (t Tree) Parent(rank int) (parent int, ok bool) {
	t.check(rank)
	if rank == 0 {
		return 0, false
	}
	if t.shape == kNomial {
		place, digit := t.lowest(rank)
		return rank - digit*place, true
	}
	at := t.root()
	for at.rank != rank {
		parent, at = at.rank, at.toward(rank, t.k)
	}
	return parent, true
}

// Children returns the children of rank in ascending order; nil where there
// are none.
func (t Tree) Children(rank int) []int { return t.AppendChildren(nil, rank) }

// AppendChildren appends the children of rank to dst in ascending order.
func (t Tree) AppendChildren(dst []int, rank int) []int {
	at := t.find(rank)
	if t.shape == kAry {
		for i := range min(t.k, at.size-1) {
			dst = append(dst, at.child(i, t.k).rank)
		}
		return dst
	}
	for step, left := 1, at.size-1; left > 0; step *= t.k { // left: ranks not yet beneath a child seen
		for range t.k - 1 {
			if left <= 0 {
				break
			}
			dst = append(dst, rank+at.size-left)
			left -= step
		}
	}
	return dst
}

// Lowest returns the lowest rank beneath rank, itself included: in trees
// numbered in preorder, rank.
func (t Tree) Lowest(rank int) int {
	t.check(rank)
	return rank
}

// Subtree returns the ranks beneath rank, itself included, as the interval
// from lo up to and without hi; lo is rank.
func (t Tree) Subtree(rank int) (lo, hi int) {
	at := t.find(rank)
	return at.rank, at.rank + at.size
}

// Depth returns how many edges are between rank and rank 0.
func (t Tree) Depth(rank int) int {
	t.check(rank)
	depth := 0
	if t.shape == kNomial {
		for r := rank; r > 0; r /= t.k {
			if r%t.k > 0 {
				depth++
			}
		}
		return depth
	}
	for at := t.root(); at.rank != rank; depth++ {
		at = at.toward(rank, t.k)
	}
	return depth
}

// Height returns the greatest depth of any rank; 0 for a tree of no rank.
func (t Tree) Height() int {
	height := 0
	if t.shape == kAry {
		for at := t.root(); at.size > 1; height++ {
			at = at.child(0, t.k)
		}
		return height
	}
	// Of the ranks whose digits from some place on are those of n-1 and that
	// are no greater, height is the greatest number of nonzero lower digits.
	for r, place := t.n-1, 0; r > 0; r, place = r/t.k, place+1 {
		switch r % t.k {
		case 0:
		case 1:
			height = max(height+1, place) // this digit, or all below a zero
		default:
			height = place + 1
		}
	}
	return height
}

// String returns the tree's shape and size, such as "binomial tree of 16".
func (t Tree) String() string {
	switch {
	case t.shape == kNomial && t.k == 2:
		return fmt.Sprintf("binomial tree of %d", t.n)
	case t.shape == kNomial:
		return fmt.Sprintf("%d-nomial tree of %d", t.k, t.n)
	case t.k >= t.n-1:
		return fmt.Sprintf("flat tree of %d", t.n)
	}
	return fmt.Sprintf("%d-ary tree of %d", t.k, t.n)
}

func (t Tree) check(rank int) {
	if rank < 0 || rank >= t.n {
		panic(fmt.Sprintf("tree: rank %d is not in the %v", rank, t))
	}
}

// lowest returns the value of the place of rank's lowest nonzero digit, and
// that digit. The rank must not be 0.
func (t Tree) lowest(rank int) (place, digit int) {
	place = 1
	for rank/place%t.k == 0 {
		place *= t.k
	}
	return place, rank / place % t.k
}

// find returns the subtree of rank.
func (t Tree) find(rank int) subtree {
	t.check(rank)
	if t.shape == kNomial {
		if rank == 0 {
			return t.root()
		}
		place, _ := t.lowest(rank)
		return subtree{rank, min(place, t.n-rank)}
	}
	at := t.root()
	for at.rank != rank {
		at = at.toward(rank, t.k)
	}
	return at
}

func (t Tree) root() subtree { return subtree{0, t.n} }

// subtree is the interval of size ranks that starts with the rank above them
// all.
type subtree struct{ rank, size int }

// child returns the i-th of the k subtrees of a k-ary one.
func (s subtree) child(i, k int) subtree {
	each, longer := (s.size-1)/k, (s.size-1)%k
	at := subtree{s.rank + 1 + i*each + min(i, longer), each}
	if i < longer {
		at.size++
	}
	return at
}

// toward returns that of the k subtrees of a k-ary one which holds rank.
func (s subtree) toward(rank, k int) subtree {
	each, longer := (s.size-1)/k, (s.size-1)%k
	offset := rank - s.rank - 1
	if long := longer * (each + 1); offset >= long {
		return s.child(longer+(offset-long)/each, k)
	}
	return s.child(offset/(each+1), k)
}
