// Package cursor reads and writes the fields of a message one after the other. A
// message says its fields once, for both ways: by functions that write a field, or
// read it into the same place. What cannot be read makes the Cursor bad, and
// everything after it zero, so that a decoder asks once, at the end. Numbers are
// big-endian; varints are in their shortest form, so that what was read has one
// form only.
package cursor

import (
	"encoding/binary"
	"math"
)

// Cursor takes fields off the front of B, or appends them to it.
type Cursor struct {
	B      []byte // what is left, or was written
	Writes bool
	Bad    bool // something was not there, or not what it may be; means nothing to who writes
}

// Take reads the next n bytes, which are B's.
func (c *Cursor) Take(n int) []byte {
	if c.Bad || n < 0 || n > len(c.B) {
		c.Bad = true
		return nil
	}
	taken := c.B[:n:n]
	c.B = c.B[n:]
	return taken
}

// Byte reads one byte.
func (c *Cursor) Byte() byte {
	if b := c.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// UpTo reads a varint that is most at most.
func (c *Cursor) UpTo(most uint64) uint64 {
	if !c.Bad && len(c.B) > 0 && c.B[0] < 0x80 && uint64(c.B[0]) <= most { // as a rule
		v := uint64(c.B[0])
		c.B = c.B[1:]
		return v
	}
	v, n := binary.Uvarint(c.B)
	if c.Bad || n <= 0 || v > most || n > 1 && c.B[n-1] == 0 {
		c.Bad = true
		return 0
	}
	c.B = c.B[n:]
	return v
}

// integer is the type of a field.
type integer interface {
	~int | ~int8 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Uint8 is a field of one byte.
func Uint8[T integer](c *Cursor, v *T) {
	if c.Writes {
		c.B = append(c.B, byte(*v))
	} else {
		*v = T(c.Byte())
	}
}

// Uint16 is a field of two bytes.
func Uint16[T integer](c *Cursor, v *T) {
	if c.Writes {
		c.B = binary.BigEndian.AppendUint16(c.B, uint16(*v))
	} else if b := c.Take(2); b != nil {
		*v = T(binary.BigEndian.Uint16(b))
	} else {
		*v = 0
	}
}

// Uint32 is a field of four bytes.
func Uint32[T integer](c *Cursor, v *T) {
	if c.Writes {
		c.B = binary.BigEndian.AppendUint32(c.B, uint32(*v))
	} else if b := c.Take(4); b != nil {
		*v = T(binary.BigEndian.Uint32(b))
	} else {
		*v = 0
	}
}

// Uint64 is a field of eight bytes.
func Uint64[T integer](c *Cursor, v *T) {
	if c.Writes {
		c.B = binary.BigEndian.AppendUint64(c.B, uint64(*v))
	} else if b := c.Take(8); b != nil {
		*v = T(binary.BigEndian.Uint64(b))
	} else {
		*v = 0
	}
}

// Varint is a varint that is most at most.
func Varint[T integer](c *Cursor, v *T, most uint64) {
	if c.Writes {
		c.B = binary.AppendUvarint(c.B, uint64(*v))
	} else {
		*v = T(c.UpTo(most))
	}
}

// Bits is a byte of flags, the lowest first; the other bits are 0.
func (c *Cursor) Bits(flags ...*bool) {
	var b byte
	if !c.Writes {
		b = c.Byte()
		c.Bad = c.Bad || b>>len(flags) != 0
	}
	for i, flag := range flags {
		if !c.Writes {
			*flag = b>>i&1 != 0
		} else if *flag {
			b |= 1 << i
		}
	}
	if c.Writes {
		c.B = append(c.B, b)
	}
}

// Zeros are n bytes that are 0.
func (c *Cursor) Zeros(n int) {
	if c.Writes {
		c.B = append(c.B, make([]byte, n)...)
		return
	}
	for _, b := range c.Take(n) {
		c.Bad = c.Bad || b != 0
	}
}

// Bytes is a field of as many bytes as v has.
func (c *Cursor) Bytes(v []byte) {
	if c.Writes {
		c.B = append(c.B, v...)
	} else {
		copy(v, c.Take(len(v)))
	}
}

// Part is a field of n bytes, which are B's when it was read.
func (c *Cursor) Part(v *[]byte, n int) {
	if c.Writes {
		c.B = append(c.B, *v...)
	} else {
		*v = c.Take(n)
	}
}

// Chars is a text of n bytes. One that is what it was takes no memory.
func Chars[T ~string](c *Cursor, v *T, n int) {
	if c.Writes {
		c.B = append(c.B, *v...)
	} else if b := c.Take(n); string(b) != string(*v) {
		*v = T(b)
	}
}

// Text is a text behind a byte with its length.
func Text[T ~string](c *Cursor, v *T) {
	n := len(*v)
	Uint8(c, &n)
	Chars(c, v, n)
}

// List is, as a varint, how many things of at least size bytes follow: memory is
// taken for what is there, not for what is announced. It returns the list, whose
// elements are to be written or read next. When read they are zero, in the memory
// that the list had if there is enough.
func List[T any](c *Cursor, list *[]T, size int) []T {
	n := len(*list)
	Varint(c, &n, math.MaxInt64)
	if !c.Writes {
		if n > len(c.B)/size {
			c.Bad, n = true, 0
		}
		if cap(*list) < n {
			*list = make([]T, n)
			return *list
		}
		*list = (*list)[:n]
		clear(*list)
	}
	return *list
}
