package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s on one line, with every character that cannot be printed, and
// every byte that is not UTF-8, spelled as in a Go string, such as \x1b.
func Text(s string) string {
	if strings.IndexFunc(s, spelled) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unicode.IsPrint(r):
			b.WriteString(strings.Trim(fmt.Sprintf("%q", r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// spelled reports whether a character may have to be spelled: utf8.RuneError is
// also what a byte that is not UTF-8 reads as.
func spelled(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
