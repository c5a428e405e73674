package broadcastmsg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Version is the version of the format that this package speaks.
const Version = 1

// MaxRequest is the most bytes of a request, header included.
const MaxRequest = 4096

// Bounds of the times in a request.
const (
	MaxPatience = 100 * 24 * time.Hour
	MaxLevel    = time.Hour
)

// requestSize is the bytes of a request's header without its variable parts.
const requestSize = 112

// ErrMessage is wrapped by all errors of decoding.
var ErrMessage = errors.New("collect: not a message")

// The types of messages.
const (
	requestType  = 1
	replyType    = 2
	questionType = 3
	answerType   = 4
)

// Flags of a request.
type Flags uint8

// The flags.
const (
	Last      Flags = 1 << iota // no request follows over this group: free it
	OutOfBand                   // the group's members are known without it
	Creates                     // the parameters of creation are aboard
	HasBulk                     // bulk data is to be pulled from the sender
	Own                         // of the library's own: it makes or frees a group, the service is not called
	Proven                      // a proof is aboard that the root has sent it

	allFlags = Last | OutOfBand | Creates | HasBulk | Own | Proven
)

// Subset reports which members of the group a request is for, its root aside, who
// is always in the tree.
type Subset uint8

// The restrictions of a subset.
const (
	Alive    Subset = 1 << iota // to who lives now, as a digest reports
	Filtered                    // by a filter

	Everybody  Subset = 0
	allSubsets        = Alive | Filtered
)

// Tree is a kind of spanning tree and its radix, 0 where the kind has none.
type Tree struct {
	Kind  Kind
	Radix uint16
}

// Kind is a kind of spanning tree.
type Kind uint8

// The kinds that come with the library; services of a whole system may agree
// on more, from FirstOwnKind on.
const (
	KNomial Kind = 1
	KAry    Kind = 2 // complete, level by level
	Flat    Kind = 3

	FirstOwnKind Kind = 16
)

// Bulk is the descriptor of memory at the sender of a request.
type Bulk struct {
	Key    uint64 // the sender's own
	Length uint64 // bytes, at least 1
}

// Key identifies a broadcast among all of all roots.
type Key struct {
	Root        Node
	Incarnation uint64 // of the root
	Sequence    uint64 // rises with every broadcast of the root's
}

// Request is what goes down a tree.
type Request struct {
	Flags   Flags
	Service Service
	Tree    Tree
	Key
	// The sender waits (reach + 1) Level + Patience - Late for the reply, where
	// reach is the number of edges from the receiver to the deepest leaf beneath it.
	Patience time.Duration // P, the root's estimate of processing time
	Level    time.Duration // R, and what the root takes before it forwards
	Late     time.Duration // what others have taken beyond that, at most P
	Index    Index         // of the group
	Digest   Digest        // over all members of the group

	Proof        *Proof // with Proven
	Subset       Subset
	SubsetDigest Digest // over the members in the tree, if Alive
	Filter       Filter // if Filtered
	Bulk         Bulk   // with HasBulk
	Creation     *Creation
	Payload      []byte
}

// Size returns the bytes that r takes.
func (r *Request) Size() int {
	n := requestSize + len(r.Root) + len(r.Payload)
	if r.Proof != nil {
		n += r.Proof.size()
	}
	if r.Subset&Alive != 0 {
		n += len(r.SubsetDigest)
	}
	if r.Subset&Filtered != 0 {
		n += FilterSize(r.Filter)
	}
	if r.Flags&HasBulk != 0 {
		n += 16
	}
	if r.Creation != nil {
		n += r.Creation.Size()
	}
	return n
}

// FilterSize returns the bytes that a filter takes in a request.
func FilterSize(f Filter) int { return 2 + len(f) }

// Append appends r to b. It must be valid; see Valid.
func (r *Request) Append(b []byte) []byte {
	b = append(b, Version<<4|requestType, byte(r.Flags))
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.Payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Service))
	b = append(b, byte(r.Tree.Kind), byte(r.Subset))
	b = binary.BigEndian.AppendUint16(b, r.Tree.Radix)
	b = append(b, byte(len(r.Root)), 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, r.Incarnation)
	b = binary.BigEndian.AppendUint64(b, r.Sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Patience))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Level))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Late))
	b = append(b, r.Index[:]...)
	b = append(b, r.Digest[:]...)
	b = append(b, r.Root...)
	if r.Proof != nil {
		b = r.Proof.append(b)
	}
	if r.Subset&Alive != 0 {
		b = append(b, r.SubsetDigest[:]...)
	}
	if r.Subset&Filtered != 0 {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(r.Filter))), r.Filter...)
	}
	if r.Flags&HasBulk != 0 {
		b = binary.BigEndian.AppendUint64(b, r.Bulk.Key)
		b = binary.BigEndian.AppendUint64(b, r.Bulk.Length)
	}
	if r.Creation != nil {
		b = r.Creation.Append(b)
	}
	return append(b, r.Payload...)
}

