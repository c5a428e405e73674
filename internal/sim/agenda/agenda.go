package agenda

import (
	"iter"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Agenda is a heap of events by time, those of equal time in the order in which
// they were pushed. The heap's own entries are small, since they are what moves;
// events stay where they are. Its zero value is empty. It is not safe for
// concurrent use.
type Agenda[E any] struct {
	keys   []key   // none before its parent, which is at (i-1)/fan
	events []E     // by key.slot
	free   []int32 // slots, whose events are zero
	pushed uint64
}

type key struct {
	at   core.Time
	seq  uint64
	slot int32
}

func (k key) before(l key) bool { return k.at < l.at || k.at == l.at && k.seq < l.seq }

// fan is the children of a node of the heap: with four the tree is half as
// high as with two, and all four lie in two lines of cache.
const fan = 4

// Len returns how many events there are.
func (a *Agenda[E]) Len() int { return len(a.keys) }

// Next returns when the next event is due, core.Never if there is none.
func (a *Agenda[E]) Next() core.Time {
	if len(a.keys) == 0 {
		return core.Never
	}
	return a.keys[0].at
}

// Top returns the next event, which must be there. What it points to is that event
// until the next Push or Pop.
func (a *Agenda[E]) Top() *E { return &a.events[a.keys[0].slot] }

// All returns all events, in any order. None may be pushed or popped meanwhile.
func (a *Agenda[E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		for _, k := range a.keys {
			if !yield(&a.events[k.slot]) {
				return
			}
		}
	}
}

// Push adds an event that is due at a time.
func (a *Agenda[E]) Push(at core.Time, e E) {
	var slot int32
	if n := len(a.free); n > 0 {
		slot, a.free = a.free[n-1], a.free[:n-1]
		a.events[slot] = e
	} else {
		slot = int32(len(a.events))
		a.events = append(a.events, e)
	}
	k := key{at, a.pushed, slot}
	a.pushed++
	i := len(a.keys)
	a.keys = append(a.keys, k)
	for i > 0 {
		parent := (i - 1) / fan
		if !k.before(a.keys[parent]) {
			break
		}
		a.keys[i] = a.keys[parent]
		i = parent
	}
	a.keys[i] = k
}

// Pop removes and returns the next event, which must be there.
func (a *Agenda[E]) Pop() E {
	slot := a.keys[0].slot
	e := a.events[slot]
	a.events[slot] = *new(E) // a named zero would be copied
	a.free = append(a.free, slot)

	n := len(a.keys) - 1
	k := a.keys[n]
	a.keys = a.keys[:n]
	if n == 0 {
		return e
	}
	i := 0
	for first := 1; first < n; first = i*fan + 1 {
		least := first
		for child := first + 1; child < min(first+fan, n); child++ {
			if a.keys[child].before(a.keys[least]) {
				least = child
			}
		}
		if !a.keys[least].before(k) {
			break
		}
		a.keys[i] = a.keys[least]
		i = least
	}
	a.keys[i] = k
	return e
}
