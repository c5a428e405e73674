//go:build unix

package secretfile

import (
	"io/fs"
	"os"
	"syscall"
)

// exposed returns the permissions that a file with a secret must not have. A pipe or a
// device has none to take away.
func exposed(info fs.FileInfo) fs.FileMode {
	if !info.Mode().IsRegular() {
		return 0
	}
	never := fs.FileMode(0o007)
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == os.Geteuid() {
		never = 0o077
	}
	return info.Mode().Perm() & never
}
