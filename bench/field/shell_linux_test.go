package field

import (
	"errors"
	"strings"
	"testing"
)

func TestSplitShell(t *testing.T) {
	for line, want := range map[string][2]string{
		"10.0.0.1 orted -mca x y":                {"10.0.0.1", "orted -mca x y"},
		"-x -l me 10.0.0.1 a;b":                  {"10.0.0.1", "a;b"},
		"-n h0 PATH=/usr/bin:$PATH prog '-l' me": {"h0", "PATH=/usr/bin:$PATH prog '-l' me"},
	} {
		host, command, err := splitShell(strings.Fields(line))
		if err != nil || host != want[0] || command != want[1] {
			t.Errorf("%q: %q, %q, %v", line, host, command, err)
		}
	}
	for _, line := range []string{"", "h0", "-l", "-l me h0", "-x"} {
		if _, _, err := splitShell(strings.Fields(line)); !errors.Is(err, ErrShell) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if err := Shell(map[string]string{"10.0.0.1": "x"}, []string{"10.0.0.2", "true"}); !errors.Is(err, ErrShell) || !strings.Contains(err.Error(), "10.0.0.2") {
		t.Errorf("%v", err)
	}
	if err := Shell(map[string]string{"h0": "cb-none-such"}, []string{"h0", "true"}); !errors.Is(err, ErrShell) || !strings.Contains(err.Error(), "cb-none-such") {
		t.Errorf("%v", err)
	}
}
