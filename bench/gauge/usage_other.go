//go:build !unix

package gauge

import "time"

// Usage returns nothing: there is no common way to know.
func Usage() (user, system time.Duration) { return 0, 0 }
