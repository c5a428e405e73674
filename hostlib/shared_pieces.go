package hostlib

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/node"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// sharedPieces is a call of pieces of processes that share memory. Its vector has the pieces of
// each host's processes one after the other, so that each host has one part of it.
type sharedPieces struct {
	*hostCall
	at, size, before []int // by rank, in bytes: its piece in the vector, and what lower ranks have
	ends             []int // by host: elements of the vector up to the end of its part
	isUnited         bool  // hosts reduce by bitwise or, with zeros in place of others' parts
}

// carries reports whether processes do a call of pieces in shared memory, and hosts as one each.
func (p *processes) carries(k *pieced) bool {
	switch k.Collective {
	case schedule.Gather, schedule.Scatter, schedule.Allgather, schedule.Allgatherv, schedule.ReduceScatter, schedule.ReduceScatterv:
		return !p.base.options.wantsMultitree() && (k.kernel == nil || k.function != reduce.NoFunction)
	}
	return false
}

// startPieces queues a call of pieces, whose request is to be begun or awaited.
func (p *processes) startPieces(k *pieced) *Request {
	r := newRequest(p.base)
	r.collective = k.Collective
	if err := k.Validate(); err != nil {
		r.fail(fmt.Errorf("%w: %w", ErrArgument, err))
		return r
	}
	s := &sharedPieces{hostCall: &k.hostCall}
	width := max(k.Width, 4)
	o := session.Operation{Collective: wire.Broadcast, Root: uint32(k.Root), Element: wordOf(width)}
	if k.Collective.Reduces() {
		o.Collective, o.Function, o.Element, width = wire.Reduce, k.function, reduce.Type(k.element), k.Width
	}
	o.Elements = s.layOut(p, width)
	isShort := schedule.IsShort(o.Elements*width, len(p.hosts), p.base.chunkBytes())
	options := &p.base.options
	s.isUnited = isShort && k.Collective != schedule.Scatter && !k.Collective.Reduces() && options.functions.Has(reduce.BOr) && options.types.Has(o.Element)
	if options.blocks(&o) {
		o.Element, r.coding.blockFloat = reduce.Block32, true
	}
	if len(k.after) > 0 {
		r.after = func() { callAll(k.after) }
	}
	x := &sharedOperation{Operation: o, request: r, pieces: s}
	p.queue(x, func(serial uint16) uint64 { return k.Tag(serial, k.code, k.element) })
	return r
}

// layOut says where pieces lie in a vector of elements of so many bytes, and returns its elements.
func (s *sharedPieces) layOut(p *processes, width int) int {
	s.at, s.size, s.before = make([]int, s.Size), make([]int, s.Size), make([]int, s.Size)
	before := 0
	for rank := range s.Size {
		n := s.Count
		if s.Counts != nil {
			n = s.Counts[rank]
		}
		s.size[rank], s.before[rank] = n*s.Width, before
		before += s.size[rank]
	}
	at := 0
	for _, ranks := range p.hosts {
		for _, rank := range ranks {
			s.at[rank] = at
			at += s.size[rank]
		}
		at = (at + width - 1) / width * width
		s.ends = append(s.ends, at/width)
	}
	return at / width
}

// shape says how a host's processes see a segment.
func (s *sharedPieces) shape(g *node.Segment, isHere bool, root int) {
	switch s.Collective {
	case schedule.Scatter:
		if isHere {
			g.Source = root
		}
		return
	case schedule.Gather:
		if g.Reader = node.Nobody; isHere {
			g.Reader = root
		}
	}
	g.Joins = !s.Collective.Reduces()
}

// piece returns a rank's piece of a caller's buffer that has those of all.
func (s *sharedPieces) piece(buffer [][]byte, rank int) []byte {
	if len(buffer) > 1 {
		return buffer[rank]
	}
	return buffer[0][s.before[rank] : s.before[rank]+s.size[rank]]
}

// overlap returns what a part of the vector, from a byte on, and a rank's piece have in common.
func (s *sharedPieces) overlap(part []byte, from, rank int, piece []byte) (inPart, inPiece []byte) {
	first, end := max(s.at[rank], from), min(s.at[rank]+s.size[rank], from+len(part))
	if first >= end {
		return nil, nil
	}
	return part[first-from : end-from], piece[first-s.at[rank] : end-s.at[rank]]
}

// put copies what this process gives to a part of the vector.
func (s *sharedPieces) put(part []byte, from int) {
	switch s.Collective {
	case schedule.Scatter, schedule.ReduceScatter, schedule.ReduceScatterv:
		for rank := range s.Size {
			to, of := s.overlap(part, from, rank, s.piece(s.in, rank))
			copy(to, of)
		}
		if s.Collective == schedule.Scatter && !s.InPlace {
			s.get(part, from)
		}
	default:
		to, of := s.overlap(part, from, s.Rank, s.in[0])
		copy(to, of)
	}
}

// get copies from a part of the vector what this process gets.
func (s *sharedPieces) get(part []byte, from int) {
	own := func(piece []byte) {
		of, to := s.overlap(part, from, s.Rank, piece)
		copy(to, of)
	}
	switch {
	case s.Collective == schedule.Scatter, s.Collective.Reduces() && !s.InPlace:
		own(s.out[0])
	case s.Collective.Reduces():
		own(s.piece(s.in, s.Rank))
	default:
		for rank := range s.Size {
			of, to := s.overlap(part, from, rank, s.piece(s.out, rank))
			copy(to, of)
		}
	}
}

// cross makes o be the operation between hosts on a part of the vector, from an element on.
func (s *sharedPieces) cross(o *session.Operation, g *node.Segment, part []byte, from, host, rootHost, all int) {
	if len(s.ends) == 1 || len(part) == 0 && !s.isUnited && !s.Collective.Reduces() {
		*o = session.Operation{Collective: wire.Barrier, Whole: session.Whole{IsSet: true, Serial: o.Whole.Serial}}
		return
	}
	of := func(host int) session.Range {
		r := session.Range{To: s.ends[host]}
		if host > 0 {
			r.From = s.ends[host-1]
		}
		return session.Range{From: min(max(r.From-from, 0), g.Elements), To: min(max(r.To-from, 0), g.Elements)}
	}
	in := func(r session.Range) []byte { return part[r.From*g.Width : r.To*g.Width] }
	whole, own := session.Range{To: g.Elements}, of(host)
	parts := &session.Parts{Mark: s.Mark(s.element), Said: all}
	isRooted := s.Collective == schedule.Gather || s.Collective == schedule.Scatter
	if isRooted {
		parts.Skip = of(rootHost)
	}
	switch isHere := host == rootHost; {
	case s.Collective.Reduces():
		parts.Holds, parts.Wants = whole, own
	case s.Collective == schedule.Scatter && isHere:
		parts.Holds = whole
	case s.Collective == schedule.Scatter:
		parts.Wants = own
	default:
		if parts.Holds = own; s.isUnited {
			clear(part[:own.From*g.Width])
			clear(part[own.To*g.Width:])
			o.Collective, o.Function, parts.Holds = wire.Reduce, reduce.BOr, whole
		} else {
			for h := range s.ends {
				parts.Ends = append(parts.Ends, of(h).To)
			}
		}
		if isHere || !isRooted {
			parts.Wants = whole
		}
	}
	if o.Collective == wire.Reduce || parts.Skip == whole {
		parts.Skip = session.Range{}
	}
	o.Root, o.Parts, o.In, o.Out = 0, parts, in(parts.Holds), in(parts.Wants)
}
