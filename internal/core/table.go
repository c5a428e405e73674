package core

import (
	"math/bits"
	"slices"
)

// Table finds elements by a number of theirs that is as good as random, as keys
// and lives are. It is open addressing with linear probing, at most three quarters
// full: a map of Go's takes twice the memory. It grows by a quarter: one of powers
// of two would at times be half as full. What the number of an element is, the
// caller says at each call, and always the same as long as the element is in it.
type Table[T comparable] struct {
	Free  T // which is no element: what free slots have
	slots []T
	count int
}

// home returns where x is looked for first (Lemire, Fast Random Integer Generation
// in an Interval, 2019).
func (t *Table[T]) home(x uint64) int {
	at, _ := bits.Mul64(x, uint64(len(t.slots)))
	return int(at)
}

func (t *Table[T]) next(at int) int {
	if at++; at < len(t.slots) {
		return at
	}
	return 0
}

// Find returns what has the number x; Free if nothing does.
func (t *Table[T]) Find(x uint64, number func(T) uint64) (T, bool) {
	if t.count == 0 {
		return t.Free, false
	}
	for at := t.home(x); ; at = t.next(at) {
		switch e := t.slots[at]; {
		case e == t.Free:
			return e, false
		case number(e) == x:
			return e, true
		}
	}
}

// Add takes in e, which is not in the table.
func (t *Table[T]) Add(e T, number func(T) uint64) {
	if t.count++; 4*t.count > 3*len(t.slots) {
		old := t.slots
		t.slots = slices.Repeat([]T{t.Free}, max(16, len(old)+len(old)/4))
		for _, f := range old {
			if f != t.Free {
				t.put(f, number(f))
			}
		}
	}
	t.put(e, number(e))
}

func (t *Table[T]) put(e T, x uint64) {
	at := t.home(x)
	for t.slots[at] != t.Free {
		at = t.next(at)
	}
	t.slots[at] = e
}

// Remove takes out e, which is in the table, and moves up those that it was in
// the way of.
func (t *Table[T]) Remove(e T, number func(T) uint64) {
	at := t.home(number(e))
	for t.slots[at] != e {
		at = t.next(at)
	}
	t.slots[at] = t.Free
	t.count--
	for at = t.next(at); t.slots[at] != t.Free; at = t.next(at) {
		moved := t.slots[at]
		t.slots[at] = t.Free
		t.put(moved, number(moved))
	}
}
