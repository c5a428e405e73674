package runner

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Clock translates between wall-clock moments and core.Time by the system's
// monotonic clock, so that setting the time moves no deadline. Cores that
// exchange moments must share one Clock.
type Clock struct{ origin time.Time }

// NewClock returns a clock that begins now, at core.Time 0.
func NewClock() Clock { return Clock{time.Now()} }

// Now returns the present moment.
func (c Clock) Now() core.Time { return core.Time(time.Since(c.origin)) }

// At returns t as package time knows it; the zero time for core.Never.
func (c Clock) At(t core.Time) time.Time {
	if t == core.Never {
		return time.Time{}
	}
	return c.origin.Add(time.Duration(t))
}
