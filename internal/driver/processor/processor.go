package processor

import (
	"errors"
	"time"
)

// ErrUnsupported: this system does not report.
var ErrUnsupported = errors.New("processor: how busy processors are is reported on Linux only")

// ErrFormat: the system reports something else than it should.
var ErrFormat = errors.New("processor: the kernel's figures cannot be read")

// Time is what a processor of the machine has spent since the system began to
// count, on average over all of them.
type Time struct {
	Busy  time.Duration
	Total time.Duration // with what they were idle, or waited for a disk
}

// Since returns the share of the time after an earlier reading that was busy, from
// 0 to 1, and whether there was any.
func (t Time) Since(before Time) (share float64, ok bool) {
	busy, total := t.Busy-before.Busy, t.Total-before.Total
	if total <= 0 || busy < 0 {
		return 0, false
	}
	return min(float64(busy)/float64(total), 1), true
}

// Sum is what all processors of the machine together have spent since the system
// began to count, by what they did. On a large machine that may in time be more
// than a Duration can report, 292 years: it is the difference of two that counts,
// which is right also then.
type Sum struct {
	User   time.Duration // in programs
	System time.Duration // in the kernel, for programs
	Soft   time.Duration // in the kernel, for packets that arrive, above all
	Hard   time.Duration // in the kernel, for devices
	Idle   time.Duration // or waiting for a disk
	Stolen time.Duration // what the hypervisor gave to others
}
