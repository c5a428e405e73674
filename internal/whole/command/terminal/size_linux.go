package terminal

import "golang.org/x/sys/unix"

// size returns a terminal's columns, and whether out is one.
func size(out any) (columns int, is bool) {
	f, ok := out.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(w.Col), true
}
