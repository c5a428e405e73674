//go:build unix && !solaris && !aix

package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lock takes the file for this process, without waiting, the way that bbolt
// does; bbolt then takes it again.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &Error{Path: f.Name(), Is: ErrHeld, Detail: holder(f)}
	}
	if err != nil {
		return fmt.Errorf("store: locking %s: %w", f.Name(), err)
	}
	return nil
}

// holder reports which process has the lock, where the system says so (Linux).
func holder(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	table, err := os.ReadFile("/proc/locks")
	if !ok || err != nil {
		return nil
	}
	inode := fmt.Sprintf(":%d", stat.Ino)
	for line := range strings.Lines(string(table)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:01:262147 0 EOF
		if part := strings.Fields(line); len(part) > 5 && part[1] == "FLOCK" && strings.HasSuffix(part[5], inode) {
			return fmt.Errorf("process %s", part[4])
		}
	}
	return nil
}
