package wire

import "encoding/binary"

// A Stamp is the header that a neighbour's packets of one type share in an
// operation: only the flags, the chunk's number, elements and exponent, and the lowest
// rank, differ. It writes and checks a header as five words, where Put and
// Decode look at every field.
type Stamp [HeaderSize / 8]uint64

// The words of a Stamp in which something differs, and the bits that do not.
const (
	stampFlags    = 0 // version, type, flags, child, group
	stampChunk    = 2 // cookie, tree, exponent, chunk
	stampElements = 3 // elements, operation, chunk elements
	stampLowest   = 4 // the rest of the signature, lowest rank

	flagsShift   = 48
	typeShift    = 56
	keepsType    = ^uint64(15 << typeShift)
	keepsCookie  = ^uint64(1<<40 - 1)
	keepsElement = ^uint64(MaxRank)
)

// Stamp returns h's stamp, with its lowest rank.
func (h *Header) Stamp() Stamp {
	return Stamp{
		stampFlags:    Version<<60 | uint64(h.Type&15)<<typeShift | uint64(h.Child)<<32 | uint64(h.Group),
		1:             uint64(h.Epoch)<<32 | uint64(uint32(h.Cookie>>16)),
		stampChunk:    uint64(h.Cookie) << 48,
		stampElements: uint64(h.Elements)<<32 | uint64(h.Operation)<<16,
		stampLowest: uint64(uint32(h.Collective)<<28|uint32(h.Function)&15<<24|h.Root&MaxRank)<<32 |
			uint64(h.Element)<<24 | uint64(h.Lowest&MaxRank),
	}
}

// Of returns the stamp of what differs from s in its type alone.
func (s *Stamp) Of(t Type) Stamp {
	other := *s
	other[stampFlags] = s[stampFlags]&keepsType | uint64(t&15)<<typeShift
	return other
}

// Put writes the header of a chunk of that many elements into b.
func (s *Stamp) Put(b *[HeaderSize]byte, flags Flags, chunk uint32, elements uint16, exponent int8) {
	binary.BigEndian.PutUint64(b[0:], s[stampFlags]|uint64(flags)<<flagsShift)
	binary.BigEndian.PutUint64(b[8:], s[1])
	binary.BigEndian.PutUint64(b[8*stampChunk:], s[stampChunk]|uint64(uint8(exponent))<<32|uint64(chunk))
	binary.BigEndian.PutUint64(b[8*stampElements:], s[stampElements]|uint64(elements))
	binary.BigEndian.PutUint64(b[8*stampLowest:], s[stampLowest])
}

// Fits reports whether b, of at least HeaderSize bytes, has the stamp's header
// for a chunk of that many elements: of any number, exponent and lowest rank.
func (s *Stamp) Fits(b []byte, flags Flags, elements uint16) bool {
	_ = b[HeaderSize-1]
	return binary.BigEndian.Uint64(b) == s[stampFlags]|uint64(flags)<<flagsShift &&
		binary.BigEndian.Uint64(b[8:]) == s[1] &&
		binary.BigEndian.Uint64(b[8*stampChunk:])&keepsCookie == s[stampChunk] &&
		binary.BigEndian.Uint64(b[8*stampElements:]) == s[stampElements]|uint64(elements) &&
		(binary.BigEndian.Uint64(b[8*stampLowest:])^s[stampLowest])&keepsElement == 0
}

// FitsChunk is Fits for the chunk of a number, with that exponent.
func (s *Stamp) FitsChunk(b []byte, flags Flags, chunk uint32, elements uint16, exponent int8) bool {
	_ = b[HeaderSize-1]
	return binary.BigEndian.Uint64(b[8*stampChunk:]) == s[stampChunk]|uint64(uint8(exponent))<<32|uint64(chunk) &&
		binary.BigEndian.Uint64(b) == s[stampFlags]|uint64(flags)<<flagsShift &&
		binary.BigEndian.Uint64(b[8:]) == s[1] &&
		binary.BigEndian.Uint64(b[8*stampElements:]) == s[stampElements]|uint64(elements) &&
		(binary.BigEndian.Uint64(b[8*stampLowest:])^s[stampLowest])&keepsElement == 0
}

// PeekChunk returns the chunk number and the exponent in a header, of at least
// HeaderSize bytes.
func PeekChunk(b []byte) (chunk uint32, exponent int8) {
	v := binary.BigEndian.Uint64(b[8*stampChunk:])
	return uint32(v), int8(v >> 32)
}
