package agree

import (
	"slices"

	"github.com/tributary-fabric/tributary/ranktree"
)

// tree is the binomial tree over the ranks that are not in a list, which is ascending. Its root
// is the lowest of them.
type tree struct {
	without []uint32
	of      ranktree.Tree
}

func newTree(size int, without []uint32) tree {
	return tree{without, ranktree.KNomial(size-len(without), 2)}
}

// place returns a rank's place among those of the tree.
func (t tree) place(rank uint32) int {
	below, _ := slices.BinarySearch(t.without, rank)
	return int(rank) - below
}

// rank returns the rank at a place: as many more than that as ranks below it are missing.
func (t tree) rank(place int) uint32 {
	low, high := 0, len(t.without)
	for low < high {
		mid := (low + high) / 2
		if int(t.without[mid])-mid <= place {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return uint32(place + low)
}

func (t tree) root() uint32 { return t.rank(0) }

// parent returns the parent of a rank that is not the root.
func (t tree) parent(rank uint32) uint32 {
	p, _ := t.of.Parent(t.place(rank))
	return t.rank(p)
}

func (t tree) children(rank uint32) []uint32 {
	var all []uint32
	for _, place := range t.of.Children(t.place(rank)) {
		all = append(all, t.rank(place))
	}
	return all
}
