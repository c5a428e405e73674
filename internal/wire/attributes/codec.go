package attributes

import (
	"math"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Append appends d to b.
func (d *Digest) Append(b []byte) []byte { return appendMessage(b, digestKind, d) }

// Size returns the most bytes that d takes.
func (d *Digest) Size() int { return headSize + len(d.Maps)*MapSize }

// Append appends r to b.
func (r *Request) Append(b []byte) []byte {
	if r.Push {
		return appendMessage(b, pushKind, r)
	}
	return appendMessage(b, requestKind, r)
}

// Size returns the most bytes that r takes.
func (r *Request) Size() int { return headSize + len(r.Maps)*MapSize }

// Append appends r to b.
func (r *Reply) Append(b []byte) []byte { return appendMessage(b, replyKind, r) }

// Size returns the most bytes that r takes.
func (r *Reply) Size() int {
	n := headSize
	for i := range r.Sections {
		n += r.Sections[i].Size()
	}
	return n
}

func appendMessage(b []byte, kind byte, m Message) []byte {
	c := cursor.Cursor{B: append(b, kind), Writes: true}
	fields(&c, m)
	return c.B
}

// fields are those of a message behind its kind.
func fields(c *cursor.Cursor, m Message) {
	switch m := m.(type) {
	case *Digest:
		maps(c, &m.Maps, 1)
	case *Request:
		maps(c, &m.Maps, 0)
	case *Reply:
		for i := range cursor.List(c, &m.Sections, 9) {
			section(c, &m.Sections[i])
		}
	}
}

// maps are maps of at least the given version.
func maps(c *cursor.Cursor, maps *[]Map, least uint64) {
	for i := range cursor.List(c, maps, 9) {
		m := &(*maps)[i]
		cursor.Uint64(c, &m.Life)
		cursor.Varint(c, &m.Version, math.MaxUint64)
		c.Bad = c.Bad || m.Version < least
	}
}

func section(c *cursor.Cursor, s *Section) {
	cursor.Uint64(c, &s.Life)
	cursor.Varint(c, &s.Version, math.MaxUint64)
	if s.Version == 0 || len(cursor.List(c, &s.Entries, 4)) == 0 {
		return
	}
	cursor.Varint(c, &s.Base, math.MaxUint64)
	cursor.Varint(c, &s.Floor, math.MaxUint64)
	last, size := s.Base, 0
	for i := range s.Entries {
		entry(c, &s.Entries[i], last)
		last = s.Entries[i].Version
		size += s.Entries[i].Size()
	}
	c.Bad = c.Bad || last != s.Version || s.Floor > s.Version || size > MaxMap
}

func entry(c *cursor.Cursor, e *Entry, last uint64) {
	rise, key, value := e.Version-last, len(e.Key), len(e.Value)+1 // no value: a tombstone
	if e.Deleted {
		value = 0
	}
	cursor.Varint(c, &rise, math.MaxUint64)
	cursor.Varint(c, &key, MaxKey)
	cursor.Chars(c, &e.Key, key)
	cursor.Varint(c, &value, MaxValue+1)
	if c.Writes {
		if !e.Deleted {
			c.B = append(c.B, e.Value...)
		}
		return
	}
	e.Version = last + rise
	c.Bad = c.Bad || e.Version <= last || key == 0
	if e.Deleted = value == 0; !e.Deleted {
		e.Value = slices.Clone(c.Take(value - 1))
	}
}
