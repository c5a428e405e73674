package gauge

import "golang.org/x/sys/unix"

// Clock returns the nanoseconds of the clock that all processes of this machine
// share.
func Clock() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it has this clock
	return t.Nano()
}
