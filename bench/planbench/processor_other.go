//go:build !unix

package planbench

import "time"

var started = time.Now()

// spent returns the time since the start, where processor time is not known.
func spent() time.Duration { return time.Since(started) }
