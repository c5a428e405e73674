package agree

import (
	"errors"
	"math"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Kind is what a message is.
type Kind uint8

// The kinds of messages.
const (
	Collect  Kind = iota + 1 // down: give flags, and what is locked
	Lock                     // down: store the value
	Commit                   // down: decide it
	Ack                      // up: the subtree has
	Nak                      // up: there are dead members in the subtree
	Late                     // up: who in the subtree is waited for; down: who is
	Expelled                 // the receiver is held dead
	Ping                     // nothing: to find out whether the receiver lives
	Gone                     // the sender is to count as dead
)

var kindNames = [...]string{"?", "collect", "lock", "commit", "ack", "nak", "late", "expelled", "ping", "gone"}

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// ErrMalformed: a message that no member of the group sends.
var ErrMalformed = errors.New("agree: malformed message")

// Value is what is agreed on.
type Value struct {
	Flags  uint64
	Failed []uint32 // ranks, ascending
}

// locked is a value that a member has stored.
type locked struct {
	is        bool
	isDecided bool
	value     Value
}

// message is one between two members. Fields that its kind does not have are zero.
type message struct {
	kind   Kind
	number uint32 // of the agreement
	before Value  // what the agreement before has decided
	stamp         // of the wave
	failed []uint32
	flags  uint64 // of Ack
	lock   locked // of Lock and Commit: the value; of Ack: what is locked in the subtree
	isDown bool   // of Late
}

// MaxMessage returns the most bytes of a message of a group of that size.
func MaxMessage(size int) int { return 64 + 3*setMost(size) }

func setMost(size int) int { return 5 + size }

// fields writes or reads m, in a group of that size.
func (m *message) fields(c *cursor.Cursor, size int) {
	cursor.Uint8(c, &m.kind)
	if m.kind >= Expelled {
		return
	}
	cursor.Uint32(c, &m.number)
	if m.number > 1 {
		m.before.fields(c, size)
	}
	cursor.Varint(c, &m.ballot, uint64(size-1))
	cursor.Varint(c, &m.wave, math.MaxUint32)
	ranks(c, &m.failed, size)
	switch m.kind {
	case Lock, Commit:
		m.lock.value.fields(c, size)
	case Ack:
		cursor.Uint64(c, &m.flags)
		c.Bits(&m.lock.is, &m.lock.isDecided)
		if m.lock.is {
			m.lock.value.fields(c, size)
		}
	case Late:
		c.Bits(&m.isDown)
	default:
	}
}

func (v *Value) fields(c *cursor.Cursor, size int) {
	cursor.Uint64(c, &v.Flags)
	ranks(c, &v.Failed, size)
}

// ranks is a list of ranks, ascending: each as what it is beyond the least that it may be.
func ranks(c *cursor.Cursor, list *[]uint32, size int) {
	all := cursor.List(c, list, 1)
	least := uint32(0)
	for i := range all {
		if int(least) >= size {
			c.Bad = true
			return
		}
		gap := all[i] - least
		cursor.Varint(c, &gap, uint64(size)-1-uint64(least))
		if !c.Writes { // what is written may be read elsewhere at the same time
			all[i] = least + gap
		}
		least = all[i] + 1
	}
}

// bytes returns m as it is sent in a group of that size.
func (m *message) bytes(size int) []byte {
	c := cursor.Cursor{Writes: true}
	m.fields(&c, size)
	return c.B
}

// read reads a message of a group of that size.
func read(b []byte, size int) (m message, err error) {
	c := cursor.Cursor{B: b}
	m.fields(&c, size)
	if c.Bad || len(c.B) > 0 || m.kind < Collect || m.kind > Gone || m.lock.isDecided && !m.lock.is {
		return message{}, ErrMalformed
	}
	if m.number == 0 && m.kind < Expelled {
		return message{}, ErrMalformed
	}
	return m, nil
}

// PingMessage returns a message that brings about nothing.
func PingMessage() []byte { return []byte{byte(Ping)} }
