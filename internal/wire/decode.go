package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/reduce"
)

// Fault is the reason why a packet cannot be read.
type Fault uint8

// The faults; NoFault is that of a valid packet.
const (
	NoFault Fault = iota
	Truncated
	BadVersion
	BadType
	BadFlags // or the reserved byte is not 0
	BadSignature
	BadLength
	BadExponent // in a packet that is none of a chunk in block floating point

	faultCount
)

// Faults is the number of faults, NoFault included.
const Faults = int(faultCount)

var faultNames = [...]string{"none", "truncated", "version", "type", "flags", "signature", "length", "exponent"}

// String returns the fault's name, as counters use it.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// Decode reads the packet b into h and returns its payload, a part of b, or
// says what is wrong with it. Every field is checked against every other that
// it depends upon; cookie, epoch and source are for the receiver to check.
func (h *Header) Decode(b []byte) (payload []byte, fault Fault) {
	if len(b) < HeaderSize {
		return nil, Truncated
	}
	if b[0]>>4 != Version {
		return nil, BadVersion
	}
	h.Type, h.Flags = Type(b[0]&15), Flags(b[1])
	if h.Type < Contribution || h.Type > Error {
		return nil, BadType
	}
	h.Child = binary.BigEndian.Uint16(b[2:])
	h.Group = binary.BigEndian.Uint32(b[4:])
	h.Epoch = binary.BigEndian.Uint32(b[8:])
	v := binary.BigEndian.Uint64(b[12:])
	h.Cookie, h.Exponent = Cookie(v>>16), int8(v)
	h.Chunk = binary.BigEndian.Uint32(b[20:])
	h.Lowest = h.Signature.read(b[24:])
	payload = b[HeaderSize:]
	if b[reservedAt] != 0 || !h.flagsFit() {
		return nil, BadFlags
	}
	if h.Exponent != 0 && !h.mayHaveExponent() {
		return nil, BadExponent
	}
	if h.carriesSignature() && !h.Signature.Valid() {
		return nil, BadSignature
	}
	if len(payload) != h.payloadSize() {
		return nil, BadLength
	}
	return payload, NoFault
}

// Valid reports whether a member of this version can have made s.
func (s Signature) Valid() bool {
	if uint32(s.ChunkElements) > s.Elements || s.Elements > 0 && s.ChunkElements == 0 {
		return false
	}
	switch s.Collective {
	case Allreduce, Reduce:
		return reduce.Defined(s.Function, s.Element) && (s.Collective == Reduce || s.Root == 0)
	case Broadcast:
		return s.Function == reduce.NoFunction && s.Element.Valid() && s.Element != reduce.Block32
	case Barrier:
		return s == Signature{Collective: Barrier, Operation: s.Operation}
	default:
		return false
	}
}

// carriesSignature reports whether h's signature says something: contributions
// and results have one; of an error, the body has both.
func (h *Header) carriesSignature() bool {
	return h.Type == Contribution || h.Type == Result
}

func (h *Header) mayHaveExponent() bool {
	return h.carriesSignature() && h.Element == reduce.Block32
}

func (h *Header) flagsFit() bool {
	allowed := Flags(0)
	switch h.Type {
	case Contribution:
		allowed = Sink
		if h.Collective.Copies() {
			allowed |= Source
		}
	case Result:
		allowed = Sink
	case Probe:
		allowed = Idle
	default: // the others have none
	}
	return h.Flags&^allowed == 0
}

// payloadSize returns the bytes of payload that h's packet must have.
func (h *Header) payloadSize() int {
	switch h.Type {
	case Contribution:
		if !h.Collective.Copies() || h.Flags&Source != 0 {
			return h.PayloadSize()
		}
	case Result:
		if h.Flags&Sink != 0 {
			return h.PayloadSize()
		}
	case Error:
		return ErrorBodySize
	default: // the others are a header alone
	}
	return 0
}

// ErrorBodySize is the bytes of an ErrorBody.
const ErrorBodySize = 40

// ErrorKind reports how two members disagree.
type ErrorKind uint8

// The kinds of disagreement.
const (
	Mismatch   ErrorKind = 1 // two signatures for one chunk
	TwoSources ErrorKind = 2 // two members hold the vector of one broadcast
	NoSource   ErrorKind = 3 // no member holds the vector of a broadcast
)

// ErrorBody is the payload of an Error: two ranks, and what each of them said.
type ErrorBody struct {
	Kind ErrorKind
	Rank [2]uint32
	Says [2]Signature
}

// Put writes e into the first ErrorBodySize bytes of b.
func (e *ErrorBody) Put(b []byte) {
	_ = b[ErrorBodySize-1]
	binary.BigEndian.PutUint64(b, uint64(e.Kind)<<56)
	for i := range e.Says {
		e.Says[i].put(b[8+16*i:], e.Rank[i])
	}
}

// Decode reads e from b and reports whether b is one.
func (e *ErrorBody) Decode(b []byte) bool {
	if len(b) != ErrorBodySize {
		return false
	}
	v := binary.BigEndian.Uint64(b)
	e.Kind = ErrorKind(v >> 56)
	if e.Kind < Mismatch || e.Kind > NoSource || v<<8 != 0 {
		return false
	}
	for i := range e.Says {
		e.Rank[i] = e.Says[i].read(b[8+16*i:])
		if !e.Says[i].Valid() {
			return false
		}
	}
	return true
}
