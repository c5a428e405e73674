//go:build unix

package planbench

import (
	"syscall"
	"time"
)

// spent returns the processor time of this process: unlike the time on a clock it
// does not grow while others have the processors.
func spent() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
