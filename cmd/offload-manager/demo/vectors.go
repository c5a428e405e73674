package demo

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// vectors are the inputs and outputs of all members of a group.
type vectors struct {
	start  func(c *hostlib.Communicator, rank int) *hostlib.Request // begins an allreduce of one rank
	forget func()                                                   // overwrites all outputs, so that none is taken for a later result
	inputs [][]byte                                                 // by rank, as they travel
	output func(rank int) []byte                                    // likewise
}

// newVectors draws the inputs of all members from a seed.
func newVectors(c Config, members int) (*vectors, error) {
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
func draw[T reduce.Element](c Config, members int, one func(*rand.Rand) T) *vectors {
	if c.Function.Located() {
		return fill(c, members, reduce.Located[T]{Location: -1}, encodedLocated[T],
			func(r *rand.Rand, rank int) reduce.Located[T] {
				return reduce.Located[T]{Value: one(r), Location: int64(rank)}
			},
			func(comm *hostlib.Communicator, in, out []reduce.Located[T]) *hostlib.Request {
				return hostlib.StartAllreduceLocated(comm, c.Function, in, out)
			})
	}
	var none [1]T
	reduce.Get(none[:], bytes.Repeat([]byte{0xa5}, reduce.TypeOf[T]().Size()))
	return fill(c, members, none[0], encoded[T],
		func(r *rand.Rand, _ int) T { return one(r) },
		func(comm *hostlib.Communicator, in, out []T) *hostlib.Request {
			return hostlib.StartAllreduce(comm, c.Function, in, out)
		})
}

// fill is draw for elements of any form; none is what an output has of no result.
func fill[E any](c Config, members int, none E, encode func([]E) []byte, one func(*rand.Rand, int) E, start func(c *hostlib.Communicator, in, out []E) *hostlib.Request) *vectors {
	n := c.Bytes / reduce.ElementSize(c.Function, c.Type)
	in, out := make([][]E, members), make([][]E, members)
	v := &vectors{
		start: func(c *hostlib.Communicator, rank int) *hostlib.Request { return start(c, in[rank], out[rank]) },
		forget: func() {
			for _, vector := range out {
				for i := range vector {
					vector[i] = none
				}
			}
		},
		output: func(rank int) []byte { return encode(out[rank]) },
	}
	for rank := range members {
		r := rand.New(rand.NewPCG(c.Seed, uint64(rank)))
		in[rank], out[rank] = make([]E, n), make([]E, n)
		for i := range n {
			in[rank][i] = one(r, rank)
		}
		v.inputs = append(v.inputs, encode(in[rank]))
	}
	return v
}

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

func encodedLocated[T reduce.Element](v []reduce.Located[T]) []byte {
	b := make([]byte, len(v)*reduce.LocatedSize)
	reduce.PutLocated(b, v)
	return b
}
