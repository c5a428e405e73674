package runner

import (
	"runtime"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// timeSlice is how long whoever steps keeps the processor from other goroutines.
// From one that has had it for 10 ms the Go runtime takes it away, at once when
// it next sleeps in a system call, and then looks after the process every 20 us,
// for milliseconds. Where several processes share a machine's processors that
// is a good part of them; whoever yields earlier is left alone.
const timeSlice = 8 * time.Millisecond

// yielding gives way to other goroutines now and then.
type yielding struct{ last core.Time }

// offer lets others run if they could not for a time slice.
func (s *yielding) offer(now core.Time) {
	if s.isDue(now) {
		runtime.Gosched()
	}
}

func (s *yielding) isDue(now core.Time) bool {
	if now.Sub(s.last) < timeSlice {
		return false
	}
	s.last = now
	return true
}
