package terminal_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
)

// open returns both ends of a terminal of so many columns.
func open(t *testing.T, columns uint16) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if screen, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return keyboard, screen
}

// On a narrow terminal columns stand closer; only there is colour, and only if it
// is wanted.
func TestTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for _, c := range []struct {
		columns uint16
		none    string // NO_COLOR
		want    string
	}{
		{80, "", "NAME   STATE   SINCE|h0     \x1b[31mdown\x1b[0m    noon|"},
		{18, "", "NAME  STATE  SINCE|h0    \x1b[31mdown\x1b[0m   noon|"},
		{10, "1", "NAME STATE SINCE|h0   down  noon|"},
	} {
		t.Setenv("NO_COLOR", c.none)
		keyboard, screen := open(t, c.columns)
		table := terminal.NewTable(screen, 3)
		fmt.Fprintf(table, "NAME\tSTATE\tSINCE\nh0\t%s\tnoon\n", terminal.Alert("down"))
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		seen, b := "", make([]byte, 1000)
		for strings.Count(seen, "\n") < 2 {
			n, err := keyboard.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			seen += string(b[:n])
		}
		if got := strings.ReplaceAll(seen, "\r\n", "|"); got != c.want {
			t.Errorf("%d columns: %q, want %q", c.columns, got, c.want)
		}
	}
}
