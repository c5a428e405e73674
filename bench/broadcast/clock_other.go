//go:build !linux

package broadcast

import "time"

// now returns the nanoseconds of the clock that all processes of this machine
// share.
func now() uint64 { return uint64(time.Now().UnixNano()) }
