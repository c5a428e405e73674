package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Protection is how packets between a child and its parent are protected.
type Protection uint8

// The protections.
const (
	// Plain packets are accepted by address and cookie.
	Plain Protection = iota
	// Authenticated packets have a MAC over header and payload, and a counter.
	Authenticated
	// Encrypted packets are authenticated, and their payload is encrypted.
	Encrypted

	protections
)

var protectionNames = [...]string{"plain", "authenticated", "encrypted"}

// String returns the protection's name.
func (p Protection) String() string {
	if int(p) < len(protectionNames) {
		return protectionNames[p]
	}
	return fmt.Sprintf("protection(%d)", uint8(p))
}

// ParseProtection returns the protection of a name.
func ParseProtection(name string) (Protection, error) {
	i := slices.Index(protectionNames[:], name)
	if i < 0 {
		return Plain, fmt.Errorf("there is no protection %q; there are %s", name, strings.Join(protectionNames[:], ", "))
	}
	return Protection(i), nil
}

// Valid reports whether there is such a protection.
func (p Protection) Valid() bool { return p < protections }

// Sizes of what follows the payload of a packet that is not Plain.
const (
	TagSize     = 16 // AES-GCM's
	CounterSize = 8  // big-endian; the nonce, after 4 bytes of 0
)

// Overhead returns the bytes that follow the payload.
func (p Protection) Overhead() int {
	if p == Plain {
		return 0
	}
	return TagSize + CounterSize
}
