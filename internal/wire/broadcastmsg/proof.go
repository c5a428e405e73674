package broadcastmsg

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Bounds of a proof.
const (
	TagSize       = 8
	MostTags      = 128
	SignatureSize = ed25519.SignatureSize
)

// SecretSize are the bytes of the secret of a root and a node.
const SecretSize = 32

// Proof shows that a request is its root's, as it was sent: by a signature for all
// nodes, or by a tag for each that does not get the request from the root itself.
type Proof struct {
	Floor     uint64 // all broadcasts of the root below it have ended there; at most the request's sequence
	Signature []byte // SignatureSize bytes, or none
	Tags      []byte // TagSize bytes each, in any order, at most MostTags; none beside a signature
}

// size returns the bytes of a request that has p.
func (p *Proof) size() int { return 9 + len(p.Signature) + len(p.Tags) }

// MostProof are the bytes of a proof that has a signature.
const MostProof = 9 + SignatureSize

// ProofRoom returns the bytes of a proof of so many tags.
func ProofRoom(tags int) int { return 9 + TagSize*tags }

func (p *Proof) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, p.Floor)
	b = append(b, byte(len(p.Tags)/TagSize))
	b = append(b, p.Signature...)
	return append(b, p.Tags...)
}

// read reads a proof, whose signature and tags are parts of what is read.
func (p *Proof) read(in *cursor.Cursor) {
	var tags int
	cursor.Uint64(in, &p.Floor)
	cursor.Uint8(in, &tags)
	if tags == 0 {
		p.Signature = in.Take(SignatureSize)
	} else {
		p.Tags = in.Take(tags * TagSize)
	}
}

// valid reports whether p can be the proof of the root's sequence-th broadcast.
func (p *Proof) valid(sequence uint64) bool {
	signed, tags := len(p.Signature) == SignatureSize, len(p.Tags)/TagSize
	tagged := len(p.Tags)%TagSize == 0 && tags >= 1 && tags <= MostTags
	return p.Floor <= sequence && signed == (len(p.Tags) == 0) && tagged == (len(p.Signature) == 0)
}

// Statement is a digest of all that the root says in a request, the proof's floor
// included: not of the times and the key to bulk data that each node on the way sets.
type Statement [sha256.Size]byte

// Statement returns that of r; scratch is memory to use, and returned.
func (r *Request) Statement(scratch []byte) (Statement, []byte) {
	said := *r
	said.Level, said.Late, said.Bulk.Key = 0, 0, 0
	said.Flags, said.Proof = said.Flags&^Proven, nil
	b := append(scratch[:0], "tributary/collect/request/1 "...)
	if r.Proof != nil {
		b = binary.BigEndian.AppendUint64(b, r.Proof.Floor)
	}
	b = said.Append(b)
	return sha256.Sum256(b), b
}

// Question asks a root for its Answer, with a secret for the tags of its requests to
// who asks. It goes from one to the other, on a connection that shows who they are.
type Question struct{ Secret [SecretSize]byte }

// Answer is what a root says of itself to a node that has asked.
type Answer struct {
	Incarnation uint64
	Floor       uint64 // all its broadcasts below it have ended
	Public      [ed25519.PublicKeySize]byte
}

// Append appends q to b.
func (q *Question) Append(b []byte) []byte {
	b = append(b, Version<<4|questionType, 0, 0, 0)
	return append(b, q.Secret[:]...)
}

// Decode reads all of b.
func (q *Question) Decode(b []byte) error {
	if len(b) != 4+SecretSize || b[0] != Version<<4|questionType || b[1]|b[2]|b[3] != 0 {
		return fmt.Errorf("%w: %d bytes are no question", ErrMessage, len(b))
	}
	q.Secret = [SecretSize]byte(b[4:])
	return nil
}

// Append appends a to b.
func (a *Answer) Append(b []byte) []byte {
	b = append(b, Version<<4|answerType, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, a.Incarnation)
	b = binary.BigEndian.AppendUint64(b, a.Floor)
	return append(b, a.Public[:]...)
}

// Decode reads all of b.
func (a *Answer) Decode(b []byte) error {
	if len(b) != 20+ed25519.PublicKeySize || b[0] != Version<<4|answerType || b[1]|b[2]|b[3] != 0 {
		return fmt.Errorf("%w: %d bytes are no answer", ErrMessage, len(b))
	}
	a.Incarnation, a.Floor = binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:])
	a.Public = [ed25519.PublicKeySize]byte(b[20:])
	return nil
}

// IsQuestion reports whether a message says it is a Question.
func IsQuestion(b []byte) bool { return len(b) > 0 && b[0]&15 == questionType }

// IsAnswer reports whether a message says it is an Answer.
func IsAnswer(b []byte) bool { return len(b) > 0 && b[0]&15 == answerType }
