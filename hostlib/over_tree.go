package hostlib

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// OnTree has operations run over the communicator's tree, in switches or over hosts, wherever it
// can carry them: docs/collectives.md says which. Without it they do where that is the fastest way by
// the cost model. Stripes, Roots and BlockFloat keep allreduce, reduce, broadcast and barrier on trees,
// too.
func OnTree() GroupOption { return func(t *groupOptions) { t.onTree = true } }

// overTree returns how the communicator's tree is to carry a call, and why; nil: hosts do, and why if
// somebody may wonder. All members decide the same way, by what they call, their options and their
// policy.
func (p *pieced) overTree() (t *schedule.Tree, chosen choice, why string) {
	c := p.c
	if !c.mayCarryPieces() {
		return nil, asked, ""
	}
	if t, why = p.fits(); c.options.onTree {
		return t, asked, why
	}
	switch policy, of := c.policy(), p.Collective.Family(); {
	case t == nil && policy.switches:
		return nil, asked, why
	case t == nil:
	case policy.isGuess(of):
		if gains, why := t.Gains(); !gains {
			return nil, asked, why
		}
		return t, sparingHosts, ""
	default:
		if _, least := schedule.Choose(&p.Call, policy.costs); policy.beats(least, of, t.Work(policy.kind())) {
			return t, byCosts, ""
		}
	}
	return nil, asked, ""
}

// mayCarryPieces reports whether the communicator's tree carries operations of pieces at all.
func (c *Communicator) mayCarryPieces() bool {
	return len(c.options.algorithms) == 0 && c.multitree == nil && (c.options.onTree || c.processes == nil)
}

// fits returns how the communicator's tree can carry a call; nil: it cannot, and why.
func (p *pieced) fits() (*schedule.Tree, string) {
	if p.kernel != nil && p.function == reduce.NoFunction {
		return nil, "switches have no custom operators"
	}
	t, err := schedule.OverTree(&p.Call, p.c.chunkBytes())
	if err != nil {
		return nil, err.Error()
	}
	if o := &p.c.options; t.Form == schedule.United && !(o.functions.Has(reduce.BOr) && o.types.Has(wordOf(t.Width))) {
		return nil, fmt.Sprintf("the communicator excludes %s of %s, by which pieces are united", reduce.BOr, wordOf(t.Width))
	}
	return &t, ""
}

// wordOf returns the type of elements that are united, of so many bytes each.
func wordOf(width int) reduce.Type {
	if width == 8 {
		return reduce.Uint64
	}
	return reduce.Uint32
}

// overlay is a call of pieces as an operation in parts of the communicator's tree.
type overlay struct {
	*pieced
	t     *schedule.Tree
	o     session.Operation
	parts session.Parts
	temp  *[]byte
	done  []func()
}

// startOverTree returns the request of a call that the communicator's tree carries.
func (p *pieced) startOverTree(t *schedule.Tree, chosen choice) *Request {
	r := newRequest(p.c)
	r.collective, r.chosen = p.Collective, chosen
	if err := p.Validate(); err != nil {
		r.fail(fmt.Errorf("%w: %w", ErrArgument, err))
		return r
	}
	x := &overlay{pieced: p, t: t, o: session.Operation{Collective: wire.Broadcast, Elements: t.Elements}}
	x.parts = session.Parts{Mark: p.Mark(p.element), Said: p.Elements()}
	x.o.Parts = &x.parts
	switch {
	case t.Form == schedule.Reduced:
		x.reduce()
	case t.Form == schedule.United:
		x.unite()
	case p.Collective == schedule.Scatter:
		x.scatter()
	default:
		x.gather()
	}
	after, temp := append(x.done, p.after...), x.temp
	r.after = func() {
		callAll(after)
		giveBack(temp)
	}
	if p.c.options.blocks(&x.o) {
		x.o.Element, r.coding.blockFloat = reduce.Block32, true
	}
	if err := x.o.Validate(session.Config{Rank: uint32(p.c.rank), Members: len(p.c.members)}); err != nil {
		r.fail(fmt.Errorf("%w: %w", ErrArgument, err))
		return r
	}
	p.c.submit(r, &x.o, func(serial uint16) uint64 { return p.Tag(serial, p.code, p.element) })
	return r
}

// all and own return the elements of the vector, and those of the member's own piece.
func (x *overlay) all() session.Range { return session.Range{To: x.t.Elements} }

func (x *overlay) own() session.Range { return x.of(x.Rank) }

func (x *overlay) of(rank int) (r session.Range) {
	r.From, r.To = x.t.Piece(rank)
	return r
}

// in returns a range of a vector.
func (x *overlay) at(vector []byte, r session.Range) []byte {
	return vector[r.From*x.t.Width : r.To*x.t.Width]
}

// vector returns temporary memory for the whole vector, of zeros.
func (x *overlay) vector() []byte {
	x.temp = tempOf(x.t.Elements * x.t.Width)
	if x.temp == nil {
		return nil
	}
	v := (*x.temp)[:x.t.Elements*x.t.Width]
	clear(v)
	return v
}

