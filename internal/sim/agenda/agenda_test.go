package agenda

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// entry is an event that knows when it is due, and how many were pushed before.
type entry struct {
	at    core.Time
	order int
}

func byTimeAndOrder(a, b entry) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
}

// Whatever is pushed and popped in turns, what comes is what sorting puts first.
func TestAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Agenda[entry]
		var sorted []entry
		pop := func() {
			at, top := a.Next(), *a.Top()
			if got := a.Pop(); got != sorted[0] || top != got || at != got.at {
				t.Fatalf("popped %v, at %v from %v, want %v", got, at, top, sorted[0])
			}
			sorted = sorted[1:]
		}
		for order := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(sorted) > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				pop()
			} else {
				e := entry{core.Time(rapid.IntRange(0, 20).Draw(t, "at")), order}
				a.Push(e.at, e)
				sorted = append(sorted, e)
				slices.SortFunc(sorted, byTimeAndOrder)
			}
			var all []entry
			for e := range a.All() {
				all = append(all, *e)
			}
			if slices.SortFunc(all, byTimeAndOrder); a.Len() != len(sorted) || !slices.Equal(all, sorted) {
				t.Fatalf("%d of %v, want %v", a.Len(), all, sorted)
			}
		}
		for len(sorted) > 0 {
			pop()
		}
		if a.Len() != 0 || a.Next() != core.Never {
			t.Fatalf("%d left, the next at %v", a.Len(), a.Next())
		}
	})
}

// What was popped is not held any longer, and its place is taken again.
func TestPlacesAreTakenAgain(t *testing.T) {
	var a Agenda[*entry]
	for at := range core.Time(3) {
		a.Push(at, &entry{at: at})
	}
	for at := range core.Time(100) {
		if e := a.Pop(); e.at != at {
			t.Fatalf("popped %v, want what is due at %v", e.at, at)
		}
		if slices.IndexFunc(a.events, func(e *entry) bool { return e != nil && e.at == at }) >= 0 {
			t.Fatalf("what was due at %v is held", at)
		}
		a.Push(at+3, &entry{at: at + 3})
	}
	if len(a.events) != 3 {
		t.Errorf("%d places, want 3", len(a.events))
	}
}
