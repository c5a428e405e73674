package runner

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// TestTimeSlice: however often a loop steps, it gives way once in a
// time slice, and at once after a pause.
func TestTimeSlice(t *testing.T) {
	begin := core.Time(0).Add(7 * timeSlice)
	var s yielding
	if !s.isDue(begin) {
		t.Error("after a pause nobody else may run")
	}
	count := 0
	const steps, shares = 1000, 10
	for i := 1; i <= steps; i++ {
		if s.isDue(begin.Add(shares * timeSlice * time.Duration(i) / steps)) {
			count++
		}
	}
	if count != shares {
		t.Errorf("gave way %d times in %d shares", count, shares)
	}
}
