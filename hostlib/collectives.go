package hostlib

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// Allreduce reduces the members' vectors in, element by element, and gives the
// result to every member in out. All vectors have the same length; out may be
// in itself, but must not overlap it otherwise. What out holds after an error
// is undefined.
//
// When ctx ends before the operation does, this caller alone stops waiting: the error is an
// *UnfinishedError, and the operation goes on, with its buffers. That holds for every blocking
// operation. Communicator.Abort ends operations for all.
func Allreduce[T reduce.Element](ctx context.Context, c *Communicator, f Operator, in, out []T) (Outcome, error) {
	return queueAllreduce(c, f, plain(in), plain(out)).finish(ctx)
}

// StartAllreduce is Allreduce without waiting.
func StartAllreduce[T reduce.Element](c *Communicator, f Operator, in, out []T) *Request {
	return queueAllreduce(c, f, plain(in), plain(out)).begin()
}

func queueAllreduce(c *Communicator, f Operator, in, out vector) *Request {
	if r := c.checkForm(f, &in); r != nil {
		return r
	}
	if in.elements != out.elements {
		return c.refuse("allreduce of %d elements into %d", in.elements, out.elements)
	}
	return start(c, wire.Allreduce, f, 0, in, out)
}

// AllreduceLocated is Allreduce for MinLoc and MaxLoc.
func AllreduceLocated[T reduce.Element](ctx context.Context, c *Communicator, f reduce.Function, in, out []reduce.Located[T]) (Outcome, error) {
	return queueAllreduce(c, f, located(in), located(out)).finish(ctx)
}

// StartAllreduceLocated is AllreduceLocated without waiting.
func StartAllreduceLocated[T reduce.Element](c *Communicator, f reduce.Function, in, out []reduce.Located[T]) *Request {
	return queueAllreduce(c, f, located(in), located(out)).begin()
}

// Reduce reduces the members' vectors in, element by element, and gives the
// result to the member root alone, in out, which the others may leave nil.
// out may be in itself.
func Reduce[T reduce.Element](ctx context.Context, c *Communicator, f Operator, root int, in, out []T) (Outcome, error) {
	return queueReduce(c, f, root, plain(in), plain(out)).finish(ctx)
}

// StartReduce is Reduce without waiting.
func StartReduce[T reduce.Element](c *Communicator, f Operator, root int, in, out []T) *Request {
	return queueReduce(c, f, root, plain(in), plain(out)).begin()
}

// ReduceLocated is Reduce for MinLoc and MaxLoc.
func ReduceLocated[T reduce.Element](ctx context.Context, c *Communicator, f reduce.Function, root int, in, out []reduce.Located[T]) (Outcome, error) {
	return queueReduce(c, f, root, located(in), located(out)).finish(ctx)
}

// StartReduceLocated is ReduceLocated without waiting.
func StartReduceLocated[T reduce.Element](c *Communicator, f reduce.Function, root int, in, out []reduce.Located[T]) *Request {
	return queueReduce(c, f, root, located(in), located(out)).begin()
}

func queueReduce(c *Communicator, f Operator, root int, in, out vector) *Request {
	if r := c.checkForm(f, &in); r != nil {
		return r
	}
	if r := c.checkRoot(root); r != nil {
		return r
	}
	if c.rank != root {
		return start(c, wire.Reduce, f, root, in, vector{})
	}
	if in.elements != out.elements {
		return c.refuse("reduce of %d elements into %d", in.elements, out.elements)
	}
	return start(c, wire.Reduce, f, root, in, out)
}

// Broadcast copies the vector v of the member root into v at every other.
func Broadcast[T reduce.Element](ctx context.Context, c *Communicator, root int, v []T) (Outcome, error) {
	return queueBroadcast(c, root, v).finish(ctx)
}

// StartBroadcast is Broadcast without waiting.
func StartBroadcast[T reduce.Element](c *Communicator, root int, v []T) *Request {
	return queueBroadcast(c, root, v).begin()
}

func queueBroadcast[T reduce.Element](c *Communicator, root int, v []T) *Request {
	if r := c.checkRoot(root); r != nil {
		return r
	}
	if c.rank == root {
		return start(c, wire.Broadcast, nil, root, plain(v), vector{})
	}
	return start(c, wire.Broadcast, nil, root, vector{}, plain(v))
}

// Barrier returns when every member has called it.
func Barrier(ctx context.Context, c *Communicator) (Outcome, error) {
	return queueBarrier(c).finish(ctx)
}

// StartBarrier is Barrier without waiting.
func StartBarrier(c *Communicator) *Request {
	return queueBarrier(c).begin()
}

func queueBarrier(c *Communicator) *Request {
	return start(c, wire.Barrier, nil, 0, vector{}, vector{})
}

// refuse returns a request that failed before it began. It concerns this
// member alone: the communicator goes on.
func (c *Communicator) refuse(format string, args ...any) *Request {
	r := newRequest(c)
	r.fail(fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...)))
	return r
}

func (c *Communicator) checkRoot(root int) *Request {
	if root < 0 || root >= len(c.members) {
		return c.refuse("root %d in a group of %d", root, len(c.members))
	}
	return nil
}

