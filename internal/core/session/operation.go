package session

import (
	"errors"
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// ErrOperation is wrapped by all errors of Operation.Validate.
var ErrOperation = errors.New("session: invalid operation")

// Operation is one collective operation of this member. Its buffers are lent
// to the session until the operation is completed or the session has ended.
type Operation struct {
	ID         uint64 // the caller's name for it, repeated in its Completion
	Collective wire.Collective
	Function   reduce.Function
	Element    reduce.Type
	Root       uint32
	Elements   int

	// In is the vector that this member contributes, nil where it contributes
	// none. Out takes the result, nil where this member gets none. They may be
	// the same slice, but not overlap otherwise. Of Block32, or Compressed, they are
	// vectors of Float32, and those of a Fixed sum are of its type: the session turns
	// each chunk as it goes and comes.
	In, Out []byte

	// Compressed: Element, Float16 or BFloat16, is what packets carry of vectors of Float32.
	Compressed bool

	// Fixed, if it is set, has floating-point numbers be summed as integers, which Element
	// is: see doc.go. Marks are those of In, four bytes each; what all members have agreed
	// takes their place. They are lent as In is.
	Fixed reduce.Fixed
	Marks []byte

	// Aside: this member does not want the result that the collective would give
	// it, and has no Out. Members need not agree upon that.
	Aside bool

	// Parts, unless nil, divides the vector: see there. In a Reduce or a Broadcast.
	Parts *Parts

	// Whole is what the operation is a piece of, if it is one.
	Whole Whole

	// Last marks the group's last barrier: it is contributed to only when
	// every earlier result is there, and no operation follows it.
	Last bool
}

// Whole is an operation that several sessions carry, each a piece of its vector
// or nothing; or one session, among other operations that none carries. What packets say
// of it is the same in all sessions, so that each compares what the members called.
type Whole struct {
	IsSet    bool
	Elements int    // at least those of each piece
	Serial   uint16 // of the operation among all that the members call
}

// Source reports whether rank holds the vector that the operation copies.
func (o *Operation) Source(rank uint32) bool {
	return o.Collective.Copies() && o.Root == rank
}

// Sink reports whether rank gets the operation's result.
func (o *Operation) Sink(rank uint32) bool {
	if o.Aside {
		return false
	}
	switch o.Collective {
	case wire.Reduce:
		return o.Root == rank
	case wire.Broadcast:
		return o.Root != rank
	}
	return true
}

// Validate reports what is wrong with o as an operation of rank.
func (o *Operation) Validate(c Config) error {
	if o.Elements < 0 || uint64(o.Elements) > math.MaxUint32 {
		return fmt.Errorf("%w: %s of %d elements, most are %d", ErrOperation, o.Collective, o.Elements, uint32(math.MaxUint32))
	}
	if o.Root > wire.MaxRank {
		return fmt.Errorf("%w: root %d, largest rank is %d", ErrOperation, o.Root, wire.MaxRank)
	}
	s := wire.Signature{
		Collective: o.Collective, Function: o.Function, Element: o.Element, Root: o.Root,
		Elements: uint32(o.Elements), ChunkElements: uint16(min(o.Elements, 1)),
	}
	if !s.Valid() {
		return fmt.Errorf("%w: %s of function %s on %s is not defined", ErrOperation, o.Collective, o.Function, o.Element)
	}
	if o.Element == reduce.Block32 && c.Members == 0 {
		return fmt.Errorf("%w: %s on %s in a group of unknown size", ErrOperation, o.Collective, o.Element)
	}
	if err := o.validateCoding(c); err != nil {
		return err
	}
	if o.Parts != nil {
		return o.validateParts(s.ElementSize())
	}
	bytes := o.Elements * o.Width()
	gives := o.Source(c.Rank) || !o.Collective.Copies()
	if gives && len(o.In) != bytes {
		return fmt.Errorf("%w: %s of %d elements needs an input of %d bytes, not %d", ErrOperation, o.Collective, o.Elements, bytes, len(o.In))
	}
	if o.Sink(c.Rank) && len(o.Out) != bytes {
		return fmt.Errorf("%w: %s of %d elements needs an output of %d bytes, not %d", ErrOperation, o.Collective, o.Elements, bytes, len(o.Out))
	}
	if o.Last && o.Collective != wire.Barrier {
		return fmt.Errorf("%w: only a barrier can be the last operation", ErrOperation)
	}
	if w := o.Whole; w.IsSet && (w.Elements < o.Elements || uint64(w.Elements) > math.MaxUint32 || w.Elements > 0 && o.Elements == 0) {
		return fmt.Errorf("%w: %d elements as a piece of %d", ErrOperation, o.Elements, w.Elements)
	}
	return nil
}

// Coding reports whether the elements of the vectors are not those of packets.
func (o *Operation) Coding() bool {
	return o.Element == reduce.Block32 || o.Compressed || o.Fixed.IsSet()
}

// Vectors returns the type of the elements of In and Out.
func (o *Operation) Vectors() reduce.Type {
	switch {
	case o.Fixed.IsSet():
		return o.Fixed.From()
	case o.Coding():
		return reduce.Float32
	}
	return o.Element
}

// Width returns the bytes of an element of In and Out.
func (o *Operation) Width() int { return reduce.ElementSize(o.Function, o.Vectors()) }

func (o *Operation) validateCoding(c Config) error {
	reduces := o.Function == reduce.Sum && !o.Collective.Copies() && o.Parts == nil
	switch {
	case o.Compressed && (o.Fixed.IsSet() || !reduces || o.Element != reduce.Float16 && o.Element != reduce.BFloat16):
		return fmt.Errorf("%w: %s of %s, compressed to %s", ErrOperation, o.Collective, o.Function, o.Element)
	case !o.Fixed.IsSet():
		return nil
	case !reduces || o.Element != o.Fixed.Word():
		return fmt.Errorf("%w: %s of %s on %s, with agreed exponents", ErrOperation, o.Collective, o.Function, o.Element)
	case len(o.Marks) != 4*o.Fixed.Marks(o.Elements):
		return fmt.Errorf("%w: %d bytes of marks for %d elements", ErrOperation, len(o.Marks), o.Elements)
	case c.Members > o.Fixed.Members():
		return fmt.Errorf("%w: sums in fixed point for %d members, in a group of %d", ErrOperation, o.Fixed.Members(), c.Members)
	}
	return nil
}

// agreement returns the operation by which the members agree on the marks of o.
func (o *Operation) agreement() Operation {
	return Operation{Collective: wire.Allreduce, Function: reduce.Max, Element: reduce.Uint32, Elements: len(o.Marks) / 4, In: o.Marks, Out: o.Marks}
}

// What packets say of the elements of an operation whose vectors are of another type than packets carry, so that it
// is none that a member can call on vectors of that: "Turned elements" in docs/protocol.md.
const (
	turned     = 1 << 31
	turnedWide = 1 << 30 // the vectors are of Float64
)

// says returns what packets say of o's elements, of which there are so many.
func (o *Operation) says(elements uint32) uint32 {
	switch {
	case elements == 0 || !o.Compressed && !o.Fixed.IsSet():
		return elements
	case o.Vectors() == reduce.Float64:
		return turned | turnedWide | elements&(turnedWide-1)
	}
	return turned | elements&(turnedWide-1)
}

// Called returns function, type and elements of the vectors of an operation whose packets have the signature s.
func Called(s *wire.Signature) (f reduce.Function, e reduce.Type, elements uint32) {
	f, e, elements = s.Function, s.Element, s.Elements
	switch {
	case e == reduce.Block32:
		return f, reduce.Float32, elements
	case elements < turned:
		return f, e, elements
	case f == reduce.Max && e == reduce.Uint32:
	case f == reduce.Sum && (e == reduce.Int32 || e == reduce.Int64 || e == reduce.Float16 || e == reduce.BFloat16):
	default:
		return f, e, elements
	}
	if elements&turnedWide != 0 {
		return reduce.Sum, reduce.Float64, elements & (turnedWide - 1)
	}
	return reduce.Sum, reduce.Float32, elements & (turnedWide - 1)
}

// Chunk returns the elements that a full chunk carries of o's vector, and the
// bytes of an element; nothing if o has no vector. Full chunks of a Fixed sum are whole units, where that costs no
// more than a ninth of their room.
func (o *Operation) Chunk(chunkBytes int) (elements, width int) {
	width = reduce.ElementSize(o.Function, o.Element)
	if width == 0 {
		return 0, 0
	}
	elements = min(chunkBytes/width, math.MaxUint16)
	if o.Fixed.IsSet() && elements >= 8*o.Fixed.Unit() {
		elements -= elements % o.Fixed.Unit()
	}
	return elements, width
}

// Completion reports that an operation is done and its buffers are the caller's
// again.
type Completion struct {
	ID          uint64
	Chunks      uint32 // numbers that the operation took
	OffloadDone uint32 // how many of them were finished in a tree of switches
	FirstEpoch  uint32 // epoch in which its first chunk was sent
	LastEpoch   uint32 // epoch in which its last chunk was finished
}

// operation is an Operation with its progress.
type operation struct {
	Operation
	sig     wire.Signature // but for ChunkElements
	first   uint32         // number of the first chunk
	chunks  uint32
	perItem int // elements of a full chunk
	width   int // bytes of an element in packets, and
	vector  int // in the operation's vectors
	missing uint32
	offload uint32
	begun   uint32 // epoch in which the first chunk was sent

	at, part    int // of the next chunk: its first element, and in Parts.Ends the first end behind it
	inAt, outAt int // first bytes of the vector that In and Out have

	source, sink  bool // this member is, without Parts
	copies, block bool // the collective copies; the elements are in block floating point
	coded         bool // those of packets are not those of the vectors

	// Of a Fixed sum: what the members agree by, and so of that what it is for.
	sum         *operation
	agreed      uint32 // the number of its first chunk, and
	agreedChunk int    // the marks of one; 0: the operation is no such sum
	before      Completion

	// The headers of contributions and results in epoch stamped, without flags.
	up, down wire.Stamp
	stamped  uint32
}

// operation returns memory for an operation.
func (s *Session) operation() *operation {
	last := len(s.past) - 1
	if last < 0 {
		return new(operation)
	}
	p := s.past[last]
	s.past = s.past[:last]
	return p
}

// begin makes p be o, before its first chunk is sent.
func (p *operation) begin(o *Operation, serial uint16, first uint32, c *Config) {
	*p = operation{}
	p.Operation, p.first, p.chunks = *o, first, 1
	p.source, p.sink = o.Source(c.Rank), o.Sink(c.Rank)
	p.copies, p.block, p.coded = o.Collective.Copies(), o.Element == reduce.Block32, o.Coding()
	p.sig = wire.Signature{
		Collective: o.Collective, Function: o.Function, Element: o.Element,
		Root: o.Root, Operation: serial, Elements: uint32(o.Elements),
	}
	if o.Whole.IsSet {
		p.sig.Operation, p.sig.Elements = o.Whole.Serial, uint32(o.Whole.Elements)
	}
	p.sig.Elements = o.says(p.sig.Elements)
	if o.Parts != nil {
		p.sig.Root, p.sig.Elements = o.Parts.Mark, uint32(o.Parts.Said)
	}
	p.perItem, p.width = o.Chunk(c.ChunkBytes)
	p.vector = o.Width()
	if p.width > 0 && o.Elements > 0 {
		p.divide()
	}
	p.missing = p.chunks
}

// awaits makes p, a Fixed sum, wait for what q agrees on, which comes right before it.
func (p *operation) awaits(q *operation) {
	q.sum = p
	q.sig.Operation, q.sig.Elements = p.sig.Operation, p.sig.Elements
	p.agreed, p.agreedChunk = q.first, q.perItem
}

// agreedBefore returns how many of p's elements have marks that are agreed upon, where all numbers before base are done.
func (p *operation) agreedBefore(base uint32) int {
	if p.agreedChunk == 0 {
		return p.Elements
	}
	if wire.Newer(p.agreed, base) {
		return 0
	}
	marks := int64(base-p.agreed) * int64(p.agreedChunk)
	return int(min(marks/2*int64(p.Fixed.Block()), int64(p.Elements)))
}

// encode turns elements of the vectors to those of packets: of a chunk that begins at an element.
func (p *operation) encode(dst, src []byte, at int, c *Config) (exponent int8) {
	switch {
	case p.block:
		return reduce.EncodeBlock(dst, src, c.Members)
	case p.Compressed:
		reduce.Narrow(p.Element, dst, src)
	default:
		p.Fixed.Encode(dst, src, p.Marks, at)
	}
	return 0
}

// decode turns elements of packets back.
func (p *operation) decode(dst, src []byte, exponent int8, at int) {
	switch {
	case p.block:
		reduce.DecodeBlock(dst, src, exponent)
	case p.Compressed:
		reduce.Widen(p.Element, dst, src)
	default:
		p.Fixed.Decode(dst, src, p.Marks, at)
	}
}

// full returns the bytes of a full chunk's payload.
func (p *operation) full() int { return p.perItem * p.width }

// end returns the number after p's last chunk.
func (p *operation) end() uint32 { return p.first + p.chunks }

// stamp makes the headers of p's contributions and results in the present
// epoch.
func (s *Session) stamp(p *operation) {
	if p.stamped == s.link.Epoch {
		return
	}
	h := s.header(wire.Contribution, 0)
	h.Signature = p.sig
	p.up = h.Stamp()
	p.down = p.up.Of(wire.Result)
	p.stamped = s.link.Epoch
}
