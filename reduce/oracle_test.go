package reduce

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
)

// The oracle reduces one element at a time with arbitrary precision, knows
// nothing of blocks, views or alignment, and shares no code with the kernels.

// reference returns the vector that the kernel of f on t must make of in.
func reference(f Function, t Type, in [][]byte) []byte {
	size := ElementSize(f, t)
	out := make([]byte, len(in[0]))
	values, locations := make([]uint64, len(in)), make([]int64, len(in))
	for at := 0; at < len(out); at += size {
		for j, v := range in {
			values[j] = readBits(t, v[at:])
			if f.Located() {
				locations[j] = int64(binary.LittleEndian.Uint64(v[at+8:]))
			}
		}
		switch {
		case f.Located():
			value, location := referenceLocated(f, t, values, locations)
			writeBits(t, out[at:], value)
			binary.LittleEndian.PutUint64(out[at+8:], uint64(location))
		case isFloat(t):
			writeBits(t, out[at:], referenceFloat(f, t, values))
		default:
			writeBits(t, out[at:], referenceInteger(f, t, values))
		}
	}
	return out
}

func isFloat(t Type) bool {
	return t == Float32 || t == Float64 || t == Float16 || t == BFloat16
}

func readBits(t Type, b []byte) (v uint64) {
	for i := t.Size() - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func writeBits(t Type, b []byte, v uint64) {
	for i := range t.Size() {
		b[i], v = byte(v), v>>8
	}
}

// integerOf returns the integer whose bits, as a value of type t, are v.
func integerOf(t Type, v uint64) *big.Int {
	n := new(big.Int).SetUint64(v)
	if bits := uint(8 * t.Size()); (t == Int32 || t == Int64) && n.Bit(int(bits)-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), bits))
	}
	return n
}

func referenceInteger(f Function, t Type, values []uint64) uint64 {
	logical := f == LAnd || f == LOr || f == LXor
	operand := func(v uint64) *big.Int {
		n := integerOf(t, v)
		if logical {
			n.Abs(big.NewInt(int64(n.Sign())))
		}
		return n
	}
	acc := operand(values[0])
	for _, v := range values[1:] {
		x := operand(v)
		switch f {
		case Sum:
			acc.Add(acc, x)
		case Product:
			acc.Mul(acc, x)
		case Min:
			if x.Cmp(acc) < 0 {
				acc = x
			}
		case Max:
			if x.Cmp(acc) > 0 {
				acc = x
			}
		case BAnd, LAnd:
			acc.And(acc, x)
		case BOr, LOr:
			acc.Or(acc, x)
		default: // BXor, LXor
			acc.Xor(acc, x)
		}
	}
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(8*t.Size()))
	return acc.Mod(acc, modulus).Uint64() // Mod is Euclidean: never negative
}

func referenceFloat(f Function, t Type, values []uint64) uint64 {
	acc := floatOf(t, values[0])
	for _, v := range values[1:] {
		x := floatOf(t, v)
		switch f {
		case Sum, Product:
			acc = exactly(f, acc, x)
			if t != Float64 {
				acc = float64(float32(acc)) // a binary64 holds enough to round twice
			}
		case Min:
			acc = lesser(acc, x)
		default: // Max
			acc = -lesser(-acc, -x)
		}
	}
	return bitsOf(t, acc)
}

// exactly returns a op b, computed without rounding and then rounded once.
func exactly(f Function, a, b float64) float64 {
	special := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	if special(a) || special(b) {
		if f == Sum {
			return a + b
		}
		return a * b
	}
	const wide = 2200 // from the largest binary64's first bit to the smallest's last
	x, y := new(big.Float).SetPrec(wide).SetFloat64(a), new(big.Float).SetPrec(wide).SetFloat64(b)
	if f == Sum {
		x.Add(x, y)
	} else {
		x.Mul(x, y)
	}
	r, _ := x.Float64()
	return r
}

// lesser returns the lesser of a and b, NaN if one of them is NaN; -0 is less
// than +0.
func lesser(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return a
	case math.IsNaN(b):
		return b
	case a < b || a == b && math.Signbit(a):
		return a
	}
	return b
}

// format16 describes a floating-point type of 16 bits.
type format16 struct {
	fraction, bias int
}

var formats16 = map[Type]format16{Float16: {10, 15}, BFloat16: {7, 127}}

// magnitude returns the value of the pattern v without its sign, taking the
// pattern of infinity for what would follow the largest finite value.
func (f format16) magnitude(v uint64) float64 {
	e, m := int(v>>f.fraction), int(v&(1<<f.fraction-1))
	if e == 0 {
		return math.Ldexp(float64(m), 1-f.bias-f.fraction)
	}
	return math.Ldexp(float64(m+1<<f.fraction), e-f.bias-f.fraction)
}

func (f format16) infinity() uint64 { return 0x7fff >> f.fraction << f.fraction }

