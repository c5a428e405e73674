package rudp

import (
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
)

// ID names one side of one connection: 64 random bits, which no other connection has,
// before or after.
type ID uint64

// Kind is what a datagram is.
type Kind uint8

// The kinds of datagrams. All numbers are big-endian; what a kind does not list is zero.
//
//	Connect  48 bytes  2 most bytes of a datagram, 4 window, 8 From, 16 cookie
//	Retry    48        8 To, 16 cookie: prove that you are where you say, by repeating it
//	Accept   24        2 most bytes of a datagram, 4 window, 8 To, 16 From
//	Data     28 + n    1 flags, 2 bytes of the acknowledgement, 4 number, 8 To, 16 lowest number
//	                   that is not settled, 20 offset, 28 acknowledgement, bytes of the stream
//	Reset    16        8 To: the connection has ended
//	Unknown  16        8 the To of a Data that came: there is no such connection
const (
	Connect Kind = 1 + iota
	Retry
	Accept
	Data
	Reset
	Unknown
)

var kindNames = []string{"?", "connect", "retry", "accept", "data", "reset", "unknown"}

// String returns the kind's name.
func (k Kind) String() string { return core.Name(kindNames, k, "?") }

const (
	version     = 1 << 4 // of byte 0, above the kind
	connectSize = 48
	acceptSize  = 24
	dataHead    = 28
	resetSize   = 16

	cookieSize = 32
	cookieAt   = 16

	overhead = 28 // of the headers beneath, which count as sent, too
)

// Flags of a Data.
const (
	flagCounts  = 1 << iota // has a number and is to be acknowledged
	flagFin                 // the stream ends with its bytes
	flagPrompt              // to be acknowledged at once
	allFlags    = flagCounts | flagFin | flagPrompt
	maxOffset   = 1 << 62
	ackHead     = 20 // of an acknowledgement: 0 largest number, 4 us since it came, 8 limit, 16 first range
	ackRange    = 8  // of each further one: numbers before it that are missing, numbers
	maxRanges   = 32
	maxAckSize  = ackHead + (maxRanges-1)*ackRange
	largestTime = 1<<32 - 1
)

// KindOf returns what a datagram is, and the ID that it is for: of a Connect the
// caller's own, of an Unknown the one that is not known.
func KindOf(b []byte) (Kind, ID, error) {
	if len(b) < resetSize || b[0]&^0xf != version {
		return 0, 0, fmt.Errorf("%w: %d bytes of no version %d", ErrMalformed, len(b), version>>4)
	}
	k, isValid := Kind(b[0]&0xf), false
	switch k {
	case Connect, Retry:
		isValid = len(b) == connectSize
	case Accept:
		isValid = len(b) == acceptSize
	case Data:
		isValid = len(b) >= dataHead
	case Reset, Unknown:
		isValid = len(b) == resetSize
	}
	if !isValid {
		return 0, 0, fmt.Errorf("%w: %d bytes of kind %d", ErrMalformed, len(b), k)
	}
	return k, ID(binary.BigEndian.Uint64(b[8:])), nil
}

// short returns a datagram of no more than a kind and an ID.
func short(k Kind, id ID, size int) []byte {
	b := make([]byte, size)
	b[0] = version | byte(k)
	binary.BigEndian.PutUint64(b[8:], uint64(id))
	return b
}

// AppendUnknown appends the answer to a Data for an ID that nobody has.
func AppendUnknown(b []byte, id ID) []byte { return append(b, short(Unknown, id, resetSize)...) }

// opening is what a Connect or an Accept says.
type opening struct {
	datagram int
	window   uint32
	from     ID
}

func parseOpening(b []byte, from int) (o opening, err error) {
	o.datagram = int(binary.BigEndian.Uint16(b[2:]))
	o.window = binary.BigEndian.Uint32(b[4:])
	o.from = ID(binary.BigEndian.Uint64(b[from:]))
	if o.datagram < MinDatagram {
		err = fmt.Errorf("%w: datagrams of %d bytes", ErrMalformed, o.datagram)
	}
	return o, err
}

func (o *opening) put(b []byte, from int) {
	binary.BigEndian.PutUint16(b[2:], uint16(o.datagram))
	binary.BigEndian.PutUint32(b[4:], o.window)
	binary.BigEndian.PutUint64(b[from:], uint64(o.from))
}

// dataPacket is a Data, apart.
type dataPacket struct {
	flags       byte
	number, low uint32
	offset      uint64
	ack         []byte
	body        []byte
}

func parseData(b []byte) (p dataPacket, err error) {
	p = dataPacket{
		flags: b[1], number: binary.BigEndian.Uint32(b[4:]), low: binary.BigEndian.Uint32(b[16:]),
		offset: binary.BigEndian.Uint64(b[20:]),
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	switch {
	case p.flags&^allFlags != 0:
		return p, fmt.Errorf("%w: flags %#x", ErrMalformed, p.flags)
	case n != 0 && (n < ackHead || n > maxAckSize || (n-ackHead)%ackRange != 0 || dataHead+n > len(b)):
		return p, fmt.Errorf("%w: acknowledgement of %d bytes in %d", ErrMalformed, n, len(b))
	case p.offset > maxOffset:
		return p, fmt.Errorf("%w: offset %d", ErrMalformed, p.offset)
	}
	p.ack, p.body = b[dataHead:dataHead+n], b[dataHead+n:]
	if p.flags&flagCounts == 0 && (len(p.body) > 0 || p.flags != 0) {
		return p, fmt.Errorf("%w: bytes without a number", ErrMalformed)
	}
	return p, nil
}

// putData writes the head of a Data.
func putData(b []byte, flags byte, ack int, number uint32, to ID, low uint32, offset uint64) {
	b[0], b[1] = version|byte(Data), flags
	binary.BigEndian.PutUint16(b[2:], uint16(ack))
	binary.BigEndian.PutUint32(b[4:], number)
	binary.BigEndian.PutUint64(b[8:], uint64(to))
	binary.BigEndian.PutUint32(b[16:], low)
	binary.BigEndian.PutUint64(b[20:], offset)
}

// widen returns the number nearest to near that ends with those bits.
func widen(near uint64, bits uint32) uint64 {
	return near + uint64(int64(int32(bits-uint32(near))))
}
