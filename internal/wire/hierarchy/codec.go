package hierarchy

import (
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// The first byte of a message.
const (
	helloKind byte = iota + 1
	assignKind
	changeKind
	beatKind
	fetchKind
)

// headSize is the most bytes of a message before what is of variable number.
const headSize = 1 + 5 + 1 + 2*5

// leastID is the least bytes of an ID in a message.
const leastID = 1 + len("a@[::]:1")

// Append appends h to b.
func (h *Hello) Append(b []byte) []byte { return appendMessage(b, helloKind, h) }

// Size returns the most bytes that h takes.
func (h *Hello) Size() int { return headSize + 2 + len(h.From) + 10 }

// Append appends a to b.
func (a *Assign) Append(b []byte) []byte { return appendMessage(b, assignKind, a) }

// Size returns the most bytes that a takes.
func (a *Assign) Size() int {
	n := headSize
	for _, ids := range [][]gossip.ID{a.Supervisors, a.Contacts} {
		for _, id := range ids {
			n += 2 + len(id)
		}
	}
	return n
}

// Append appends c to b.
func (c *Change) Append(b []byte) []byte { return appendMessage(b, changeKind, c) }

// Size returns the most bytes that c takes.
func (c *Change) Size() int {
	n := headSize
	for i := range c.Leaves {
		n += c.Leaves[i].Size()
	}
	for i := range c.Alives {
		n += c.Alives[i].Size()
	}
	return n
}

// Append appends the beat to b.
func (m *Beat) Append(b []byte) []byte { return appendMessage(b, beatKind, m) }

// Size returns the bytes that a beat takes.
func (*Beat) Size() int { return 1 }

// Append appends f to b.
func (f *Fetch) Append(b []byte) []byte { return appendMessage(b, fetchKind, f) }

// Size returns the most bytes that f takes.
func (*Fetch) Size() int { return headSize }

func appendMessage(b []byte, kind byte, m Message) []byte {
	c := cursor.Cursor{B: append(b, kind), Writes: true}
	fields(&c, m)
	return c.B
}

// Decode reads all of b, and shares no memory with it.
func Decode(b []byte) (Message, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrMessage)
	}
	var m Message
	switch b[0] {
	case helloKind:
		m = &Hello{}
	case assignKind:
		m = &Assign{}
	case changeKind:
		m = &Change{}
	case beatKind:
		m = &Beat{}
	case fetchKind:
		m = &Fetch{}
	default:
		return nil, fmt.Errorf("%w: of kind %d", ErrMessage, b[0])
	}
	in := cursor.Cursor{B: b[1:]}
	fields(&in, m)
	if in.Bad || len(in.B) > 0 {
		return nil, fmt.Errorf("%w: %T is cut off, too long, or says what none can say", ErrMessage, m)
	}
	return m, nil
}

// fields are those of a message behind its kind.
func fields(c *cursor.Cursor, m Message) {
	switch m := m.(type) {
	case *Hello:
		cursor.Varint(c, &m.Zone, math.MaxUint32)
		id(c, &m.From)
		cursor.Varint(c, &m.Incarnation, math.MaxUint64)
	case *Assign:
		cursor.Varint(c, &m.Zone, math.MaxUint32)
		for _, ids := range []*[]gossip.ID{&m.Supervisors, &m.Contacts} {
			for i := range cursor.List(c, ids, leastID) {
				id(c, &(*ids)[i])
			}
			c.Bad = c.Bad || len(*ids) > MaxNodes || len(m.Supervisors) == 0
		}
	case *Change:
		cursor.Varint(c, &m.Zone, math.MaxUint32)
		change(c, m)
	case *Fetch:
		cursor.Varint(c, &m.Zone, math.MaxUint32)
		c.Bits(&m.Follow)
	}
}

func change(c *cursor.Cursor, m *Change) {
	c.Bits(&m.Base, &m.Last, &m.None)
	c.Bad = c.Bad || m.Last && !m.Base || m.None && m.Base
	if m.None {
		return
	}
	if !m.Base {
		for i := range cursor.List(c, &m.Leaves, leastID+4) {
			l := &m.Leaves[i]
			id(c, &l.ID)
			version(c, &l.Version)
			cursor.Uint8(c, &l.Cause)
			exit(c, &l.Exit)
		}
	}
	for i := range cursor.List(c, &m.Alives, leastID+2) {
		id(c, &m.Alives[i].ID)
		version(c, &m.Alives[i].Version)
	}
}

func id(c *cursor.Cursor, v *gossip.ID) {
	cursor.Text(c, v)
	c.Bad = c.Bad || !c.Writes && v.Validate() != nil
}

func version(c *cursor.Cursor, v *gossip.Version) {
	cursor.Varint(c, &v.Incarnation, math.MaxUint64)
	cursor.Varint(c, &v.Minor, math.MaxUint32)
}

func exit(c *cursor.Cursor, e *gossip.Exit) {
	if c.Bits(&e.Given); e.Given {
		cursor.Uint8(c, &e.Code)
	}
}
