package printable_test

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

func TestCount(t *testing.T) {
	for n, want := range []string{"0 switches", "1 switch", "2 switches"} {
		if got := printable.Count(n, "switch", "switches"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"Zürich 東京 'x' \"y\"":    "Zürich 東京 'x' \"y\"",
		"a\x1b[31mb":             `a\x1b[31mb`,
		"two\nlines\tand\r":      `two\nlines\tand\r`,
		"\x7f\u009b\u200b\u202e": `\x7f\u009b\u200b\u202e`,
		"a\xffb\xc3":             `a\xffb\xc3`,
		"\ufffd":                 "\ufffd",
	} {
		if got := printable.Text(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
}
