package cursor_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// TestFields: fields come in their order, and what is left is reported.
func TestFields(t *testing.T) {
	b := []byte{1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 5}
	b = binary.AppendUvarint(b, 300)
	b = append(b, 2, 'a', 'b', 'c')
	c := cursor.Cursor{B: b}
	if a, b, d, e, f := c.Byte(), c.Uint16(), c.Uint32(), c.Uint64(), c.Flags(7); a != 1 || b != 2 || d != 3 || e != 4 || f != 5 {
		t.Errorf("read %d %d %d %d %d", a, b, d, e, f)
	}
	if v := c.Varint(); v != 300 {
		t.Errorf("read the varint %d", v)
	}
	if n := c.Count(1); n != 2 || string(c.Take(n)) != "ab" || string(c.B) != "c" || c.Bad {
		t.Errorf("a count of %d, left %q, bad %v", n, c.B, c.Bad)
	}
}

// TestBad: what is not there, or not what it may be, is zero, and so is all
// after it.
func TestBad(t *testing.T) {
	for name, read := range map[string]func(c *cursor.Cursor) uint64{
		"take":          func(c *cursor.Cursor) uint64 { return uint64(len(c.Take(4))) },
		"take negative": func(c *cursor.Cursor) uint64 { return uint64(len(c.Take(-1))) },
		"uint32":        func(c *cursor.Cursor) uint64 { return uint64(c.Uint32()) },
		"uint64":        func(c *cursor.Cursor) uint64 { return c.Uint64() },
		"long varint":   func(c *cursor.Cursor) uint64 { return c.Varint() },
		"up to":         func(c *cursor.Cursor) uint64 { c.Take(2); return c.UpTo(0) },
		"count":         func(c *cursor.Cursor) uint64 { c.Take(2); return uint64(c.Count(1)) },
	} {
		c := cursor.Cursor{B: []byte{0x80, 0, 1}} // 0 in two bytes, and 1
		if got := read(&c); got != 0 || !c.Bad {
			t.Errorf("%s: read %d, bad %v", name, got, c.Bad)
		}
		if a, b, d, e := c.Byte(), c.Uint16(), c.Count(1), c.UpTo(math.MaxUint64); a != 0 || b != 0 || d != 0 || e != 0 {
			t.Errorf("%s: after it %d %d %d %d were read", name, a, b, d, e)
		}
	}
	c := cursor.Cursor{B: []byte{6}}
	if c.Flags(5); !c.Bad {
		t.Error("an unknown flag was read")
	}
}
