package runner

import (
	"testing"
	"time"
	"unsafe"

	"github.com/tributary-fabric/tributary/internal/core"
)

// jumped returns a moment as it would have been read had somebody set the
// system's clock forward in between: package time keeps beside the wall clock's
// seconds, in bits 30 to 62 of its first word, the monotonic clock's reading,
// in its second. Durations are by the latter alone.
func jumped(at time.Time, by time.Duration) time.Time {
	words := (*[2]uint64)(unsafe.Pointer(&at))
	words[0] += uint64(by/time.Second) << 30
	return at
}

func TestClockDoesNotJump(t *testing.T) {
	const year = 365 * 24 * time.Hour
	before := NewClock()
	after := Clock{jumped(before.origin, -year)}
	if jump := before.origin.Round(0).Sub(after.origin.Round(0)); jump != year {
		t.Fatalf("the wall clock has jumped by %v, want %v", jump, year)
	}
	if first, second, third := before.Now(), after.Now(), before.Now(); second < first || third < second {
		t.Errorf("with the clock set forward by a year it is %v, and not within %v and %v", second, first, third)
	}
	if left := time.Until(after.At(core.Time(time.Hour))); left <= 0 || left > time.Hour {
		t.Errorf("a deadline in an hour is %v away", left)
	}
}
