package session

import (
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// Parts makes an operation one in which members have, or get, parts of the vector: each chunk has
// sources and sinks of its own. In a Broadcast exactly one member holds each chunk, which is its
// source. In a Reduce all members hold the whole vector. A member is a sink of the chunks of which
// it wants an element, and is not their source.
//
//	scatter           Broadcast; the root holds all, each wants its own part
//	gather            Broadcast; each holds its own part, the root wants all
//	allgather         Broadcast; each holds its own part, and wants all
//	reduce-scatter    Reduce; each wants its own part
type Parts struct {
	Holds Range // that In has
	Wants Range // that Out takes

	// Each and Ends say where parts end whose elements no chunk has together: after each so many
	// elements, or at these, rising. Skip is what no chunk has.
	Each int
	Ends []int
	Skip Range

	// Mark and Said stand in packets in place of the root and of the elements: what members
	// compare. Said is not less than the elements, and 0 if there are none.
	Mark uint32
	Said int
}

// Range is elements of a vector: from From on, up to but without To.
type Range struct{ From, To int }

func (r Range) isIn(elements int) bool { return r.From >= 0 && r.From <= r.To && r.To <= elements }

func (r Range) size() int { return r.To - r.From }

// validateParts reports what is wrong with an operation with Parts, of elements of that many bytes.
func (o *Operation) validateParts(width int) error {
	p := o.Parts
	copies := o.Collective == wire.Broadcast
	last := 0
	for _, end := range p.Ends {
		if end < last {
			return fmt.Errorf("%w: a part ends at element %d, and the one before it at %d", ErrOperation, end, last)
		}
		last = end
	}
	switch {
	case !copies && o.Collective != wire.Reduce:
		return fmt.Errorf("%w: %s in parts", ErrOperation, o.Collective)
	case o.Aside:
		return fmt.Errorf("%w: without its result, and in parts", ErrOperation)
	case !p.Holds.isIn(o.Elements), !p.Wants.isIn(o.Elements), !p.Skip.isIn(o.Elements),
		p.Ends != nil && last != o.Elements, p.Each < 0, p.Each > 0 && (p.Ends != nil || o.Elements%p.Each != 0):
		return fmt.Errorf("%w: the parts are not those of %d elements", ErrOperation, o.Elements)
	case !copies && p.Holds.size() != o.Elements:
		return fmt.Errorf("%w: %s of %d elements, of which this member has %d", ErrOperation, o.Collective, o.Elements, p.Holds.size())
	case copies && p.Skip.size() == o.Elements:
		return fmt.Errorf("%w: %s of nothing in parts", ErrOperation, o.Collective)
	case p.Mark > wire.MaxRank, p.Said < o.Elements, p.Said > 0 && o.Elements == 0, uint64(p.Said) > math.MaxUint32:
		return fmt.Errorf("%w: mark %d and %d elements for %d", ErrOperation, p.Mark, p.Said, o.Elements)
	case len(o.In) != p.Holds.size()*width || len(o.Out) != p.Wants.size()*width:
		return fmt.Errorf("%w: parts of %d and %d elements need an input of %d bytes and an output of %d, not %d and %d", ErrOperation,
			p.Holds.size(), p.Wants.size(), p.Holds.size()*width, p.Wants.size()*width, len(o.In), len(o.Out))
	}
	return nil
}

// divide counts p's chunks.
func (p *operation) divide() {
	if p.Parts == nil {
		p.chunks = uint32((p.Elements + p.perItem - 1) / p.perItem)
		return
	}
	p.inAt, p.outAt = p.Parts.Holds.From*p.width, p.Parts.Wants.From*p.width
	n := 0
	for p.at < p.Elements {
		from, to := p.segment()
		n += (to - from + p.perItem - 1) / p.perItem
		p.at = to
	}
	p.chunks, p.at, p.part = max(uint32(n), 1), 0, 0
}

// segment returns the elements from the next chunk on that are cut into chunks one after the
// other, by p's parts; none at the end.
func (p *operation) segment() (from, to int) {
	from, to = p.at, p.Elements
	d := p.Parts
	if d.Skip.size() > 0 {
		if from == d.Skip.From {
			from = d.Skip.To
		}
		if from < d.Skip.From {
			to = d.Skip.From
		}
	}
	switch {
	case from == p.Elements:
	case d.Each > 0:
		to = min(to, from-from%d.Each+d.Each)
	case d.Ends != nil:
		for d.Ends[p.part] <= from {
			p.part++
		}
		to = min(to, d.Ends[p.part])
	}
	return from, to
}

// cut makes c, which is p's next one, have its elements, and says what this member is to it.
func (p *operation) cut(c *chunk) {
	from, end := p.at, p.Elements
	if p.Parts != nil {
		from, end = p.segment()
	}
	to := min(from+p.perItem, end)
	p.at = to
	c.elements, c.offset = uint16(to-from), from*p.width
	c.source, c.sink = p.source, p.sink
	if d := p.Parts; d != nil {
		c.source = p.copies && d.Holds.From <= from && to <= d.Holds.To
		c.sink = !c.source && (d.Wants.From < to && from < d.Wants.To)
	}
}

// output returns the part of Out that c's payload has, and where in the payload that begins.
func (p *operation) output(c *chunk) (out []byte, skip int) {
	if p.vector != p.width && len(p.Out) > 0 { // without Parts
		at := c.offset / p.width * p.vector
		return p.Out[at : at+int(c.elements)*p.vector], 0
	}
	from, to := max(c.offset, p.outAt), min(c.offset+c.size(), p.outAt+len(p.Out))
	if from >= to {
		return nil, 0
	}
	return p.Out[from-p.outAt : to-p.outAt], from - c.offset
}
