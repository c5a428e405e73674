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
	// the same slice, but not overlap otherwise. Of Block32, they are vectors of
	// Float32: the session turns each chunk as it goes and comes.
	In, Out []byte

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
	if o.Parts != nil {
		return o.validateParts(s.ElementSize())
	}
	bytes := o.Elements * s.ElementSize()
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

// Chunk returns the elements that a full chunk carries of o's vector, and the
// bytes of an element; nothing if o has no vector.
func (o *Operation) Chunk(chunkBytes int) (elements, width int) {
	width = reduce.ElementSize(o.Function, o.Element)
	if width == 0 {
		return 0, 0
	}
	return min(chunkBytes/width, math.MaxUint16), width
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
	width   int // bytes of an element
	missing uint32
	offload uint32
	begun   uint32 // epoch in which the first chunk was sent

	at, part    int // of the next chunk: its first element, and in Parts.Ends the first end behind it
	inAt, outAt int // first bytes of the vector that In and Out have

	source, sink  bool // this member is, without Parts
	copies, block bool // the collective copies; the elements are in block floating point

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
func (p *operation) begin(o Operation, serial uint16, first uint32, c *Config) {
	*p = operation{
		Operation: o, first: first, chunks: 1,
		source: o.Source(c.Rank), sink: o.Sink(c.Rank),
		copies: o.Collective.Copies(), block: o.Element == reduce.Block32,
	}
	p.sig = wire.Signature{
		Collective: o.Collective, Function: o.Function, Element: o.Element,
		Root: o.Root, Operation: serial, Elements: uint32(o.Elements),
	}
	if o.Whole.IsSet {
		p.sig.Operation, p.sig.Elements = o.Whole.Serial, uint32(o.Whole.Elements)
	}
	if o.Parts != nil {
		p.sig.Root, p.sig.Elements = o.Parts.Mark, uint32(o.Parts.Said)
	}
	p.perItem, p.width = o.Chunk(c.ChunkBytes)
	if p.width > 0 && o.Elements > 0 {
		p.divide()
	}
	p.missing = p.chunks
}

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
	h.Type = wire.Result
	p.down = h.Stamp()
	p.stamped = s.link.Epoch
}
