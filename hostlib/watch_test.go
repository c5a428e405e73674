package hostlib

import (
	"context"
	"sync/atomic"
	"testing"
)

// TestWatch: the end of every context that a call waits with is reported, also where
// calls with several contexts overlap; and none is reported twice.
func TestWatch(t *testing.T) {
	reported := make(chan struct{}, 10)
	w := watch{wake: func() { reported <- struct{}{} }}
	enter := func(ctx context.Context) (leave func()) {
		if stop := w.over(ctx); stop != nil {
			return func() { stop() }
		}
		return w.leave
	}
	first, endFirst := context.WithCancel(t.Context())
	second, endSecond := context.WithCancel(t.Context())
	third, endThird := context.WithCancel(t.Context())
	defer endThird()
	for range 3 {
		enter(first)()
	}
	leaveFirst := enter(first)
	leaveSecond := enter(second) // beside the first, which stays known
	endSecond()
	<-reported
	endFirst()
	<-reported
	leaveFirst()
	leaveSecond()
	enter(third)() // nobody relies on the first any more
	if w.done != third.Done() || w.users != 0 {
		t.Errorf("%d calls rely on a context, or it is not the last one", w.users)
	}
	w.end()
	if w.done != nil {
		t.Error("a context is known after the end")
	}
	if len(reported) != 0 {
		t.Errorf("%d contexts were notified of that had not ended", len(reported))
	}
}

// TestWatchAllocatesNothing: nor does it for a context that it knows.
func TestWatchAllocatesNothing(t *testing.T) {
	var wakes atomic.Int32
	w := watch{wake: func() { wakes.Add(1) }}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if n := testing.AllocsPerRun(100, func() {
		if w.over(ctx) == nil {
			w.leave()
		}
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
