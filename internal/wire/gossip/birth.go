package gossip

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Origin is what a birth record says: a node's life, the key of that life, and who says
// so. Its layout is that of its fields, with the sizes of slices before them: of ID one
// byte, of the others two.
type Origin struct {
	ID           []byte // as all slices, within the record where it was decoded
	Incarnation  uint64
	Key          [32]byte // Ed25519
	Signed       uint64   // when, in nanoseconds of Unix time: a life that is longer than its certificate is signed again
	Signature    []byte   // of Statement, by the first of Certificates
	Certificates [][]byte // DER; first the node's, then those between it and its authority
}

// maxCertificates bounds those of a record.
const maxCertificates = 8

// Statement returns what is signed. Zone distinguishes zones of one authority.
func (o *Origin) Statement(zone []byte) []byte {
	b := append([]byte("tributary member birth"), byte(len(zone)))
	b = append(b, zone...)
	b = binary.BigEndian.AppendUint64(b, o.Incarnation)
	b = binary.BigEndian.AppendUint64(b, o.Signed)
	return append(append(b, o.Key[:]...), o.ID...)
}

// Append appends the record.
func (o *Origin) Append(b []byte) []byte {
	c := cursor.Cursor{B: b, Writes: true}
	o.fields(&c)
	return c.B
}

// Decode reads a record; the error wraps ErrMalformed.
func (o *Origin) Decode(b []byte) error {
	c := cursor.Cursor{B: b}
	*o = Origin{}
	if o.fields(&c); c.Bad || len(c.B) > 0 || len(b) > MaxBirth {
		return fmt.Errorf("%w: a birth record of %d bytes", ErrMalformed, len(b))
	}
	return nil
}

func (o *Origin) fields(c *cursor.Cursor) {
	n := len(o.ID)
	cursor.Uint8(c, &n)
	c.Part(&o.ID, n)
	cursor.Uint64(c, &o.Incarnation)
	c.Bytes(o.Key[:])
	cursor.Uint64(c, &o.Signed)
	part(c, &o.Signature)
	n = len(o.Certificates)
	cursor.Uint8(c, &n)
	if c.Bad = c.Bad || n > maxCertificates; c.Bad && !c.Writes {
		return
	}
	if !c.Writes {
		o.Certificates = make([][]byte, n)
	}
	for i := range o.Certificates {
		part(c, &o.Certificates[i])
	}
}

// part is bytes behind their number.
func part(c *cursor.Cursor, b *[]byte) {
	n := len(*b)
	cursor.Uint16(c, &n)
	c.Bad = c.Bad || n > math.MaxUint16
	c.Part(b, n)
}
