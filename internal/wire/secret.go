package wire

import (
	"fmt"
	"io"
)

// Secret is a key, or what keys are derived from. Neither fmt, with any verb that go vet accepts, nor encoding/json nor log/slog
// shows its bytes.
//
// fmt calls no method of what is in an unexported field. A struct that keeps a Secret or a Cookie in one, and
// can be printed, keeps it behind a pointer, of which fmt shows the address. (With a verb that is for no
// pointer, as %s, it follows one: go vet rejects that.)
type Secret [32]byte

// Format implements fmt.Formatter.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden(s == Secret{})) }

// MarshalText hides the secret from encoders; there is no way back.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden(s == Secret{})), nil }

// CookieMask keeps the bits of a Cookie.
const CookieMask = 1<<48 - 1

// Cookie is the secret of a child and its parent in the headers of their packets, 48 bits. It is shown as
// little as a Secret is.
type Cookie uint64

// Format implements fmt.Formatter.
func (c Cookie) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden(c == 0)) }

// MarshalText hides the cookie from encoders; there is no way back.
func (c Cookie) MarshalText() ([]byte, error) { return []byte(hidden(c == 0)), nil }

func hidden(isZero bool) string {
	if isZero {
		return "none"
	}
	return "secret"
}