// checkForm refuses an operator of other elements than a vector has: with locations, or without.
func (c *Communicator) checkForm(f Operator, v *vector) *Request {
	switch {
	case f == nil:
		return c.refuse("there is no operator")
	case f.Located() && !v.isLocated:
		return c.refuse("%s is a function of values with locations: use AllreduceLocated or ReduceLocated", f)
	case v.isLocated && !f.Located():
		return c.refuse("%s is not a function of values with locations", f)
	}
	return nil
}

// vector is a caller's slice as elements of the wire; its zero value is none.
type vector struct {
	element        reduce.Type
	isLocated      bool
	elements, size int    // bytes
	memory         []byte // the slice's own, if that has the order of the wire; otherwise there are
	put            func(dst []byte)
	get            func(src []byte)
}

func plain[T reduce.Element](v []T) vector {
	e := reduce.TypeOf[T]()
	p := vector{element: e, elements: len(v), size: len(v) * e.Size()}
	if reduce.LittleEndian() {
		p.memory = reduce.Bytes(v)
	} else {
		p.put, p.get = func(dst []byte) { reduce.Put(dst, v) }, func(src []byte) { reduce.Get(v, src) }
	}
	return p
}

func located[T reduce.Element](v []reduce.Located[T]) vector {
	return vector{
		element: reduce.TypeOf[T](), isLocated: true, elements: len(v), size: len(v) * reduce.LocatedSize,
		put: func(dst []byte) { reduce.PutLocated(dst, v) }, get: func(src []byte) { reduce.GetLocated(v, src) },
	}
}

func (v *vector) isNone() bool { return v.element == 0 }

// overlap reports whether two vectors share memory without being the same one.
func overlap(in, out *vector) bool {
	a, b := in.memory, out.memory
	if len(a) == 0 || len(b) == 0 {
		return false // they are empty, or copied
	}
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x != y && x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

// start begins a collective on the caller's vectors, of which the member may not have both.
func start(c *Communicator, of wire.Collective, f Operator, root int, in, out vector) *Request {
	if overlap(&in, &out) {
		return c.refuse("in and out overlap, and are not the same vector")
	}
	function, isFunction := f.(reduce.Function)
	var why choice
	if f == nil || isFunction {
		var a schedule.Algorithm // of what cannot be, the loop says why
		k := callOf(c, of, function, root, &in, &out)
		if k.Width > 0 || of == wire.Barrier {
			fixed, _ := c.fixed(function, in.element)
			a, why = c.algorithm(&k, c.mayTree(function, &in), c.agreement(fixed, k.Count))
		}
		if a != schedule.Auto {
			return startByMessages(c, of, f, root, &in, &out, a, why)
		}
	} else {
		return startByMessages(c, of, f, root, &in, &out, schedule.Auto, byCosts)
	}
	o := session.Operation{Collective: of, Function: function, Root: uint32(root)}
	for _, v := range [...]*vector{&in, &out} {
		if !v.isNone() {
			o.Elements, o.Element = v.elements, v.element
		}
	}
	o.In = in.lend()
	if o.Out = out.memory; out.get == nil {
		return c.start(o, nil, why)
	}
	result, get := make([]byte, out.size), out.get
	o.Out = result
	return c.start(o, func() { get(result) }, why)
}

// mayTree reports whether the communicator's tree can carry an allreduce, a reduce, a broadcast or a
// barrier: not where processes of a host would add floating-point numbers that are to be Reproducible.
func (c *Communicator) mayTree(function reduce.Function, in *vector) bool {
	return c.processes == nil || !c.options.sumsFixed(function, in.element)
}

// lend returns the vector in the order of the wire: its memory, or a copy.
func (v *vector) lend() []byte {
	if v.put == nil {
		return v.memory
	}
	b := alignedMemory(v.size)
	v.put(b)
	return b
}

// callOf returns a collective as algorithms of hosts know it.
func callOf(c *Communicator, of wire.Collective, function reduce.Function, root int, in, out *vector) schedule.Call {
	k := schedule.Call{Collective: schedule.Collective(of), Rank: c.rank, Size: len(c.members), Root: root, Segment: schedule.SegmentBytes, Order: c.arranged}
	element := reduce.NoType
	for _, v := range [...]*vector{in, out} {
		if !v.isNone() {
			k.Count, element = v.elements, v.element
		}
	}
	if function == reduce.NoFunction || reduce.Defined(function, element) {
		k.Width = reduce.ElementSize(function, element)
	}
	if f, is := c.fixed(function, element); is {
		k.Width = f.Word().Size()
	}
	return k
}

// startByMessages begins a collective by an algorithm of hosts; Auto: of an operator that is no
// function, by the best.
func startByMessages(c *Communicator, of wire.Collective, f Operator, root int, in, out *vector, a schedule.Algorithm, why choice) *Request {
	p := &pieced{c: c, algorithm: a, chosen: why}
	p.element = uint8(max(in.element, out.element))
	if f != nil {
		if p.operation, p.err = operationOf(f, reduce.Type(p.element)); p.err != nil {
			return p.begin()
		}
	}
	p.Call = callOf(c, of, p.function, root, in, out)
	p.Ordered = p.ordered
	p.in, p.out = [][]byte{in.lend()}, [][]byte{out.memory}
	p.InPlace = sameMemory(in.memory, out.memory)
	if out.get != nil {
		result, get := alignedMemory(out.size), out.get
		p.out[0], p.after = result, append(p.after, func() { get(result) })
	}
	return p.begin()
}
