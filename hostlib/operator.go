package hostlib

import (
	"fmt"
	"unsafe"

	"github.com/tributary-fabric/tributary/reduce"
)

// Operator is what a collective reduces by: a reduce.Function, or what Custom returns.
type Operator interface {
	String() string
	// Located reports whether it reduces pairs of a value and its location.
	Located() bool
}

// Custom returns an operator of the caller's own: combine stores first op second in to, element by
// element; to may be first or second, and all have one length. It must be associative. Where it
// does not commute, vectors are reduced in the order of ranks. It runs on hosts, whatever
// the communicator is on, and in any number of goroutines at once. It fails by a panic, and waits
// for nothing of the communicator, nor for its end, as Abort does. Members
// compare whether there is one, and whether it commutes; the name is for people.
func Custom[T reduce.Element](name string, commutes bool, combine func(to, first, second []T)) Operator {
	return &custom[T]{name, commutes, combine}
}

type custom[T reduce.Element] struct {
	name     string
	commutes bool
	combine  func(to, first, second []T)
}

func (o *custom[T]) String() string { return o.name }
func (o *custom[T]) Located() bool  { return false }

// What members' messages say of an operator that is no reduce.Function.
const (
	customCode  = 15
	orderedCode = 13 // of one that does not commute
)

// kernel stores a op b in to; where b is nil, what the function makes of a alone.
type kernel func(to, a, b []byte)

// operation is what an Operator is to one call.
type operation struct {
	function reduce.Function // NoFunction: another's
	code     uint8
	ordered  bool
	kernel   kernel
}

// operationOf returns what an operator is for elements of a type.
func operationOf(f Operator, t reduce.Type) (operation, error) {
	switch f := f.(type) {
	case reduce.Function:
		k, err := reduce.KernelOf(f, t)
		if err != nil {
			return operation{}, fmt.Errorf("%w: %s on %s: %w", ErrArgument, f, t, err)
		}
		return operation{function: f, code: uint8(f), kernel: func(to, a, b []byte) {
			in := [2][]byte{a, b}
			if b == nil {
				k(to, in[:1])
			} else {
				k(to, in[:])
			}
		}}, nil
	case interface {
		operation(t reduce.Type) (operation, error)
	}:
		return f.operation(t)
	}
	return operation{}, fmt.Errorf("%w: %v is neither a function nor of Custom", ErrArgument, f)
}

func (o *custom[T]) operation(t reduce.Type) (operation, error) {
	if of := reduce.TypeOf[T](); t != of {
		return operation{}, fmt.Errorf("%w: the custom operator %q is of %s, not of %s", ErrArgument, o.name, of, t)
	}
	if o.combine == nil {
		return operation{}, fmt.Errorf("%w: the custom operator %q has no function", ErrArgument, o.name)
	}
	code := uint8(customCode)
	if !o.commutes {
		code = orderedCode
	}
	return operation{code: code, ordered: !o.commutes, kernel: func(to, a, b []byte) {
		if b == nil {
			copy(to, a)
			return
		}
		if reduce.LittleEndian() {
			o.combine(elementsOf[T](to), elementsOf[T](a), elementsOf[T](b))
			return
		}
		n := len(to) / t.Size()
		x, y := make([]T, n), make([]T, n)
		reduce.Get(x, a)
		reduce.Get(y, b)
		o.combine(x, x, y)
		reduce.Put(to, x)
	}}, nil
}

// elementsOf returns a vector's memory as elements. It is aligned: see alignedMemory.
func elementsOf[T reduce.Element](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(*new(T))))
}

// alignedMemory returns memory that elements of any type may lie in.
func alignedMemory(size int) []byte {
	if size == 0 {
		return nil
	}
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}

// Data is the constraint of what collectives that do not reduce move.
type Data interface {
	reduce.Element | int8 | uint8 | int16 | uint16
}

// dataCode is what members' messages say of a type of elements.
func dataCode[T Data]() uint8 {
	switch any(*new(T)).(type) {
	case int32:
		return uint8(reduce.Int32)
	case int64:
		return uint8(reduce.Int64)
	case uint32:
		return uint8(reduce.Uint32)
	case uint64:
		return uint8(reduce.Uint64)
	case float32:
		return uint8(reduce.Float32)
	case float64:
		return uint8(reduce.Float64)
	case reduce.F16:
		return uint8(reduce.Float16)
	case reduce.BF16:
		return uint8(reduce.BFloat16)
	case int8:
		return 10
	case uint8:
		return 11
	case int16:
		return 12
	}
	return 13 // uint16
}

// elementName returns the name of a type of elements by its code.
func elementName(code uint8) string {
	switch code {
	case 0:
		return reduce.NoType.String()
	case 10, 11, 12, 13:
		return [...]string{"int8", "uint8", "int16", "uint16"}[code-10]
	}
	return reduce.Type(code).String()
}

// operatorName returns the name of an operator by its code.
func operatorName(code uint8) string {
	switch code {
	case 0:
		return "none"
	case customCode:
		return "a custom operator"
	case orderedCode:
		return "a custom operator that does not commute"
	case leaveCode:
		return "leaving"
	}
	return reduce.Function(code).String()
}

// lent is a caller's slice as bytes in the order of the wire.
type lent struct {
	bytes []byte
	get   func() // brings what was received into the slice; nil: it is there
}

// lend lends a slice that is read.
func lend[T Data](v []T) lent {
	size := int(unsafe.Sizeof(*new(T)))
	if len(v) == 0 {
		return lent{}
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*size)
	if reduce.LittleEndian() || size == 1 {
		return lent{bytes: b}
	}
	turned := alignedMemory(len(b))
	turn(turned, b, size)
	return lent{bytes: turned, get: func() { turn(b, turned, size) }}
}

// turn copies elements, and reverses the bytes of each.
func turn(to, from []byte, size int) {
	for i := range from {
		to[i] = from[i-i%size+size-1-i%size]
	}
}

// sameMemory reports whether two slices are one.
func sameMemory(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// memoryOverlaps reports whether two slices share memory.
func memoryOverlaps(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
