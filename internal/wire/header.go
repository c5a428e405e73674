package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/reduce"
)

// Version is the version of the data plane's format that this package speaks.
const Version = 1

// HeaderSize is the bytes of a header; the payload follows it.
const HeaderSize = 40

const reservedAt = 18 // the byte that is 0

// BatchChunks is how many chunks of an operation members send at once, where they can:
// its first ones, the next, and so on. Switches that reduce batches as a whole then find
// those of all children to be of the same chunks.
const BatchChunks = 32

// MaxRank is the greatest rank that a header can carry (24 bits).
const MaxRank = 1<<24 - 1

// Type is the type of a packet.
type Type uint8

// The packet types.
const (
	Contribution Type = 1 // child to parent: a vector's chunk, or a partial
	Result       Type = 2 // parent to child: the chunk reduced over the group
	Probe        Type = 3 // child to parent: what of this chunk?
	Heard        Type = 4 // answer: contribution held, no result yet
	Want         Type = 5 // answer: contribution not held, send it again
	Lost         Type = 6 // answer: the way to the root is lost
	Error        Type = 7 // both ways: two members disagree; payload is an ErrorBody
)

// Flags of a packet.
type Flags uint8

const (
	// Source: the sender, or one of those it stands for, holds the vector, in
	// collectives that copy; the payload is that vector's chunk.
	Source Flags = 1 << 0
	// Sink: in a contribution, the sender or one of those it stands for wants
	// the vector; in a result, the payload is there.
	Sink Flags = 1 << 1
	// Idle: in a probe, no chunk is asked for; it renews leases along the way.
	Idle Flags = 1 << 2
)

// Collective is the kind of an operation.
type Collective uint8

// The collectives.
const (
	Allreduce Collective = 1
	Reduce    Collective = 2
	Broadcast Collective = 3
	Barrier   Collective = 4
)

var collectiveNames = [...]string{"collective(0)", "allreduce", "reduce", "broadcast", "barrier"}

// String returns the collective's name.
func (c Collective) String() string {
	if int(c) < len(collectiveNames) {
		return collectiveNames[c]
	}
	return fmt.Sprintf("collective(%d)", uint8(c))
}

// Valid reports whether version 1 defines c.
func (c Collective) Valid() bool { return c >= Allreduce && c <= Barrier }

// Copies reports whether c moves one member's vector instead of reducing all.
func (c Collective) Copies() bool { return c == Broadcast }

// Signature is what all members must agree upon for a chunk. Signatures are
// compared with ==.
type Signature struct {
	Collective    Collective
	Function      reduce.Function
	Element       reduce.Type
	Root          uint32 // rank of the root, or what members say in its place, 24 bits; 0 where there is none
	Operation     uint16 // operation number, serial
	Elements      uint32 // elements of the whole operation
	ChunkElements uint16 // elements of this chunk
}

// ElementSize returns the bytes of one element.
func (s Signature) ElementSize() int { return reduce.ElementSize(s.Function, s.Element) }

// PayloadSize returns the bytes of the chunk's payload where it is carried.
func (s Signature) PayloadSize() int { return int(s.ChunkElements) * s.ElementSize() }

// Header is the header of every packet of the data plane. docs/protocol.md
// gives its bytes.
type Header struct {
	Type     Type
	Flags    Flags
	Child    uint16 // index of the child among its parent's children, whichever of both is the sender
	Group    uint32
	Epoch    uint32
	Cookie   Cookie // secret of the child and its parent, 48 bits
	Exponent int8   // of a chunk of reduce.Block32; 0 otherwise
	Chunk    uint32 // serial
	Lowest   uint32 // lowest rank that the packet stands for, 24 bits
	Signature
}

// Put writes h into the first HeaderSize bytes of b.
func (h *Header) Put(b []byte) {
	_ = b[HeaderSize-1]
	b[0] = Version<<4 | byte(h.Type)&15
	b[1] = byte(h.Flags)
	binary.BigEndian.PutUint16(b[2:], h.Child)
	binary.BigEndian.PutUint32(b[4:], h.Group)
	binary.BigEndian.PutUint32(b[8:], h.Epoch)
	binary.BigEndian.PutUint64(b[12:], uint64(h.Cookie)<<16|uint64(uint8(h.Exponent)))
	binary.BigEndian.PutUint32(b[20:], h.Chunk)
	h.Signature.put(b[24:], h.Lowest)
}

// Address writes into a packet what differs by receiver: child index and cookie.
func Address(packet []byte, child uint16, cookie Cookie) {
	_ = packet[HeaderSize-1]
	binary.BigEndian.PutUint16(packet[2:], child)
	binary.BigEndian.PutUint32(packet[12:], uint32(cookie>>16))
	binary.BigEndian.PutUint16(packet[16:], uint16(cookie))
}

// put writes s, and a rank, into the first 16 bytes of b.
func (s *Signature) put(b []byte, rank uint32) {
	_ = b[15]
	binary.BigEndian.PutUint32(b, s.Elements)
	binary.BigEndian.PutUint16(b[4:], s.Operation)
	binary.BigEndian.PutUint16(b[6:], s.ChunkElements)
	binary.BigEndian.PutUint32(b[8:], uint32(s.Collective)<<28|uint32(s.Function)&15<<24|s.Root&MaxRank)
	binary.BigEndian.PutUint32(b[12:], uint32(s.Element)<<24|rank&MaxRank)
}

// read reads what put has written, and returns the rank.
func (s *Signature) read(b []byte) (rank uint32) {
	_ = b[15]
	s.Elements = binary.BigEndian.Uint32(b)
	s.Operation = binary.BigEndian.Uint16(b[4:])
	s.ChunkElements = binary.BigEndian.Uint16(b[6:])
	w := binary.BigEndian.Uint32(b[8:])
	s.Collective, s.Function, s.Root = Collective(w>>28), reduce.Function(w>>24&15), w&MaxRank
	w = binary.BigEndian.Uint32(b[12:])
	s.Element = reduce.Type(w >> 24)
	return w & MaxRank
}

// SetSettled makes an idle probe say that all members have every result before n.
func (h *Header) SetSettled(n uint32) { h.Chunk, h.Elements = n, ^n }

// Settled returns the number before which all members have every result, if an
// idle probe says so. A switch that passes the probe on without knowing of this,
// with another number or none, makes it say nothing.
func (h *Header) Settled() (n uint32, ok bool) {
	return h.Chunk, h.Type == Probe && h.Flags&Idle != 0 && h.Elements == ^h.Chunk
}

// Newer reports whether chunk number a comes after b, in serial arithmetic
// (RFC 1982, 32 bits).
func Newer(a, b uint32) bool { return int32(a-b) > 0 }
