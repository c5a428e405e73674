package attributes

import (
	"encoding/binary"
	"slices"
)

// Append appends d to b.
func (d *Digest) Append(b []byte) []byte { return appendMaps(append(b, digestKind), d.Maps) }

// Size returns the most bytes that d takes.
func (d *Digest) Size() int { return headSize + len(d.Maps)*MapSize }

// Append appends r to b.
func (r *Request) Append(b []byte) []byte {
	if r.Push {
		return appendMaps(append(b, pushKind), r.Maps)
	}
	return appendMaps(append(b, requestKind), r.Maps)
}

// Size returns the most bytes that r takes.
func (r *Request) Size() int { return headSize + len(r.Maps)*MapSize }

func appendMaps(b []byte, maps []Map) []byte {
	b = binary.AppendUvarint(b, uint64(len(maps)))
	for i := range maps {
		b = binary.BigEndian.AppendUint64(b, uint64(maps[i].Life))
		b = binary.AppendUvarint(b, maps[i].Version)
	}
	return b
}

// maps reads maps of at least the given version.
func (c *reader) maps(least uint64) []Map {
	maps := make([]Map, c.Count(9))
	for i := range maps {
		maps[i] = Map{Life: c.life(), Version: c.Varint()}
		c.Bad = c.Bad || maps[i].Version < least
	}
	return maps
}

// Append appends r to b.
func (r *Reply) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, replyKind), uint64(len(r.Sections)))
	for i := range r.Sections {
		b = r.Sections[i].append(b)
	}
	return b
}

// Size returns the most bytes that r takes.
func (r *Reply) Size() int {
	n := headSize
	for i := range r.Sections {
		n += r.Sections[i].Size()
	}
	return n
}

func (s *Section) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.Life))
	b = binary.AppendUvarint(b, s.Version)
	if s.Version == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(s.Entries)))
	if len(s.Entries) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, s.Base)
	b = binary.AppendUvarint(b, s.Floor)
	last := s.Base
	for i := range s.Entries {
		e := &s.Entries[i]
		b = binary.AppendUvarint(b, e.Version-last)
		last = e.Version
		b = binary.AppendUvarint(b, uint64(len(e.Key)))
		b = append(b, e.Key...)
		if e.Deleted {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(e.Value))+1)
		b = append(b, e.Value...)
	}
	return b
}

func (c *reader) reply() *Reply {
	r := &Reply{Sections: make([]Section, c.Count(9))}
	for i := range r.Sections {
		c.section(&r.Sections[i])
	}
	return r
}

func (c *reader) section(s *Section) {
	s.Life, s.Version = c.life(), c.Varint()
	if s.Version == 0 {
		return
	}
	n := c.Count(4)
	if n == 0 {
		return
	}
	s.Base, s.Floor = c.Varint(), c.Varint()
	s.Entries = make([]Entry, n)
	last, size := s.Base, 0
	for i := range s.Entries {
		c.entry(&s.Entries[i], last)
		last = s.Entries[i].Version
		size += s.Entries[i].Size()
	}
	c.Bad = c.Bad || last != s.Version || s.Floor > s.Version || size > MaxMap
}

func (c *reader) entry(e *Entry, last uint64) {
	rise := c.Varint()
	e.Version = last + rise
	c.Bad = c.Bad || e.Version <= last
	n := c.Varint()
	c.Bad = c.Bad || n == 0 || n > MaxKey
	e.Key = string(c.Take(int(n)))
	switch n := c.Varint(); {
	case n == 0:
		e.Deleted = true
	case n > MaxValue+1:
		c.Bad = true
	default:
		e.Value = slices.Clone(c.Take(int(n - 1)))
	}
}
