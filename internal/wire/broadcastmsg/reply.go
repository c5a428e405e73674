package broadcastmsg

import (
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Bounds of a reply.
const (
	MinPart    = 1 << 20 // least bytes of the body of a reply's message that is not its last
	MaxPart    = 1 << 26 // most bytes of any
	MaxMissing = 32      // most subtrees that a reply names
	MaxReason  = 200     // bytes
)

// replySize is the bytes of a reply's header without its variable parts.
const replySize = 48

// Missing is a subtree that was not reached, or a node that failed: who they
// are, and why.
type Missing struct {
	Node   Node   // the subtree's root
	Nodes  uint32 // how many nodes are not known to have run the request
	Status Status // not OK
	Reason string // of one that was denied or not proven: in the words of who found it
}

// Reply is one message of what comes up a tree.
type Reply struct {
	Key
	Final   bool      // no further part follows
	Part    uint32    // from 0
	Offset  uint64    // of Body in the whole reply
	Status  Status    // reportable; OK unless Final
	Ran     uint32    // nodes of the sender's subtree that ran the request; 0 unless Final
	Missing []Missing // at most MaxMissing of the others; none unless Final
	Reason  string    // of a status that is not OK, in the words of who found it
	Body    []byte
}

// HeadSize returns the bytes that r takes without its body.
func (r *Reply) HeadSize() int {
	n := replySize + len(r.Root) + len(r.Reason)
	for i := range r.Missing {
		n += 7 + len(r.Missing[i].Node) + len(r.Missing[i].Reason)
	}
	return n
}

// Append appends r to b. It must be valid; see Valid.
func (r *Reply) Append(b []byte) []byte {
	final := byte(0)
	if r.Final {
		final = 1
	}
	b = append(b, Version<<4|replyType, final, byte(r.Status), byte(len(r.Missing)))
	b = binary.BigEndian.AppendUint32(b, r.Ran)
	b = binary.BigEndian.AppendUint64(b, r.Incarnation)
	b = binary.BigEndian.AppendUint64(b, r.Sequence)
	b = binary.BigEndian.AppendUint64(b, r.Offset)
	b = binary.BigEndian.AppendUint32(b, r.Part)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Body)))
	b = append(b, byte(len(r.Root)), byte(len(r.Reason)), 0, 0, 0, 0, 0, 0)
	b = append(b, r.Root...)
	for i := range r.Missing {
		m := &r.Missing[i]
		b = binary.BigEndian.AppendUint32(b, m.Nodes)
		b = append(b, byte(m.Status), byte(len(m.Node)))
		b = append(b, m.Node...)
		b = append(b, byte(len(m.Reason)))
		b = append(b, m.Reason...)
	}
	b = append(b, r.Reason...)
	return append(b, r.Body...)
}

// Decode reads all of b, in place of what r was. The body is a part of b; nothing
// else shares memory with it. Where the root is the same, so is its name; missing
// subtrees never take the place of those that r had.
func (r *Reply) Decode(b []byte) error {
	if len(b) < replySize || b[0] != Version<<4|replyType || b[1] > 1 {
		return fmt.Errorf("%w: %d bytes are no reply", ErrMessage, len(b))
	}
	u32, u64 := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	*r = Reply{
		Final: b[1] == 1, Status: Status(b[2]), Ran: u32(b[4:]), Key: Key{r.Root, u64(b[8:]), u64(b[16:])},
		Offset: u64(b[24:]), Part: u32(b[32:]),
	}
	in := cursor.Cursor{B: b[replySize-6:]}
	in.Zeros(6)
	cursor.Chars(&in, &r.Root, int(b[40]))
	for range min(b[3], MaxMissing+1) {
		var m Missing
		cursor.Uint32(&in, &m.Nodes)
		cursor.Uint8(&in, &m.Status)
		cursor.Text(&in, &m.Node)
		cursor.Text(&in, &m.Reason)
		r.Missing = append(r.Missing, m)
	}
	cursor.Chars(&in, &r.Reason, int(b[41]))
	if in.Bad || uint64(len(in.B)) != uint64(u32(b[36:])) {
		return fmt.Errorf("%w: a reply is cut off, or longer than it says", ErrMessage)
	}
	r.Body = in.B
	return r.Valid()
}

// Valid reports why r cannot be a reply, whoever sent it.
func (r *Reply) Valid() error {
	var wrong string
	switch {
	case len(r.Root) == 0 || len(r.Root) > MaxNode:
		wrong = "no root"
	case !r.Status.Reportable() || r.Status == OK && r.Reason != "" || len(r.Reason) > MaxReason:
		wrong = "a status that none has"
	case len(r.Body) > MaxPart || r.Offset > 1<<48:
		wrong = "too large a body"
	case (r.Part == 0) != (r.Offset == 0) || r.Offset < uint64(r.Part)*MinPart:
		wrong = "a part of no such place"
	case !r.Final && (len(r.Body) < MinPart || r.Status != OK || r.Ran != 0 || len(r.Missing) > 0):
		wrong = "a part that is too small, or says what only the last may"
	case len(r.Missing) > MaxMissing:
		wrong = "too many subtrees"
	}
	for i := range r.Missing {
		m := &r.Missing[i]
		if m.Nodes == 0 || m.Status == OK || !m.Status.Valid() || len(m.Node) == 0 || len(m.Node) > MaxNode || len(m.Reason) > MaxReason || m.Reason != "" && !m.Status.Explained() {
			wrong = "a missing subtree that is none"
		}
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("%w: a reply with %s", ErrMessage, wrong)
}

// IsReply reports whether b, if it is a message at all, is a reply.
func IsReply(b []byte) bool { return len(b) > 0 && b[0]&15 == replyType }