// Decode reads all of b, in place of what r was. Payload, filter and proof are parts of
// b; nothing else shares memory with it. Where the root is the same, so is its name, and
// the memory of its proof is used again, so that a reader of many takes no memory.
func (r *Request) Decode(b []byte) error {
	if len(b) < requestSize || len(b) > MaxRequest || b[0] != Version<<4|requestType {
		return fmt.Errorf("%w: %d bytes are no request", ErrMessage, len(b))
	}
	u16, u32, u64 := binary.BigEndian.Uint16, binary.BigEndian.Uint32, binary.BigEndian.Uint64
	proof := r.Proof
	*r = Request{
		Flags: Flags(b[1]), Service: Service(u32(b[4:])), Tree: Tree{Kind(b[8]), u16(b[10:])}, Subset: Subset(b[9]),
		Key:      Key{r.Root, u64(b[16:]), u64(b[24:])},
		Patience: time.Duration(u64(b[32:])), Level: time.Duration(u64(b[40:])), Late: time.Duration(u64(b[48:])),
		Index: Index(b[56:]), Digest: Digest(b[80:]),
	}
	in := cursor.Cursor{B: b[requestSize:], Bad: b[13]|b[14]|b[15] != 0}
	cursor.Chars(&in, &r.Root, int(b[12]))
	if r.Flags&Proven != 0 {
		if r.Proof = proof; proof == nil {
			r.Proof = &Proof{}
		}
		*r.Proof = Proof{}
		r.Proof.read(&in)
	}
	if r.Subset&Alive != 0 {
		in.Bytes(r.SubsetDigest[:])
	}
	if r.Subset&Filtered != 0 {
		var n int
		cursor.Uint16(&in, &n)
		r.Filter = in.Take(n)
	}
	if r.Flags&HasBulk != 0 {
		cursor.Uint64(&in, &r.Bulk.Key)
		cursor.Uint64(&in, &r.Bulk.Length)
	}
	if r.Flags&Creates != 0 {
		r.Creation = &Creation{}
		r.Creation.fields(&in)
	}
	r.Payload = in.Take(int(u16(b[2:])))
	if in.Bad || len(in.B) > 0 {
		return fmt.Errorf("%w: a request is cut off, or longer than it says", ErrMessage)
	}
	return r.Valid()
}

// Valid reports why r cannot be a request, whoever sent it.
func (r *Request) Valid() error {
	has := func(f Flags) bool { return r.Flags&f != 0 }
	var wrong string
	switch {
	case r.Flags&^allFlags != 0 || r.Subset&^allSubsets != 0:
		wrong = "an unknown flag or subset"
	case r.Service == 0 || len(r.Root) == 0 || len(r.Root) > MaxNode:
		wrong = "no service or no root"
	case r.Patience < 0 || r.Patience > MaxPatience || r.Level < 0 || r.Level > MaxLevel || r.Late < 0 || r.Late > r.Patience:
		wrong = "a negative time, or one without end"
	case (r.Subset&Filtered != 0) != (r.Filter != nil) || r.Filter != nil && !r.Filter.valid():
		wrong = "a filter that is none"
	case has(Proven) != (r.Proof != nil) || r.Proof != nil && !r.Proof.valid(r.Sequence):
		wrong = "a proof that is none"
	case has(Creates) != (r.Creation != nil), has(HasBulk) != (r.Bulk.Length > 0):
		wrong = "a flag without what it announces"
	case has(Creates) && (has(OutOfBand) || !has(Own) && r.Subset != Everybody):
		wrong = "a creation of an out-of-band group or of a subset"
	case has(Last) && !has(Own) && r.Subset != Everybody:
		wrong = "a last request for a subset"
	case has(Own) && (len(r.Payload) > 0 || r.Subset&Alive != 0 || !r.ownKind()):
		wrong = "a message of the library's own that does nothing known"
	case r.Size() > MaxRequest:
		wrong = fmt.Sprintf("%d bytes, more than %d", r.Size(), MaxRequest)
	default:
		return nil
	}
	return fmt.Errorf("%w: a request with %s", ErrMessage, wrong)
}

// ownKind reports whether the flags are one of the library's own kinds: a group is
// made, or freed, with its members aboard, to be pulled, or known out of band.
func (r *Request) ownKind() bool {
	switch r.Flags &^ (Last | Proven) {
	case Own | Creates, Own | HasBulk:
		return true
	}
	return r.Flags&^Proven == Own|Last|OutOfBand
}
