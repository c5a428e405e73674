package cursor_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// TestFields: fields come in their order, and are read as they were written.
func TestFields(t *testing.T) {
	type fields struct {
		one            uint8
		two            uint16
		four, varint   uint32
		eight          int64
		yes, no, again bool
		text           string
		bytes          [2]byte
		list           []uint8
		part           []byte
	}
	all := func(c *cursor.Cursor, f *fields) {
		cursor.Uint8(c, &f.one)
		cursor.Uint16(c, &f.two)
		cursor.Uint32(c, &f.four)
		cursor.Uint64(c, &f.eight)
		c.Bits(&f.yes, &f.no, &f.again)
		cursor.Varint(c, &f.varint, 300)
		c.Zeros(2)
		cursor.Text(c, &f.text)
		c.Bytes(f.bytes[:])
		for i := range cursor.List(c, &f.list, 1) {
			cursor.Uint8(c, &f.list[i])
		}
		c.Part(&f.part, 1)
	}
	written := fields{1, 2, 3, 300, -4, true, false, true, "text", [2]byte{8, 9}, []uint8{5, 6}, []byte("c")}
	out := cursor.Cursor{Writes: true}
	all(&out, &written)
	want := []byte{1, 0, 2, 0, 0, 0, 3, 255, 255, 255, 255, 255, 255, 255, 252, 5, 0xac, 2, 0, 0, 4, 't', 'e', 'x', 't', 8, 9, 2, 5, 6, 'c'}
	if !bytes.Equal(out.B, want) {
		t.Errorf("written %x, want %x", out.B, want)
	}
	c, read := cursor.Cursor{B: append(want, 'd')}, fields{list: []uint8{9, 9, 9}}
	if all(&c, &read); !reflect.DeepEqual(read, written) || string(c.B) != "d" || c.Bad {
		t.Errorf("read %+v, left %q, bad %v", read, c.B, c.Bad)
	}
}

// TestBad: what is not there, or not what it may be, is zero, and so is all
// after it.
func TestBad(t *testing.T) {
	number := func(read func(c *cursor.Cursor, v *uint64)) func(c *cursor.Cursor) uint64 {
		return func(c *cursor.Cursor) uint64 {
			v := uint64(7)
			read(c, &v)
			return v
		}
	}
	list := func(c *cursor.Cursor) uint64 {
		c.Take(2)
		all := []byte{1, 2}
		return uint64(len(cursor.List(c, &all, 1)))
	}
	for name, read := range map[string]func(c *cursor.Cursor) uint64{
		"take":          func(c *cursor.Cursor) uint64 { return uint64(len(c.Take(4))) },
		"take negative": func(c *cursor.Cursor) uint64 { return uint64(len(c.Take(-1))) },
		"uint32":        number(cursor.Uint32[uint64]),
		"uint64":        number(cursor.Uint64[uint64]),
		"long varint":   func(c *cursor.Cursor) uint64 { return c.UpTo(math.MaxUint64) },
		"up to":         func(c *cursor.Cursor) uint64 { c.Take(2); return c.UpTo(0) },
		"list":          list,
		"zeros":         func(c *cursor.Cursor) uint64 { c.Zeros(1); return 0 },
	} {
		c := cursor.Cursor{B: []byte{0x80, 0, 1}} // 0 in two bytes, and 1
		if got := read(&c); got != 0 || !c.Bad {
			t.Errorf("%s: read %d, bad %v", name, got, c.Bad)
		}
		two := number(cursor.Uint16[uint64])(&c)
		if a, b, d := c.Byte(), list(&c), c.UpTo(math.MaxUint64); two != 0 || a != 0 || b != 0 || d != 0 {
			t.Errorf("%s: after it %d %d %d %d were read", name, two, a, b, d)
		}
	}
	var one, two, three bool
	c := cursor.Cursor{B: []byte{8}}
	if c.Bits(&one, &two, &three); !c.Bad {
		t.Error("an unknown flag was read")
	}
}
