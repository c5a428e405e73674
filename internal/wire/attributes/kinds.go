package attributes

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// The first byte of a message.
const (
	digestKind byte = iota + 1
	requestKind
	pushKind
	replyKind
)

// A Message is a *Digest, a *Request or a *Reply. What was sent must not be
// changed any more.
type Message interface {
	// Append appends the message to b.
	Append(b []byte) []byte
	// Size returns how many bytes Append appends, at most.
	Size() int
}

// Decode reads all of b, and shares no memory with it.
func Decode(b []byte) (Message, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrMessage)
	}
	var m Message
	switch kind := b[0]; kind {
	case digestKind:
		m = &Digest{}
	case requestKind, pushKind:
		m = &Request{Push: kind == pushKind}
	case replyKind:
		m = &Reply{}
	default:
		return nil, fmt.Errorf("%w: of kind %d", ErrMessage, kind)
	}
	in := cursor.Cursor{B: b[1:]}
	fields(&in, m)
	if in.Bad || len(in.B) > 0 {
		return nil, fmt.Errorf("%w: %T is cut off, too long, or says what none can say", ErrMessage, m)
	}
	return m, nil
}