// round returns the pattern whose value is nearest to x, found by bisection.
func (f format16) round(x float64) uint64 {
	var sign uint64
	if math.Signbit(x) {
		sign, x = 0x8000, -x
	}
	if math.IsNaN(x) {
		return f.infinity() | 1<<(f.fraction-1)
	}
	low, high := uint64(0), f.infinity()
	if x >= f.magnitude(high) {
		return sign | high
	}
	for high-low > 1 {
		if mid := (low + high) / 2; f.magnitude(mid) <= x {
			low = mid
		} else {
			high = mid
		}
	}
	below, above := x-f.magnitude(low), f.magnitude(high)-x
	if below < above || below == above && low&1 == 0 {
		return sign | low
	}
	return sign | high
}

// floatOf returns the value of the bits v of type t.
func floatOf(t Type, v uint64) float64 {
	if t == Float32 {
		return float64(math.Float32frombits(uint32(v)))
	}
	if t == Float64 {
		return math.Float64frombits(v)
	}
	f := formats16[t]
	x := f.magnitude(v & 0x7fff)
	switch {
	case v&0x7fff > f.infinity():
		return math.NaN()
	case v&0x7fff == f.infinity():
		x = math.Inf(1)
	}
	if v&0x8000 != 0 {
		return -x
	}
	return x
}

// bitsOf returns the bits of x in type t, rounded; NaN is canonical.
func bitsOf(t Type, x float64) uint64 {
	switch {
	case t == Float32 && math.IsNaN(x):
		return 0x7fc00000
	case t == Float32:
		return uint64(math.Float32bits(float32(x)))
	case t == Float64 && math.IsNaN(x):
		return 0x7ff8000000000000
	case t == Float64:
		return math.Float64bits(x)
	}
	return formats16[t].round(x)
}

func referenceLocated(f Function, t Type, values []uint64, locations []int64) (uint64, int64) {
	best := 0
	for j := 1; j < len(values); j++ {
		order := compare(t, values[j], values[best], f == MaxLoc)
		if order < 0 || order == 0 && locations[j] < locations[best] {
			best = j
		}
	}
	value := values[best]
	if isFloat(t) && math.IsNaN(floatOf(t, value)) {
		value = bitsOf(t, math.NaN())
	}
	return value, locations[best]
}

// compare is negative where a wins over b, 0 where they are equal.
func compare(t Type, a, b uint64, largest bool) int {
	sign := 1
	if largest {
		sign = -1
	}
	if !isFloat(t) {
		return sign * integerOf(t, a).Cmp(integerOf(t, b))
	}
	x, y := floatOf(t, a), floatOf(t, b)
	switch {
	case math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x):
		return -1
	case math.IsNaN(y):
		return 1
	case x == y && math.Signbit(x) == math.Signbit(y):
		return 0
	case lesser(x, y) == x && math.Signbit(lesser(x, y)) == math.Signbit(x):
		return -sign
	}
	return sign
}

// specials returns bits of values of type t at which kernels may go wrong.
func specials(t Type) []uint64 {
	top := uint64(1) << (8*t.Size() - 1)
	if !isFloat(t) {
		return []uint64{0, 1, 2, top - 1, top, top + 1, 2*top - 1, 2*top - 2, 0x10000, top >> 1}
	}
	infinity, quiet, one := bitsOf(t, math.Inf(1)), bitsOf(t, math.NaN())^bitsOf(t, math.Inf(1)), bitsOf(t, 1)
	smallestNormal := quiet << 1
	all := []uint64{
		0, 1, smallestNormal - 1, smallestNormal, // zero and the ends of the subnormal numbers
		one, one + 1, bitsOf(t, 1.5), bitsOf(t, 3), infinity - 1, infinity,
		infinity + 1, infinity | quiet, infinity | quiet | 1, // NaNs: signalling, canonical, with a payload
	}
	for _, v := range all {
		all = append(all, v|top)
	}
	return all
}

// randomVector returns n elements of f on t: specials, small numbers, and any
// bits. Their padding is not zero, and locations often are the same.
func randomVector(r *rand.Rand, f Function, t Type, n int) []byte {
	size := ElementSize(f, t)
	special := specials(t)
	v := make([]byte, n*size)
	for at := 0; at < len(v); at += size {
		if f.Located() {
			binary.LittleEndian.PutUint64(v[at:], r.Uint64())
			binary.LittleEndian.PutUint64(v[at+8:], uint64(r.IntN(5)-2))
		}
		var bits uint64
		switch r.IntN(3) {
		case 0:
			bits = special[r.IntN(len(special))]
		case 1:
			bits = uint64(int64(r.IntN(20) - 10))
			if isFloat(t) {
				bits = bitsOf(t, float64(r.IntN(20)-10)/8)
			}
		default:
			bits = r.Uint64()
		}
		writeBits(t, v[at:], bits)
	}
	return v
}
