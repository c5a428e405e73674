package runner

import (
	"runtime"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// share is how long whoever steps keeps the processor from other goroutines.
// From one that has had it for 10 ms the Go runtime takes it away, at once when
// it next sleeps in a system call, and then looks after the process every 20 us,
// for milliseconds. Where several processes share a machine's processors that
// is a good part of them; whoever gives way earlier is left alone.
const share = 8 * time.Millisecond

// sharing gives way to other goroutines now and then.
type sharing struct{ last core.Time }

// offer lets others run if they could not for a share of the time.
func (s *sharing) offer(now core.Time) {
	if s.isDue(now) {
		runtime.Gosched()
	}
}

func (s *sharing) isDue(now core.Time) bool {
	if now.Sub(s.last) < share {
		return false
	}
	s.last = now
	return true
}
