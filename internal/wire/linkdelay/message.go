package linkdelay

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// EtherType is that of frames with a Message: the first of those that the IEEE leaves to
// local use. They are sent to the address of LLDP, which no bridge forwards.
const EtherType = 0x88b5

// Size is the bytes of a Message. Ethernet pads it.
const Size = len(magic) + 2 + 6 + 8 + 8

const (
	magic   = "TRIB"
	version = 1
)

// ErrMalformed is wrapped by the errors of Decode.
var ErrMalformed = errors.New("linkdelay: malformed message")

// Kind is that of a Message.
type Kind uint8

// The kinds of messages.
const (
	Request Kind = 1 + iota
	Response
)

// Message is a request or its response.
type Message struct {
	Kind   Kind
	Target [6]byte       // MAC address of the port that it is for: others on the segment drop it
	Nonce  uint64        // of the request
	Hold   time.Duration // of a response: from the request's arrival to the response's departure
}

func (m *Message) fields(c *cursor.Cursor) {
	cursor.Uint8(c, &m.Kind)
	c.Bytes(m.Target[:])
	cursor.Uint64(c, &m.Nonce)
	cursor.Uint64(c, &m.Hold)
}

// Append appends m as it is sent.
func (m *Message) Append(b []byte) []byte {
	c := cursor.Cursor{B: append(append(b, magic...), version), Writes: true}
	m.fields(&c)
	return c.B
}

// Decode reads a message. Whatever is behind it is padding.
func Decode(b []byte) (m Message, err error) {
	c := cursor.Cursor{B: b}
	head := string(c.Take(len(magic) + 1))
	m.fields(&c)
	switch {
	case c.Bad:
		return Message{}, fmt.Errorf("%w: %d bytes, want %d", ErrMalformed, len(b), Size)
	case head != magic+string(rune(version)):
		return Message{}, fmt.Errorf("%w: it begins with % x", ErrMalformed, head)
	case m.Kind != Request && m.Kind != Response, m.Kind == Request && m.Hold != 0, m.Hold < 0, m.Hold > math.MaxInt64/2:
		return Message{}, fmt.Errorf("%w: kind %d, held for %v", ErrMalformed, m.Kind, m.Hold)
	}
	return m, nil
}
