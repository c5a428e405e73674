//go:build !unix || solaris || aix

package store

import "os"

// lock leaves locking to bbolt.
func lock(*os.File) error { return nil }
