// Package core holds what protocol cores share: clock, timers and tables.
//
// A core is a deterministic state machine of one shape,
//
//	Step(now core.Time, batch []Input, out *Output)
//	Deadline() core.Time
//
// with inputs in batches, concrete types, and buffers owned by the caller.
// There is no goroutine, lock, socket, clock, logger or global random source
// inside. Deadline is the next moment at which the core wants to be stepped
// even without input.
package core

import (
	"math"
	"time"
)

// Time is a moment on a driver's monotonic clock, or on a simulation's virtual
// one, in nanoseconds from an origin of the clock's own.
type Time int64

// Never is later than every moment: the deadline of a core that waits for
// input alone.
const Never Time = math.MaxInt64

// Add returns t + d; Never stays Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never || d > 0 && t > Never-Time(d) {
		return Never
	}
	return t + Time(d)
}

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Earlier returns the earlier of t and u.
func (t Time) Earlier(u Time) Time { return min(t, u) }
