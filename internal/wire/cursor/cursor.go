// Package cursor reads the fields of a message one after the other. What
// cannot be read makes the Cursor bad, and everything after it zero, so that a
// decoder asks once, at the end. Numbers are big-endian; varints are in their
// shortest form, so that what was read has one form only.
package cursor

import (
	"encoding/binary"
	"math"
)

// Cursor takes fields off the front of B.
type Cursor struct {
	B   []byte // what is left
	Bad bool   // something was not there, or not what it may be
}

// Take returns the next n bytes, which are B's.
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

// Uint16 reads two bytes.
func (c *Cursor) Uint16() uint16 {
	if b := c.Take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Uint32 reads four bytes.
func (c *Cursor) Uint32() uint32 {
	if b := c.Take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 reads eight bytes.
func (c *Cursor) Uint64() uint64 {
	if b := c.Take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Flags reads a byte of which only the bits of known may be set.
func (c *Cursor) Flags(known byte) byte {
	b := c.Byte()
	c.Bad = c.Bad || b&^known != 0
	return b
}

// Varint reads a varint.
func (c *Cursor) Varint() uint64 { return c.UpTo(math.MaxUint64) }

// UpTo reads a varint that is most at most.
func (c *Cursor) UpTo(most uint64) uint64 {
	v, n := binary.Uvarint(c.B)
	if c.Bad || n <= 0 || v > most || n > 1 && c.B[n-1] == 0 {
		c.Bad = true
		return 0
	}
	c.B = c.B[n:]
	return v
}

// Count reads, as a varint, how many things of at least size bytes follow:
// memory is taken for what is there, not for what is announced.
func (c *Cursor) Count(size int) int {
	n := c.Varint()
	if n > uint64(len(c.B)/size) {
		c.Bad = true
		return 0
	}
	return int(n)
}
