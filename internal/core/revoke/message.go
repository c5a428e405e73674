package revoke

import (
	"errors"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Identity is which communicator is revoked.
type Identity struct {
	Group [32]byte // digest of name, members and settings
	Life  uint64   // by which the members distinguish it from others of that digest; not 0
}

// Notice is the only message. It is the same for all neighbours.
type Notice struct {
	Of     Identity
	By     uint32 // the rank that has revoked it; one of those, where several have
	Reason uint32 // of that one: what it means is between the members
}

// NoticeSize is the bytes of a notice.
const NoticeSize = 32 + 8 + 4 + 4

// ErrMalformed: bytes that are no notice.
var ErrMalformed = errors.New("revoke: malformed notice")

func (n *Notice) fields(c *cursor.Cursor) {
	c.Bytes(n.Of.Group[:])
	cursor.Uint64(c, &n.Of.Life)
	cursor.Uint32(c, &n.By)
	cursor.Uint32(c, &n.Reason)
}

// Append appends the notice to b.
func (n *Notice) Append(b []byte) []byte {
	c := cursor.Cursor{B: b, Writes: true}
	n.fields(&c)
	return c.B
}

// Read reads a notice.
func Read(b []byte) (n Notice, err error) {
	c := cursor.Cursor{B: b}
	n.fields(&c)
	if c.Bad || len(c.B) > 0 || n.Of.Life == 0 {
		return Notice{}, ErrMalformed
	}
	return n, nil
}
