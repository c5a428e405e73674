package hierarchy

import (
	"encoding/binary"
	"fmt"

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

// The flags of a change, and of a fetch.
const (
	baseFlag byte = 1 << iota
	lastFlag
	noneFlag

	followFlag byte = 1
)

// headSize is the most bytes of a message before what is of variable number.
const headSize = 1 + 5 + 1 + 2*5

// Append appends h to b.
func (h *Hello) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, helloKind), uint64(h.Zone))
	return binary.AppendUvarint(appendID(b, h.From), h.Incarnation)
}

// Size returns the most bytes that h takes.
func (h *Hello) Size() int { return headSize + 2 + len(h.From) + 10 }

// Append appends a to b.
func (a *Assign) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, assignKind), uint64(a.Zone))
	for _, ids := range [][]gossip.ID{a.Supervisors, a.Contacts} {
		b = binary.AppendUvarint(b, uint64(len(ids)))
		for _, id := range ids {
			b = appendID(b, id)
		}
	}
	return b
}

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
func (c *Change) Append(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{c.Base, c.Last, c.None} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(binary.AppendUvarint(append(b, changeKind), uint64(c.Zone)), flags)
	if c.None {
		return b
	}
	if !c.Base {
		b = binary.AppendUvarint(b, uint64(len(c.Leaves)))
		for i := range c.Leaves {
			l := &c.Leaves[i]
			b = append(appendVersion(appendID(b, l.ID), l.Version), l.Cause)
			if l.Exit.Given {
				b = append(b, 1, l.Exit.Code)
			} else {
				b = append(b, 0)
			}
		}
	}
	b = binary.AppendUvarint(b, uint64(len(c.Alives)))
	for i := range c.Alives {
		b = appendVersion(appendID(b, c.Alives[i].ID), c.Alives[i].Version)
	}
	return b
}

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
func (*Beat) Append(b []byte) []byte { return append(b, beatKind) }

// Size returns the bytes that a beat takes.
func (*Beat) Size() int { return 1 }

// Append appends f to b.
func (f *Fetch) Append(b []byte) []byte {
	flags := byte(0)
	if f.Follow {
		flags = followFlag
	}
	return append(binary.AppendUvarint(append(b, fetchKind), uint64(f.Zone)), flags)
}

// Size returns the most bytes that f takes.
func (*Fetch) Size() int { return headSize }

func appendID(b []byte, id gossip.ID) []byte { return append(append(b, byte(len(id))), id...) }

func appendVersion(b []byte, v gossip.Version) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, v.Incarnation), uint64(v.Minor))
}

// Decode reads all of b, and shares no memory with it.
func Decode(b []byte) (Message, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrMessage)
	}
	in := reader{cursor.Cursor{B: b[1:]}}
	var m Message
	switch b[0] {
	case helloKind:
		m = &Hello{Zone: in.zone(), From: in.id(), Incarnation: in.Varint()}
	case assignKind:
		m = &Assign{Zone: in.zone(), Supervisors: in.ids(1), Contacts: in.ids(0)}
	case changeKind:
		m = in.change()
	case beatKind:
		m = &Beat{}
	case fetchKind:
		m = &Fetch{Zone: in.zone(), Follow: in.Flags(followFlag) == followFlag}
	default:
		return nil, fmt.Errorf("%w: of kind %d", ErrMessage, b[0])
	}
	if in.Bad || len(in.B) > 0 {
		return nil, fmt.Errorf("%w: %T is cut off, too long, or says what none can say", ErrMessage, m)
	}
	return m, nil
}

func (c *reader) change() *Change {
	m := &Change{Zone: c.zone()}
	flags := c.Flags(baseFlag | lastFlag | noneFlag)
	m.Base, m.Last, m.None = flags&baseFlag != 0, flags&lastFlag != 0, flags&noneFlag != 0
	if m.None {
		c.Bad = c.Bad || m.Base || m.Last
		return m
	}
	if !m.Base {
		c.Bad = c.Bad || m.Last
		m.Leaves = make([]Leave, c.Count(leastID+4))
		for i := range m.Leaves {
			m.Leaves[i] = Leave{ID: c.id(), Version: c.version(), Cause: c.Byte(), Exit: c.exit()}
		}
	}
	m.Alives = make([]Member, c.Count(leastID+2))
	for i := range m.Alives {
		m.Alives[i] = Member{ID: c.id(), Version: c.version()}
	}
	return m
}
