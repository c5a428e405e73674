package core

// Timer is the one moment at which something of a core is to be looked at again.
// The zero Timer does not run.
type Timer[T any] struct {
	Of    T
	At    Time  // while it runs
	place int32 // in Timers, from 1; 0: it does not run
}

// Running reports whether t is in Timers.
func (t *Timer[T]) Running() bool { return t.place > 0 }

// Timers is a heap of the timers that run, by their moments. So their number is that
// of what is under way, however long the times are.
type Timers[T any] []*Timer[T]

// Set lets t run until a moment, whenever it was to ring before; Never stops it.
func (h *Timers[T]) Set(t *Timer[T], at Time) {
	if at == Never {
		h.stop(t)
		return
	}
	t.At = at
	if t.place == 0 {
		*h = append(*h, t)
		t.place = int32(len(*h))
	}
	h.settle(int(t.place) - 1)
}

func (h *Timers[T]) stop(t *Timer[T]) {
	if t.place == 0 {
		return
	}
	i, last := int(t.place)-1, len(*h)-1
	h.put(i, (*h)[last])
	(*h)[last] = nil
	*h = (*h)[:last]
	t.place = 0
	if i < last {
		h.settle(i)
	}
}

// settle moves the timer at i to its place.
func (h Timers[T]) settle(i int) {
	t := h[i]
	for i > 0 && t.At < h[(i-1)/2].At {
		h.put(i, h[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].At < h[child].At {
			child++
		}
		if child >= len(h) || t.At <= h[child].At {
			break
		}
		h.put(i, h[child])
		i = child
	}
	h.put(i, t)
}

func (h Timers[T]) put(i int, t *Timer[T]) { h[i], t.place = t, int32(i+1) }

// Next returns when the first timer rings, Never if none runs.
func (h Timers[T]) Next() Time {
	if len(h) == 0 {
		return Never
	}
	return h[0].At
}

// Due takes out a timer that rings by now; nil: none does.
func (h *Timers[T]) Due(now Time) *Timer[T] {
	if len(*h) == 0 || h.Next() > now {
		return nil
	}
	t := (*h)[0]
	h.stop(t)
	return t
}
