package membership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// nextIncarnation returns a number above those of all earlier starts: the
// clock's nanoseconds, or one more than what the file has, which then has the
// new one, on disk, before it is used. Without a file it is the clock's. Again says
// that the file has an earlier start.
func nextIncarnation(file string, now time.Time) (next uint64, again bool, err error) {
	next = uint64(max(1, now.UnixNano()))
	if file == "" {
		return next, false, nil
	}
	last, err := readIncarnation(file)
	if err != nil {
		return 0, false, err
	}
	next = max(next, last+1)
	if err := writeIncarnation(file, next); err != nil {
		return 0, false, fmt.Errorf("%w: %w", ErrState, err)
	}
	return next, last > 0, nil
}

// readIncarnation returns what the file has; 0 if there is none yet.
func readIncarnation(file string) (uint64, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrState, err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n == 1<<64-1 {
		return 0, fmt.Errorf("%w: %s has no incarnation in it, a number of nanoseconds; remove it if the clock is right", ErrState, file)
	}
	return n, nil
}

// writeIncarnation replaces the file in one go.
func writeIncarnation(file string, n uint64) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = fmt.Fprintln(f, n)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(file))
}

func syncDirectory(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
