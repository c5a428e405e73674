//go:build !linux

package gauge

import "time"

// Clock returns the nanoseconds of the clock that all processes of this machine
// share.
func Clock() int64 { return time.Now().UnixNano() }
