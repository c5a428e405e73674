package rail

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// MaxText is the most bytes of the name of a rail or a network.
const MaxText = 63

// ErrRails is wrapped by all errors about lists of rails.
var ErrRails = errors.New("malformed list of rails")

// Check reports what is wrong with a host's list of rails.
func Check(rails []Rail) error {
	if len(rails) == 0 || len(rails) > MaxRails {
		return fmt.Errorf("%w: %d rails, want 1 to %d", ErrRails, len(rails), MaxRails)
	}
	for i := range rails {
		r := &rails[i]
		if err := r.check(); err != nil {
			return fmt.Errorf("%w: rail %d: %w", ErrRails, i+1, err)
		}
		for j := range rails[:i] {
			switch o := &rails[j]; {
			case o.Name == r.Name:
				return fmt.Errorf("%w: two rails have the name %s", ErrRails, r.Name)
			case o.Kind == r.Kind && o.Address == r.Address:
				return fmt.Errorf("%w: %s and %s are both at %v %v", ErrRails, o.Name, r.Name, r.Kind, r.Address)
			}
		}
	}
	return nil
}

func (r *Rail) check() error {
	a := r.Address.Addr()
	switch {
	case r.Name == "":
		return errors.New("it has no name")
	case !isText(r.Name):
		return fmt.Errorf("its name %q is not printable UTF-8 of at most %d bytes", r.Name, MaxText)
	case !isText(r.Network):
		return fmt.Errorf("%s: the network's name %q is not printable UTF-8 of at most %d bytes", r.Name, r.Network, MaxText)
	case r.Kind >= railKinds:
		return fmt.Errorf("%s: kind %d", r.Name, r.Kind)
	case !a.IsValid() || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || r.Address.Port() == 0:
		return fmt.Errorf("%s: %v is no address of one host", r.Name, r.Address)
	case int(r.Bits) > a.BitLen():
		return fmt.Errorf("%s: a prefix of %d bits of %v", r.Name, r.Bits, a)
	}
	return nil
}

func isText(s string) bool {
	return len(s) <= MaxText && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Append appends a list of rails as hosts exchange it: their number, and of each the
// kind, family (4 or 6), address, port, length of the prefix, bandwidth as a varint, and
// the names of rail and network behind their lengths.
func Append(b []byte, rails []Rail) []byte {
	c := cursor.Cursor{B: b, Writes: true}
	n := len(rails)
	cursor.Uint8(&c, &n)
	for _, r := range rails {
		r.fields(&c)
	}
	return c.B
}

// Read reads a whole list of rails; the errors wrap ErrRails.
func Read(b []byte) ([]Rail, error) {
	c := cursor.Cursor{B: b}
	n := int(c.Byte())
	if c.Bad || n == 0 || n > MaxRails {
		return nil, fmt.Errorf("%w: %d rails, want 1 to %d", ErrRails, n, MaxRails)
	}
	rails := make([]Rail, n)
	for i := range rails {
		rails[i].fields(&c)
	}
	if c.Bad || len(c.B) > 0 {
		return nil, fmt.Errorf("%w: it is cut short, or has bytes to spare", ErrRails)
	}
	return rails, Check(rails)
}

func (r *Rail) fields(c *cursor.Cursor) {
	cursor.Uint8(c, &r.Kind)
	r.address(c)
	cursor.Uint8(c, &r.Bits)
	cursor.Varint(c, &r.Bandwidth, math.MaxUint64)
	cursor.Text(c, &r.Name)
	cursor.Text(c, &r.Network)
}

func (r *Rail) address(c *cursor.Cursor) {
	family, port := uint8(6), r.Address.Port()
	a := r.Address.Addr()
	if a.Is4() {
		family = 4
	}
	cursor.Uint8(c, &family)
	var all [16]byte
	bytes := all[:]
	if family == 4 {
		bytes = all[:4]
	}
	copy(bytes, a.AsSlice())
	c.Bytes(bytes)
	cursor.Uint16(c, &port)
	if c.Writes {
		return
	}
	c.Bad = c.Bad || family != 4 && family != 6
	a, _ = netip.AddrFromSlice(bytes)
	r.Address = netip.AddrPortFrom(a, port)
}
