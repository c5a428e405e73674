package reduce

import (
	"errors"
	"fmt"
	"math"
)

// A Kernel reduces the vectors in to dst: each element of dst becomes
// ((in[0] op in[1]) op in[2]) ... of the elements at its place. At least one
// vector must be in, all have the length of dst, in bytes, and that is a
// multiple of the ElementSize of the kernel's pair; the kernel panics
// otherwise. They may begin at any alignment. dst may be one of the vectors in,
// wholly, but not overlap one otherwise.
//
// A single vector is copied; but also then the result is as the function's
// results are: its NaNs are canonical, its truth values 0 and 1, and the
// padding of its located elements is zero.
type Kernel func(dst []byte, in [][]byte)

// ErrExponents says that a kernel has no exponents, without which Block32 is not
// reduced: SumBlocks takes them.
var ErrExponents = errors.New("its vectors have exponents, and no kernel takes them")

// KernelOf returns the kernel of f on elements of type t. It does not allocate.
// The error wraps ErrUndefined where Defined(f, t) is false, and ErrExponents
// for Block32.
func KernelOf(f Function, t Type) (Kernel, error) {
	switch {
	case !Defined(f, t):
		return nil, fmt.Errorf("kernel of %v on %v: %w", f, t, ErrUndefined)
	case t == Block32:
		return nil, fmt.Errorf("kernel of %v on %v: %w", f, t, ErrExponents)
	}
	return kernels[f][t], nil
}

var kernels = makeKernels(fastest)

func makeKernels(s *instructions) (all [len(defined)][len(typeNames)]Kernel) {
	for f := Sum; f.Valid(); f++ {
		for t := Int32; t.Valid(); t++ {
			if Defined(f, t) && t != Block32 {
				all[f][t] = s.kernel(f, t, makeKernel(f, t))
			}
		}
	}
	return all
}

func makeKernel(f Function, t Type) Kernel {
	if f.Located() {
		return locatedKernel(f, t)
	}
	switch t {
	case Int32:
		return integerKernel[int32](f)
	case Int64:
		return integerKernel[int64](f)
	case Uint32:
		return integerKernel[uint32](f)
	case Uint64:
		return integerKernel[uint64](f)
	case Float32:
		return floatKernel(f, math.Float32frombits(nan32))
	case Float64:
		return floatKernel(f, math.Float64frombits(nan64))
	default:
		return halfKernel(f, t)
	}
}

// check panics unless dst and in are as a Kernel wants them, their elements
// being of size bytes. A length that is wrong must not become a result that is.
func check(dst []byte, in [][]byte, size int) {
	if len(in) == 0 {
		panic("reduce: no vectors to reduce")
	}
	if len(dst)&(size-1) != 0 { // a power of two: a division would take as long as a short vector
		panic(fmt.Sprintf("reduce: a vector of %d bytes for elements of %d", len(dst), size))
	}
	for i, v := range in {
		if len(v) != len(dst) {
			panic(fmt.Sprintf("reduce: vector %d has %d bytes, the result %d", i, len(v), len(dst)))
		}
	}
}
