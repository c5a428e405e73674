package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// What can be wrong with a store. Errors wrap one of them and name the file.
var (
	ErrHeld     = errors.New("store: another process has it open")
	ErrNotStore = errors.New("store: not an offload manager's store")
	ErrCorrupt  = errors.New("store: the file is damaged")
	ErrNewer    = errors.New("store: the file is of a later version")
	ErrOlder    = errors.New("store: the file is of an earlier version that cannot be read any more")
	ErrWrite    = errors.New("store: the file cannot be written")
	ErrClosed   = errors.New("store: closed")
)

// wayOut is what to do about each of them.
var wayOut = map[error]string{
	ErrHeld:     "one manager at a time may use it: end the other one, or give this one a store of its own",
	ErrNotStore: "is the path right? A file that is not there yet is made",
	ErrCorrupt: "bring a copy back only if no manager has run since it was made; else move the file away, and a new one is begun: " +
		"groups are made again by their members",
	ErrNewer: "run the manager that wrote it, or a later one; or move the file away, and groups are made again by their members",
	ErrOlder: "run the manager that wrote it until its groups have ended, then move the file away; or move it away now, " +
		"and groups are made again by their members",
	ErrWrite: "make room for it, and check its permissions; what runs is not disturbed meanwhile",
}

// Error is what is wrong with the store in a file.
type Error struct {
	Path   string
	Is     error // one of this package's sentinel errors
	Detail error // may be nil
}

// Error reports the file, what is wrong with it, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", e.Is, e.Path)
	if e.Detail != nil {
		fmt.Fprintf(&b, " (%v)", e.Detail)
	}
	if way := e.WayOut(); way != "" {
		fmt.Fprintf(&b, "; %s", way)
	}
	return b.String()
}

// WayOut says what to do about it.
func (e *Error) WayOut() string {
	if errors.Is(e.Detail, syscall.ENOSPC) || errors.Is(e.Detail, syscall.EDQUOT) {
		return "the disk is full: make room; what runs is not disturbed meanwhile"
	}
	return wayOut[e.Is]
}

// Unwrap returns e.Is and e.Detail.
func (e *Error) Unwrap() []error {
	if e.Detail == nil {
		return []error{e.Is}
	}
	return []error{e.Is, e.Detail}
}
