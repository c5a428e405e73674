package member

import (
	"math/bits"
	"slices"
)

// table finds indices by a number of theirs that is as good as random, as keys
// and lives are. It is open addressing with linear probing, at most three quarters
// full. It grows by a quarter: one of powers of two would at times be half as
// full. What the number of an index is, the caller says at each call, and always
// the same as long as the index is in it.
type table struct {
	slots []Index // Nobody: free
	count int
}

// home returns where x is looked for first (Lemire, Fast Random Integer Generation
// in an Interval, 2019).
func (t *table) home(x uint64) int {
	at, _ := bits.Mul64(x, uint64(len(t.slots)))
	return int(at)
}

func (t *table) next(at int) int {
	if at++; at < len(t.slots) {
		return at
	}
	return 0
}

// find returns who has the number x.
func (t *table) find(x uint64, number func(Index) uint64) (Index, bool) {
	if t.count == 0 {
		return Nobody, false
	}
	for at := t.home(x); ; at = t.next(at) {
		switch i := t.slots[at]; {
		case i == Nobody:
			return Nobody, false
		case number(i) == x:
			return i, true
		}
	}
}

// add takes in i, which is not in the table.
func (t *table) add(i Index, number func(Index) uint64) {
	if t.count++; 4*t.count > 3*len(t.slots) {
		old := t.slots
		t.slots = slices.Repeat([]Index{Nobody}, max(16, len(old)+len(old)/4))
		for _, j := range old {
			if j != Nobody {
				t.put(j, number(j))
			}
		}
	}
	t.put(i, number(i))
}

func (t *table) put(i Index, x uint64) {
	at := t.home(x)
	for t.slots[at] != Nobody {
		at = t.next(at)
	}
	t.slots[at] = i
}

// remove takes out i, which is in the table, and moves up those that it was in
// the way of.
func (t *table) remove(i Index, number func(Index) uint64) {
	at := t.home(number(i))
	for t.slots[at] != i {
		at = t.next(at)
	}
	t.slots[at] = Nobody
	t.count--
	for at = t.next(at); t.slots[at] != Nobody; at = t.next(at) {
		moved := t.slots[at]
		t.slots[at] = Nobody
		t.put(moved, number(moved))
	}
}
