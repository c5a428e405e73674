package reduce

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUndefined says that a function is not defined on a type of element; the
// table in docs/functions.md reports the pairs that are.
var ErrUndefined = errors.New("not a defined pair of function and type")

// ErrUnknownName says that a text is not the name of a type or function.
var ErrUnknownName = errors.New("unknown name")

// typeSet has the bit 1<<t set for each type t that it holds.
type typeSet uint16

const (
	integers typeSet = 1<<Int32 | 1<<Int64 | 1<<Uint32 | 1<<Uint64
	floats   typeSet = 1<<Float32 | 1<<Float64 | 1<<Float16 | 1<<BFloat16
)

// defined holds, for each function, the types that it is defined on.
var defined = [...]typeSet{
	NoFunction: 0,
	Sum:        integers | floats | 1<<Block32,
	Product:    integers | floats,
	Min:        integers | floats,
	Max:        integers | floats,
	BAnd:       integers,
	BOr:        integers,
	BXor:       integers,
	LAnd:       integers,
	LOr:        integers,
	LXor:       integers,
	MinLoc:     integers | floats,
	MaxLoc:     integers | floats,
}

// Defined reports whether f is defined on elements of type t. It is false for
// NoFunction, NoType and values that are no function or type.
func Defined(f Function, t Type) bool {
	return int(f) < len(defined) && t.Valid() && defined[f]>>t&1 != 0
}

// ParseType returns the element type named s, as Type.String writes it. An
// error wraps ErrUnknownName and lists the names that there are.
func ParseType(s string) (Type, error) {
	i, err := parse("type", s, typeNames[:])
	return Type(i), err
}

// ParseFunction returns the function named s, as Function.String writes it. An
// error wraps ErrUnknownName and lists the names that there are.
func ParseFunction(s string) (Function, error) {
	i, err := parse("function", s, functionNames[:])
	return Function(i), err
}

// parse returns the index of s in names; not 0, whose name stands for none.
func parse(what, s string, names []string) (int, error) {
	for i, name := range names {
		if i > 0 && name == s {
			return i, nil
		}
	}
	return 0, fmt.Errorf("parse %s %q: %w (one of %s)", what, s, ErrUnknownName, strings.Join(names[1:], ", "))
}
