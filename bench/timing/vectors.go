package timing

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// period is the elements after which a vector repeats itself: a prime above
// what is ever in flight in chunks, so that no chunk looks like its neighbours.
const period = 4093

// task is one member's part of an operation that is repeated.
type task interface {
	// prepare makes the vectors ready for an operation with this number: they
	// differ from those of the last, and nothing of its result is left.
	prepare(number int)
	// run runs the operation.
	run(ctx context.Context) (hostlib.Outcome, error)
	// right reports whether the result is what it should be.
	right() bool
}

// place is a member's place in its group.
type place struct {
	comm        *hostlib.Communicator
	rank, ranks int
}

// newTask returns the part of a member in operations on vectors of so many
// bytes. The root of rooted ones is rank 0.
func newTask(m place, cfg Config, size int) (task, error) {
	if cfg.Collective == Form {
		if cfg.Forming == nil {
			return nil, fmt.Errorf("%w: %s, which takes hosts of their own", ErrConfig, Form)
		}
		return &forming{cfg: cfg}, nil
	}
	if slices.Contains(ofPieces, cfg.Collective) {
		return newPieces(m, cfg.Collective, size), nil
	}
	switch cfg.elements() {
	case reduce.Int32:
		return newVectors(m, cfg, size, func(x int) int32 { return int32(x) })
	case reduce.Int64:
		return newVectors(m, cfg, size, func(x int) int64 { return int64(x) })
	case reduce.Uint32:
		return newVectors(m, cfg, size, func(x int) uint32 { return uint32(x) })
	case reduce.Uint64:
		return newVectors(m, cfg, size, func(x int) uint64 { return uint64(x) })
	case reduce.Float32:
		return newVectors(m, cfg, size, func(x int) float32 { return float32(x) })
	case reduce.Float64:
		return newVectors(m, cfg, size, func(x int) float64 { return float64(x) })
	case reduce.Float16:
		return newVectors(m, cfg, size, func(x int) reduce.F16 { return reduce.F16From(float32(x)) })
	default:
		return newVectors(m, cfg, size, func(x int) reduce.BF16 { return reduce.BF16From(float32(x)) })
	}
}

// vectors is a task on elements of one type. Vectors are repeated patterns; two
// periods of a pattern stand one after the other, so that any rotation of one
// period is a slice.
type vectors[T reduce.Element] struct {
	place
	cfg           Config
	pattern, want []T // this member's, and that of the result
	shift         int // of the present operation
	in, out       []T
}

func newVectors[T reduce.Element](m place, cfg Config, size int, of func(int) T) (task, error) {
	v := &vectors[T]{place: m, cfg: cfg}
	n := size / cfg.Type.Size()
	v.in, v.out = make([]T, n), make([]T, n)
	kernel, err := reduce.KernelOf(cfg.Function, cfg.elements())
	if err != nil {
		return nil, err
	}
	pattern := draw(cfg, m.rank, of)
	v.pattern = slices.Concat(pattern, pattern)
	want := make([]T, period)
	if cfg.Collective == Broadcast {
		want = draw(cfg, 0, of)
	} else {
		reduce.Get(want, reduction(cfg, m.ranks, of, kernel))
	}
	v.want = slices.Concat(want, want)
	return v, nil
}

// reduced is the last result that was worked out. It is that of all members, so
// that a process with a thousand of them works it out once.
var reduced struct {
	sync.Mutex
	of struct {
		function reduce.Function
		elements reduce.Type
		seed     uint64
		ranks    int
	}
	result []byte
}

// reduction returns one period of the result of all members' vectors.
func reduction[T reduce.Element](cfg Config, ranks int, of func(int) T, kernel reduce.Kernel) []byte {
	k := &reduced
	k.Lock()
	defer k.Unlock()
	key := k.of
	key.function, key.elements, key.seed, key.ranks = cfg.Function, cfg.elements(), cfg.Seed, ranks
	if k.result != nil && k.of == key {
		return k.result
	}
	all, next := make([]byte, period*cfg.Type.Size()), make([]byte, period*cfg.Type.Size())
	for rank := range ranks {
		reduce.Put(next, draw(cfg, rank, of))
		if rank == 0 {
			kernel(all, [][]byte{next})
		} else {
			kernel(all, [][]byte{all, next})
		}
	}
	k.of, k.result = key, all
	return all
}

// draw draws one period of a member's vector: small whole numbers of which
// every type holds every partial result exactly, so that all trees give the
// same bits. The sums of block floating point are exact, too: in any part of the
// vectors, all that is not zero is of one magnitude.
func draw[T reduce.Element](cfg Config, rank int, of func(int) T) []T {
	r := rand.New(rand.NewPCG(cfg.Seed, uint64(rank)))
	pattern := make([]T, period)
	for i := range pattern {
		switch cfg.Function {
		case reduce.Sum:
			pattern[i] = of(r.IntN(3) - 1)
		case reduce.Product:
			pattern[i] = of(2*r.IntN(2) - 1)
		default:
			pattern[i] = of(r.IntN(4) * r.IntN(64))
		}
	}
	return pattern
}

func (v *vectors[T]) prepare(number int) {
	v.shift = number * 31 % period
	for at := 0; at < len(v.in); at += period {
		copy(v.in[at:], v.pattern[v.shift:v.shift+period])
	}
	clear(v.out)
	if v.cfg.Collective == Broadcast && v.rank != 0 {
		clear(v.in)
	}
}

func (v *vectors[T]) run(ctx context.Context) (hostlib.Outcome, error) {
	switch v.cfg.Collective {
	case Allreduce:
		return hostlib.Allreduce(ctx, v.comm, v.cfg.Function, v.in, v.out)
	case Reduce:
		return hostlib.Reduce(ctx, v.comm, v.cfg.Function, 0, v.in, v.out)
	case Broadcast:
		return hostlib.Broadcast(ctx, v.comm, 0, v.in)
	default:
		return hostlib.Barrier(ctx, v.comm)
	}
}

func (v *vectors[T]) right() bool {
	result := v.out
	switch {
	case v.cfg.Collective == Barrier || v.cfg.Collective == Reduce && v.rank != 0:
		return true
	case v.cfg.Collective == Broadcast:
		result = v.in
	}
	for at := 0; at < len(result); at += period {
		part := result[at:min(at+period, len(result))]
		if !bytes.Equal(reduce.Bytes(part), reduce.Bytes(v.want[v.shift:v.shift+len(part)])) {
			return false
		}
	}
	return true
}
