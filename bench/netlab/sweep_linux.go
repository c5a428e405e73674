package netlab

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	spacesDir = "/run/netns" // where iproute2 and package netns keep names
	lockDir   = "/run"
)

// claim makes this process the only one with a lab of that prefix, until the
// file is closed or the process dies.
func claim(prefix string) (*os.File, error) {
	path := filepath.Join(lockDir, "tributary-netlab-"+prefix+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("netlab: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %s: %w", ErrInUse, prefix, path, err), f.Close())
	}
	return f, nil
}

// sweep removes all namespaces of a prefix, and kills the processes in them.
func sweep(prefix string, log *slog.Logger) error {
	entries, err := os.ReadDir(spacesDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	var names []string
	spaces := map[space]bool{}
	for _, e := range entries {
		if !owned(prefix, e.Name()) {
			continue
		}
		names = append(names, e.Name())
		if s, ok := spaceOf(filepath.Join(spacesDir, e.Name())); ok {
			spaces[s] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	if killed := killIn(spaces); killed > 0 {
		log.Info("processes killed that were left in a lab", slog.String("prefix", prefix), slog.Int("processes", killed))
	}
	var errs []error
	for _, name := range names {
		err := netns.DeleteNamed(name)
		if errors.Is(err, unix.EINVAL) { // a name that nothing was mounted at
			err = os.Remove(filepath.Join(spacesDir, name))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("netlab: removing namespace %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// owned reports whether a namespace is one of the prefix's labs: PREFIX- and
// the name of a node. Another prefix may begin with this one.
func owned(prefix, name string) bool {
	node, ok := strings.CutPrefix(name, prefix+"-")
	if !ok {
		return false
	}
	for _, kind := range []string{"h", "leaf-", "spine-", "rail-"} {
		if number, ok := strings.CutPrefix(node, kind); ok {
			if _, err := strconv.ParseUint(number, 10, 16); err == nil {
				return true
			}
		}
	}
	return node == station
}

// space identifies a namespace.
type space struct{ device, inode uint64 }

func spaceOf(path string) (space, bool) {
	var s syscall.Stat_t
	if syscall.Stat(path, &s) != nil {
		return space{}, false
	}
	return space{s.Dev, s.Ino}, true
}

// killIn kills the processes in some namespaces, and returns how many. This
// process is none of them: only threads of it may be there.
func killIn(spaces map[space]bool) (killed int) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0 // the pattern is valid
	}
	for _, path := range processes {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if s, ok := spaceOf(filepath.Join(path, "ns", "net")); ok && spaces[s] && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
