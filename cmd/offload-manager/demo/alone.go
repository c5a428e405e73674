package demo

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/reduce"
)

// alone computes a reduction by itself: a loop over all members for one element
// after the other, in wide arithmetic, sharing nothing with package reduce but
// the conversion of the 16-bit types.
type alone struct {
	f reduce.Function
	t reduce.Type
}

// check reports the first element at which a result is not the reduction of the
// inputs, or too far from it.
func (a alone) check(result []byte, inputs [][]byte) error {
	size := reduce.ElementSize(a.f, a.t)
	for at := 0; at < len(result); at += size {
		var wrong string
		switch {
		case a.f.Located():
			wrong = a.located(result, inputs, at)
		case isFloat(a.t):
			wrong = a.float(result, inputs, at)
		default:
			wrong = a.integer(result, inputs, at)
		}
		if wrong != "" {
			return fmt.Errorf("element %d is %s", at/size, wrong)
		}
	}
	return nil
}

func isFloat(t reduce.Type) bool {
	switch t {
	case reduce.Float16, reduce.BFloat16, reduce.Float32, reduce.Float64:
		return true
	default:
		return false
	}
}

// floatAt decodes an element of a floating-point type.
func floatAt(t reduce.Type, v []byte, at int) float64 {
	switch t {
	case reduce.Float16:
		return float64(reduce.F16(binary.LittleEndian.Uint16(v[at:])).Float32())
	case reduce.BFloat16:
		return float64(reduce.BF16(binary.LittleEndian.Uint16(v[at:])).Float32())
	case reduce.Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v[at:])))
	default:
		return math.Float64frombits(binary.LittleEndian.Uint64(v[at:]))
	}
}

// integerAt decodes an element of an integer type, widened to 64 bits.
func integerAt(t reduce.Type, v []byte, at int) uint64 {
	switch t {
	case reduce.Int32:
		return uint64(int64(int32(binary.LittleEndian.Uint32(v[at:]))))
	case reduce.Uint32:
		return uint64(binary.LittleEndian.Uint32(v[at:]))
	default:
		return binary.LittleEndian.Uint64(v[at:])
	}
}

// narrow brings a 64-bit result back to the width of t, as it is decoded.
func narrow(t reduce.Type, x uint64) uint64 {
	switch t {
	case reduce.Int32:
		return uint64(int64(int32(x)))
	case reduce.Uint32:
		return uint64(uint32(x))
	default:
		return x
	}
}

func less(t reduce.Type, x, y uint64) bool {
	if t == reduce.Int32 || t == reduce.Int64 {
		return int64(x) < int64(y)
	}
	return x < y
}

// roundoff is the largest relative error of one rounding.
func roundoff(t reduce.Type) float64 {
	switch t {
	case reduce.Float16:
		return 0x1p-11
	case reduce.BFloat16:
		return 0x1p-8
	case reduce.Float32:
		return 0x1p-24
	default:
		return 0x1p-53
	}
}

// float checks an element of a floating-point type. A sum of n numbers in any
// order is off by at most (n-1) roundings of the sum of their magnitudes, a
// product by as many of itself (N. J. Higham, "Accuracy and Stability of
// Numerical Algorithms", 2002, chapters 3 and 4); the loop here rounds, too, so
// twice as much is allowed.
func (a alone) float(result []byte, inputs [][]byte, at int) string {
	want := floatAt(a.t, inputs[0], at)
	magnitude := math.Abs(want)
	for _, in := range inputs[1:] {
		x := floatAt(a.t, in, at)
		magnitude += math.Abs(x)
		switch a.f {
		case reduce.Sum:
			want += x
		case reduce.Product:
			want *= x
		case reduce.Min:
			want = min(want, x)
		default: // reduce.Max
			want = max(want, x)
		}
	}
	slack := 2 * float64(len(inputs)) * roundoff(a.t)
	switch a.f {
	case reduce.Sum:
		slack *= magnitude
	case reduce.Product:
		slack *= math.Abs(want)
	default:
		slack = 0
	}
	if got := floatAt(a.t, result, at); !(math.Abs(got-want) <= slack) {
		return fmt.Sprintf("%v, want %v within %.3g", got, want, slack)
	}
	return ""
}

// integer checks an element of an integer type.
func (a alone) integer(result []byte, inputs [][]byte, at int) string {
	want := integerAt(a.t, inputs[0], at)
	if a.f == reduce.LAnd || a.f == reduce.LOr || a.f == reduce.LXor {
		want = truth(want)
	}
	for _, in := range inputs[1:] {
		want = a.combine(want, integerAt(a.t, in, at))
	}
	if got := integerAt(a.t, result, at); got != narrow(a.t, want) {
		return fmt.Sprintf("%#x, want %#x", got, narrow(a.t, want))
	}
	return ""
}

// combine returns x op y.
func (a alone) combine(x, y uint64) uint64 {
	switch a.f {
	case reduce.Sum:
		return x + y
	case reduce.Product:
		return x * y
	case reduce.Min:
		if less(a.t, y, x) {
			return y
		}
		return x
	case reduce.Max:
		if less(a.t, x, y) {
			return y
		}
		return x
	case reduce.BAnd:
		return x & y
	case reduce.BOr:
		return x | y
	case reduce.BXor:
		return x ^ y
	case reduce.LAnd:
		return x & truth(y)
	case reduce.LOr:
		return x | truth(y)
	default: // reduce.LXor
		return x ^ truth(y)
	}
}

func truth(x uint64) uint64 {
	if x != 0 {
		return 1
	}
	return 0
}

// located checks a value with its location: the least, or the greatest, and of
// equal ones the lowest location.
func (a alone) located(result []byte, inputs [][]byte, at int) string {
	best := inputs[0]
	for _, in := range inputs[1:] {
		if order := a.order(in, best, at); order < 0 || order == 0 && location(in, at) < location(best, at) {
			best = in
		}
	}
	if a.order(result, best, at) != 0 || location(result, at) != location(best, at) {
		return fmt.Sprintf("another one than that at location %d: it names %d", location(best, at), location(result, at))
	}
	return ""
}

// order is negative if x is to be preferred to y, and 0 if they are equal.
func (a alone) order(x, y []byte, at int) int {
	var before, after bool
	if isFloat(a.t) {
		x, y := floatAt(a.t, x, at), floatAt(a.t, y, at)
		before, after = x < y, y < x
	} else {
		x, y := integerAt(a.t, x, at), integerAt(a.t, y, at)
		before, after = less(a.t, x, y), less(a.t, y, x)
	}
	if a.f == reduce.MaxLoc {
		before, after = after, before
	}
	switch {
	case before:
		return -1
	case after:
		return 1
	}
	return 0
}

func location(v []byte, at int) int64 { return int64(binary.LittleEndian.Uint64(v[at+8:])) }
