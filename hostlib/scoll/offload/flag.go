package offload

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/reduce"
)

// ErrFunction reports that a function is not one that can be offloaded.
var ErrFunction = errors.New("offload: not a function for replies in the switches")

// flag is the element behind a vector's own that says whether a member has
// failed: values of which one survives the reduction if anyone gives it.
type flag[T reduce.Element] struct{ fine, failed T }

// flagOf returns the flag of a function.
func flagOf[T reduce.Element](f reduce.Function) (flag[T], error) {
	t := reduce.TypeOf[T]()
	if !reduce.Defined(f, t) {
		return flag[T]{}, fmt.Errorf("%w: %v of %v: %w", ErrFunction, f, t, reduce.ErrUndefined)
	}
	zero, one, all := *new(T), one[T](), ones[T]()
	switch f {
	case reduce.Sum, reduce.Max, reduce.BOr, reduce.LOr:
		return flag[T]{zero, one}, nil
	case reduce.Product, reduce.Min, reduce.LAnd:
		return flag[T]{one, zero}, nil
	case reduce.BAnd:
		return flag[T]{all, zero}, nil
	default:
		return flag[T]{}, fmt.Errorf("%w: %v", ErrFunction, f)
	}
}

// one returns 1.
func one[T reduce.Element]() T {
	var x T
	switch p := any(&x).(type) {
	case *reduce.F16:
		*p = reduce.F16From(1)
	case *reduce.BF16:
		*p = reduce.BF16From(1)
	case *int32:
		*p = 1
	case *int64:
		*p = 1
	case *uint32:
		*p = 1
	case *uint64:
		*p = 1
	case *float32:
		*p = 1
	case *float64:
		*p = 1
	}
	return x
}

// ones returns the integer of all ones; of others it does not matter.
func ones[T reduce.Element]() T {
	var x [1]T
	for i := range reduce.Bytes(x[:]) {
		reduce.Bytes(x[:])[i] = 0xff
	}
	return x[0]
}
