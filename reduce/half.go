package reduce

import "math"

// F16 is a 16-bit floating-point number as in IEEE 754 binary16: a sign, 5 bits
// of exponent and 10 of fraction. Its type as an element is Float16.
type F16 uint16

// BF16 is the upper half of a binary32: a sign, 8 bits of exponent and 7 of
// fraction. Its type as an element is BFloat16.
type BF16 uint16

// Bit patterns of the floating-point types. The NaNs are the canonical ones:
// positive, quiet, without payload.
const (
	nan32   = 0x7fc00000
	nan64   = 0x7ff8 << 48
	nanF16  = 0x7e00
	nanBF16 = 0x7fc0

	inf32   = 0x7f800000
	inf64   = 0x7ff0 << 48
	infF16  = 0x7c00
	infBF16 = 0x7f80

	// smallestNormal is 2^-14, the smallest normal binary16, as a binary32.
	smallestNormal = 0x38800000
	// rebias is the difference of the two exponents' biases, in the place of a
	// binary32's exponent.
	rebias = (127 - 15) << 23
	// beyond is 2^16, which no binary16 reaches, as a binary32.
	beyond = 0x47800000
)

// F16From returns the F16 nearest to x, of two equally near the one whose last
// bit is 0. What is 65520 or more in magnitude becomes an infinity, and any NaN
// the canonical one, 0x7e00.
func F16From(x float32) F16 {
	b := math.Float32bits(x)
	sign, b := F16(b>>16&0x8000), b&0x7fffffff
	switch {
	case b > inf32:
		return nanF16
	case b >= beyond:
		return sign | infF16
	case b >= smallestNormal:
		b -= rebias
		return sign | F16((b+0xfff+b>>13&1)>>13) // a carry may rightly reach the exponent
	}
	// Between 0.5 and 1 a binary32 has the spacing of the subnormal binary16,
	// so this sum rounds as needed and has the wanted bits at its end.
	return sign | F16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))
}

// Float32 returns the value of h, exactly. A NaN keeps its sign and payload.
func (h F16) Float32() float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	switch h & infF16 {
	case infF16:
		return math.Float32frombits(sign | inf32 | b)
	case 0:
		// The fraction without the leading 1 that a normal number has.
		x := math.Float32frombits(smallestNormal|b) - math.Float32frombits(smallestNormal)
		return math.Float32frombits(sign | math.Float32bits(x))
	}
	return math.Float32frombits(sign | (b + rebias))
}

// BF16From returns the BF16 nearest to x, of two equally near the one whose
// last bit is 0. Any NaN becomes the canonical one, 0x7fc0.
func BF16From(x float32) BF16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > inf32 {
		return nanBF16
	}
	return BF16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 returns the value of h, exactly. A NaN keeps its sign and payload.
func (h BF16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }
