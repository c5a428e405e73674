package runner

import (
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// rest is where a loop's own goroutine waits while nothing can come from the
// source. It does not hold the step lock meanwhile.
type rest struct {
	woken chan struct{} // has room for one
	until atomic.Int64  // the moment, a core.Time, at which it ends by itself; working: it does not rest
	timer *time.Timer
}

const working = int64(-1)

func (r *rest) init() {
	r.woken = make(chan struct{}, 1)
	r.until.Store(working)
}

func (r *rest) begin(until core.Time) { r.until.Store(int64(until)) }
func (r *rest) end()                  { r.until.Store(working) }

// wait waits for wake, for stop or, if it is limited, for so long.
func (r *rest) wait(limit time.Duration, isLimited bool, stop <-chan struct{}) {
	var due <-chan time.Time
	if isLimited {
		if r.timer == nil {
			r.timer = time.NewTimer(limit)
		} else {
			r.timer.Reset(limit)
		}
		defer r.timer.Stop()
		due = r.timer.C
	}
	select {
	case <-r.woken:
	case <-due:
	case <-stop:
	}
}

// wake ends the present wait, or the next.
func (r *rest) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// isLate reports whether a rest ends too late for a deadline.
func (r *rest) isLate(deadline core.Time) bool {
	until := r.until.Load()
	return until != working && int64(deadline) < until
}