// isWhole reports whether the pieces, one after the other, are the vector.
func (x *overlay) isWhole() bool { return x.Elements()*x.Width == x.t.Elements*x.t.Width }

// piece returns the memory of a rank's piece in a caller's buffer.
func (x *overlay) piece(buffer [][]byte, rank int) []byte {
	if x.Collective.HasCounts() {
		return buffer[rank]
	}
	size := x.Width * x.Count
	return buffer[0][rank*size : (rank+1)*size]
}

// copyElement is the type that packets name for elements that are only copied.
func (x *overlay) copyElement() reduce.Type {
	if t := reduce.Type(x.element); t.Valid() {
		return t
	}
	return reduce.Float16 // two bytes
}

// reduce lays out a reduce-scatter.
func (x *overlay) reduce() {
	x.o.Collective, x.o.Function, x.o.Element = wire.Reduce, x.function, reduce.Type(x.element)
	x.parts.Holds, x.parts.Wants = x.all(), x.own()
	if x.o.In = x.pieced.in[0]; x.InPlace {
		x.o.Out = x.at(x.o.In, x.own())
	} else {
		x.o.Out = x.out[0]
	}
}

// unite lays out a vector in which the member's own pieces are, and zeros elsewhere.
func (x *overlay) unite() {
	v := x.vector()
	x.o.Collective, x.o.Function, x.o.Element = wire.Reduce, reduce.BOr, wordOf(x.t.Width)
	x.o.In, x.parts.Holds = v, x.all()
	size := x.Width * x.Count
	if x.Collective == schedule.Alltoall {
		from := x.pieced.in
		if x.InPlace {
			from = x.out
		}
		for rank := range x.Size {
			copy(x.at(v, x.of(rank))[x.Rank*size:], x.piece(from, rank))
		}
		row := x.at(v, x.own())
		x.o.Out, x.parts.Wants = row, x.own()
		x.done = append(x.done, func() { copy(x.out[0], row) })
		return
	}
	if x.Collective == schedule.Scatter {
		return // of nothing
	}
	before := x.Rank * size
	for rank := range x.Rank {
		if x.Collective.HasCounts() {
			before += x.Width * x.Counts[rank]
		}
	}
	copy(v[min(before, len(v)):], x.pieced.in[0])
	if x.Collective == schedule.Gather && x.Rank != x.Root {
		return
	}
	x.o.Out, x.parts.Wants = v, x.all()
	x.done = append(x.done, func() {
		for rank := range x.Size {
			v = v[copy(x.piece(x.out, rank), v):]
		}
	})
}

// scatter lays out the vector of the root, which it alone contributes.
func (x *overlay) scatter() {
	x.o.Element, x.parts.Skip = x.copyElement(), x.of(x.Root)
	if x.Rank != x.Root {
		x.parts.Wants, x.o.Out = x.own(), x.out[0]
		if size := (x.own().To - x.own().From) * x.t.Width; size != len(x.o.Out) {
			x.temp = tempOf(size)
			x.o.Out = (*x.temp)[:size]
			x.done = append(x.done, func() { copy(x.out[0], x.o.Out) })
		}
		return
	}
	x.parts.Holds, x.o.In = x.all(), x.pieced.in[0]
	if !x.InPlace {
		copy(x.out[0], x.piece(x.pieced.in, x.Root))
	}
	if !x.isWhole() {
		x.o.In = x.vector()
		for rank := range x.Size {
			copy(x.at(x.o.In, x.of(rank)), x.piece(x.pieced.in, rank))
		}
	}
}

// gather lays out the vector of all pieces, each of which its member contributes, for one member or
// all.
func (x *overlay) gather() {
	x.o.Element, x.parts.Each, x.parts.Ends = x.copyElement(), x.t.Each, x.t.Ends
	x.parts.Holds, x.o.In = x.own(), x.pieced.in[0]
	if x.Collective == schedule.Gather {
		x.parts.Skip = x.of(x.Root)
	}
	isReceiver := x.Collective != schedule.Gather || x.Rank == x.Root
	if isReceiver {
		x.receive()
	}
	if size := (x.own().To - x.own().From) * x.t.Width; size != len(x.o.In) {
		padded := make([]byte, size)
		copy(padded, x.o.In)
		x.o.In = padded
	}
}

// receive makes the vector be the caller's buffer, or be copied to it when it is there. The
// member's own piece does not come from the tree.
func (x *overlay) receive() {
	if !x.InPlace {
		copy(x.piece(x.out, x.Rank), x.o.In)
	}
	x.parts.Wants = x.all()
	if len(x.out) == 1 && x.isWhole() {
		x.o.Out = x.out[0]
		return
	}
	v := x.vector()
	x.o.Out = v
	x.done = append(x.done, func() {
		for rank := range x.Size {
			if rank != x.Rank {
				copy(x.piece(x.out, rank), x.at(v, x.of(rank)))
			}
		}
	})
}
