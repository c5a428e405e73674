package demo

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// vectors are the inputs and outputs of all members of a group.
type vectors interface {
	// start begins an allreduce of one rank.
	start(c *hostlib.Communicator, rank int) *hostlib.Request
	// forget overwrites all outputs, so that none is taken for a later result.
	forget()
	// inputs and output return vectors as they travel.
	inputs() [][]byte
	output(rank int) []byte
}

// newVectors draws the inputs of all members from a seed.
func newVectors(c Config, members int) (vectors, error) {
	switch c.Type {
	case reduce.Int32:
		return draw(c, members, func(r *rand.Rand) int32 { return int32(whole(c.Function, r)) }), nil
	case reduce.Int64:
		return draw(c, members, func(r *rand.Rand) int64 { return int64(whole(c.Function, r)) }), nil
	case reduce.Uint32:
		return draw(c, members, func(r *rand.Rand) uint32 { return uint32(whole(c.Function, r)) }), nil
	case reduce.Uint64:
		return draw(c, members, func(r *rand.Rand) uint64 { return whole(c.Function, r) }), nil
	case reduce.Float32:
		return draw(c, members, func(r *rand.Rand) float32 { return float32(decimal(c.Function, r)) }), nil
	case reduce.Float64:
		return draw(c, members, func(r *rand.Rand) float64 { return decimal(c.Function, r) }), nil
	case reduce.Float16:
		return draw(c, members, func(r *rand.Rand) reduce.F16 { return reduce.F16From(float32(decimal(c.Function, r))) }), nil
	case reduce.BFloat16:
		return draw(c, members, func(r *rand.Rand) reduce.BF16 { return reduce.BF16From(float32(decimal(c.Function, r))) }), nil
	default:
		return nil, fmt.Errorf("%w: no vectors of type %s", ErrConfig, c.Type)
	}
}

// whole draws an integer: for logical functions often 0, for those that look
// for a place one of few, so that there are equal ones, otherwise any.
func whole(f reduce.Function, r *rand.Rand) uint64 {
	switch f {
	case reduce.LAnd, reduce.LOr, reduce.LXor:
		return r.Uint64N(4) / 3 * r.Uint64N(1000)
	case reduce.MinLoc, reduce.MaxLoc:
		return r.Uint64N(8)
	default:
		return r.Uint64()
	}
}

// decimal draws a number: for products one near 1, so that many of them stay in
// the range of every type.
func decimal(f reduce.Function, r *rand.Rand) float64 {
	switch f {
	case reduce.Product:
		return 0.9 + 0.2*r.Float64()
	case reduce.MinLoc, reduce.MaxLoc:
		return float64(r.Uint64N(8)) - 4
	default:
		return 2*r.Float64() - 1
	}
}

// draw draws every member's elements from the seed and its rank.
func draw[T reduce.Element](c Config, members int, one func(*rand.Rand) T) vectors {
	n := c.Bytes / reduce.ElementSize(c.Function, c.Type)
	if !c.Function.Located() {
		p := &plain[T]{f: c.Function}
		p.in, p.out = make([][]T, members), make([][]T, members)
		for rank := range members {
			r := rand.New(rand.NewPCG(c.Seed, uint64(rank)))
			p.in[rank], p.out[rank] = make([]T, n), make([]T, n)
			for i := range n {
				p.in[rank][i] = one(r)
			}
		}
		return p
	}
	l := &located[T]{f: c.Function}
	l.in, l.out = make([][]reduce.Located[T], members), make([][]reduce.Located[T], members)
	for rank := range members {
		r := rand.New(rand.NewPCG(c.Seed, uint64(rank)))
		l.in[rank], l.out[rank] = make([]reduce.Located[T], n), make([]reduce.Located[T], n)
		for i := range n {
			l.in[rank][i] = reduce.Located[T]{Value: one(r), Location: int64(rank)}
		}
	}
	return l
}

type plain[T reduce.Element] struct {
	f       reduce.Function
	in, out [][]T
}

func (p *plain[T]) start(c *hostlib.Communicator, rank int) *hostlib.Request {
	return hostlib.StartAllreduce(c, p.f, p.in[rank], p.out[rank])
}

func (p *plain[T]) forget() {
	for _, out := range p.out {
		reduce.Get(out, bytes.Repeat([]byte{0xa5}, len(out)*reduce.TypeOf[T]().Size()))
	}
}

func (p *plain[T]) inputs() [][]byte { return mapped(p.in, encoded[T]) }

func (p *plain[T]) output(rank int) []byte { return encoded(p.out[rank]) }

// encoded returns a slice as a vector: its own memory, where that has the order
// of the wire.
func encoded[T reduce.Element](v []T) []byte {
	if reduce.LittleEndian() {
		return reduce.Bytes(v)
	}
	b := make([]byte, len(v)*reduce.TypeOf[T]().Size())
	reduce.Put(b, v)
	return b
}

type located[T reduce.Element] struct {
	f       reduce.Function
	in, out [][]reduce.Located[T]
}

func (l *located[T]) start(c *hostlib.Communicator, rank int) *hostlib.Request {
	return hostlib.StartAllreduceLocated(c, l.f, l.in[rank], l.out[rank])
}

func (l *located[T]) forget() {
	for rank := range l.out {
		for i := range l.out[rank] {
			l.out[rank][i] = reduce.Located[T]{Location: -1}
		}
	}
}

func (l *located[T]) inputs() [][]byte { return mapped(l.in, encodedLocated[T]) }

func (l *located[T]) output(rank int) []byte { return encodedLocated(l.out[rank]) }

func encodedLocated[T reduce.Element](v []reduce.Located[T]) []byte {
	b := make([]byte, len(v)*reduce.LocatedSize)
	reduce.PutLocated(b, v)
	return b
}

func mapped[T any](list []T, f func(T) []byte) [][]byte {
	all := make([][]byte, len(list))
	for i := range list {
		all[i] = f(list[i])
	}
	return all
}
