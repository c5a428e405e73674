package hostlib

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/reduce"
)

// pieced is a call on slices, before what it is for is known to be right.
type pieced struct {
	hostCall
	c   *Communicator
	err error

	algorithm schedule.Algorithm // Auto: it is not chosen yet
	chosen    choice
}

// newCall begins a call.
func newCall[T Data](c *Communicator, of schedule.Collective, root int) *pieced {
	p := &pieced{c: c}
	p.Call = schedule.Call{Collective: of, Rank: c.rank, Size: len(c.members), Root: root, Width: widthOf[T](), Segment: schedule.SegmentBytes, Order: c.arranged}
	p.element = dataCode[T]()
	if root < 0 || root >= len(c.members) {
		p.refuse("root %d in a group of %d", root, len(c.members))
	}
	return p
}

func widthOf[T Data]() int {
	switch dataCode[T]() {
	case 10, 11:
		return 1
	case 12, 13:
		return 2
	}
	return reduce.Type(dataCode[T]()).Size()
}

func (p *pieced) refuse(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s: %s", ErrArgument, p.Collective, fmt.Sprintf(format, args...))
	}
}

// reads lends slices that are read, and writes those that are written.
func reads[T Data](p *pieced, all ...[]T) {
	p.in = make([][]byte, len(all))
	for i, v := range all {
		p.in[i] = lend(v).bytes
	}
}

func writes[T Data](p *pieced, all ...[]T) {
	p.out = make([][]byte, len(all))
	for i, v := range all {
		l := lend(v)
		p.out[i] = l.bytes
		if l.get != nil {
			p.after = append(p.after, l.get)
		}
	}
}

// isOwnPart finds out whether a vector is the part of another that begins at from: then the
// operation is in place. Otherwise they may not overlap.
func (p *pieced) isOwnPart(part, whole []byte, from int) bool {
	if len(part) > 0 && from+len(part) <= len(whole) && sameMemory(part, whole[from:from+len(part)]) {
		return true
	}
	p.apart(part, whole)
	return false
}

// apart refuses slices that overlap.
func (p *pieced) apart(a, b []byte) {
	if memoryOverlaps(a, b) {
		p.refuse("buffers overlap, and not as in place")
	}
}

// allApart refuses pieces that overlap each other, or another buffer.
func (p *pieced) allApart(pieces [][]byte, others ...[]byte) {
	all := slices.Clone(pieces)
	slices.SortFunc(all, func(a, b []byte) int {
		switch {
		case len(a) == 0 || len(b) == 0:
			return len(a) - len(b)
		case addressOf(a) < addressOf(b):
			return -1
		case addressOf(a) > addressOf(b):
			return 1
		}
		return 0
	})
	for i := range all {
		if i > 0 {
			p.apart(all[i-1], all[i])
		}
		for _, o := range others {
			p.apart(all[i], o)
		}
	}
}

// countsOf returns the elements of pieces, of which there has to be one for each member.
func countsOf[T Data](p *pieced, pieces [][]T) []int {
	if len(pieces) != len(p.c.members) {
		p.refuse("%d pieces for %d members", len(pieces), len(p.c.members))
	}
	counts := make([]int, len(p.c.members))
	for i := range min(len(counts), len(pieces)) {
		counts[i] = len(pieces[i])
	}
	return counts
}

// begin returns the operation's request.
func (p *pieced) begin() *Request {
	if p.err != nil {
		r := newRequest(p.c)
		r.fail(p.err)
		return r
	}
	if err := p.c.options.allow(p.function, p.typeOf()); err != nil {
		r := newRequest(p.c)
		r.fail(err)
		return r
	}
	p.fix()
	if p.algorithm == schedule.Auto && p.fixed.IsSet() {
		p.why = fixedOnHosts
		p.algorithm, p.chosen = p.c.algorithm(&p.Call, false, nil)
	}
	if s := p.c.processes; p.algorithm == schedule.Auto && s != nil && s.carries(p) {
		return s.startPieces(p)
	}
	if p.algorithm == schedule.Auto {
		t, chosen, why := p.overTree()
		if t != nil {
			return p.startOverTree(t, chosen)
		}
		p.why = why
		p.algorithm, p.chosen = p.c.algorithm(&p.Call, false, nil)
	}
	return p.c.startOnHosts(&p.hostCall, p.algorithm, p.chosen)
}

// typeOf returns the type of elements of what is reduced.
func (p *pieced) typeOf() reduce.Type {
	if p.kernel == nil {
		return reduce.NoType
	}
	return reduce.Type(p.element)
}

// reducesBy has the call reduce by an operator.
func reducesBy[T reduce.Element](p *pieced, f Operator) {
	var err error
	if f == nil {
		p.refuse("there is no operator")
	} else if f.Located() {
		p.refuse("%s is a function of values with locations: use AllreduceLocated or ReduceLocated", f)
	} else if p.operation, err = operationOf(f, reduce.TypeOf[T]()); err != nil && p.err == nil {
		p.err = err
	}
	p.Ordered = p.ordered
}
