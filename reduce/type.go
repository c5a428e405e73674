package reduce

import "fmt"

// Type is the type of one element of a vector. Its values are those of the
// wire format (docs/protocol.md) and never change.
type Type uint8

// The element types. NoType stands in operations without elements, such as a
// barrier.
const (
	NoType   Type = 0
	Int32    Type = 1
	Int64    Type = 2
	Uint32   Type = 3
	Uint64   Type = 4
	Float32  Type = 5
	Float64  Type = 6
	Float16  Type = 7 // IEEE 754 binary16
	BFloat16 Type = 8 // the upper half of a binary32
	Block32  Type = 9 // a mantissa of 32 bits; its chunk has an exponent: see EncodeBlock
)

var typeNames = [...]string{"none", "int32", "int64", "uint32", "uint64", "float32", "float64", "float16", "bfloat16", "block32"}
var typeSizes = [...]int{0, 4, 8, 4, 8, 4, 8, 2, 2, 4}

// String returns the type's name as in ParseType.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// Valid reports whether t is an element type, NoType excluded.
func (t Type) Valid() bool { return t >= Int32 && t <= Block32 }

// Size returns the bytes of one value of type t; 0 for NoType and unknown
// types.
func (t Type) Size() int {
	if int(t) < len(typeSizes) {
		return typeSizes[t]
	}
	return 0
}

// Function is a reduction function. Its values are those of the wire format
// and never change.
type Function uint8

// The reduction functions. NoFunction stands in collectives that copy.
const (
	NoFunction Function = 0
	Sum        Function = 1
	Product    Function = 2
	Min        Function = 3
	Max        Function = 4
	BAnd       Function = 5
	BOr        Function = 6
	BXor       Function = 7
	LAnd       Function = 8
	LOr        Function = 9
	LXor       Function = 10
	MinLoc     Function = 11
	MaxLoc     Function = 12
)

var functionNames = [...]string{"none", "sum", "product", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor", "minloc", "maxloc"}

// String returns the function's name as in ParseFunction.
func (f Function) String() string {
	if int(f) < len(functionNames) {
		return functionNames[f]
	}
	return fmt.Sprintf("function(%d)", uint8(f))
}

// Valid reports whether f is a reduction function, NoFunction excluded.
func (f Function) Valid() bool { return f >= Sum && f <= MaxLoc }

// Located reports whether f reduces pairs of a value and its location.
func (f Function) Located() bool { return f == MinLoc || f == MaxLoc }

// LocatedSize is the bytes of one element of a location function, whatever the
// type of its value: the value at 0, zeros up to 8, the location as a
// little-endian int64 at 8.
const LocatedSize = 16

// ElementSize returns the bytes of one element of f over t: t's own size, or
// LocatedSize where f is a location function.
func ElementSize(f Function, t Type) int {
	if f.Located() && t.Valid() {
		return LocatedSize
	}
	return t.Size()
}
