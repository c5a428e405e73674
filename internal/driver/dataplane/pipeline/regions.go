package pipeline

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/p4"
)

// region is so many slots from base on.
type region struct{ base, size int }

func (r region) meets(o region) bool { return r.base < o.base+o.size && o.base < r.base+r.size }

// place returns where size slots, a power of two, can be that none of others
// has. It may overlap own: epochs of a tree take slots over from each other. A
// place that does is taken first, and then one in the smallest gap, so that
// larger ones stay whole. Places are multiples of their size, which keeps
// regions that were freed from lying across those of another size. So there may
// be no place for a large window although as many slots are free; a window that
// shrinks always has one.
func place(size int, own, others []region) (region, error) {
	if r, ok := find(size, own, others); ok {
		return r, nil
	}
	why := dataplane.SlotsError{Need: size}
	for size /= 2; size > 0 && why.Free == 0; size /= 2 {
		if _, ok := find(size, own, others); ok {
			why.Free = size
		}
	}
	return region{}, fmt.Errorf("%w: %w", ErrFull, &why)
}

func find(size int, own, others []region) (best region, ok bool) {
	bestRank := 0
	for base := 0; base+size <= p4.Slots; base += size {
		r := region{base, size}
		if meetsAny(r, others) {
			continue
		}
		rank := 1 + gap(r, others)
		if meetsAny(r, own) {
			rank = 1
		}
		if bestRank == 0 || rank < bestRank {
			best, bestRank = r, rank
		}
	}
	return best, bestRank > 0
}

func meetsAny(r region, all []region) bool {
	for _, o := range all {
		if r.meets(o) {
			return true
		}
	}
	return false
}

// gap returns how many slots are free around r, its own included.
func gap(r region, others []region) int {
	low, high := 0, p4.Slots
	for _, o := range others {
		if end := o.base + o.size; end <= r.base {
			low = max(low, end)
		} else {
			high = min(high, o.base)
		}
	}
	return high - low
}
