package manager

import (
	"container/heap"

	"github.com/tributary-fabric/tributary/internal/core"
)

// timer is when a group or a switch wants attention. One of the two is set,
// except in Core.quiet.
type timer struct {
	at    core.Time
	place int // in timers, from 1; 0: not in it
	group *group
	on    *device
}

// timers is a heap of the timers that run.
type timers []*timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push is for package heap.
func (h *timers) Push(x any) {
	t := x.(*timer)
	*h = append(*h, t)
	t.place = len(*h)
}

// Pop is for package heap.
func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.place = 0
	return t
}

// set makes t ring at that moment, and stops it if that is core.Never.
func (h *timers) set(t *timer, at core.Time) {
	switch {
	case at == core.Never && t.place > 0:
		heap.Remove(h, t.place-1)
	case at == core.Never:
	case t.place == 0:
		t.at = at
		heap.Push(h, t)
	case t.at != at:
		t.at = at
		heap.Fix(h, t.place-1)
	}
}

// next returns when the first timer rings.
func (h timers) next() core.Time {
	if len(h) == 0 {
		return core.Never
	}
	return h[0].at
}

// due takes out a timer that rings by now; nil: none does.
func (h *timers) due(now core.Time) *timer {
	if h.next() > now || len(*h) == 0 {
		return nil
	}
	return heap.Pop(h).(*timer)
}
