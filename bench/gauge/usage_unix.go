//go:build unix

package gauge

import (
	"syscall"
	"time"
)

// Usage returns the processor time of this process so far.
func Usage() (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0 // its arguments are valid
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
