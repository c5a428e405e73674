package reduce

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Exponents of a chunk of Block32 that are none.
const (
	BlockZero int8 = -128 // every value is zero
	BlockNaN  int8 = 127  // every value is NaN

	leastBlock int8 = -127 // the least exponent that is one
)

// EncodeBlock turns src, a vector of Float32, into dst, one of Block32, and
// returns its exponent. It leaves room for the sum of as many such vectors as
// the group has members, from 1 to 1<<24. A vector with a NaN or an infinity
// gets BlockNaN, one of zeros BlockZero. dst must have the length of src, and
// may be src.
func EncodeBlock(dst, src []byte, members int) (exponent int8) {
	checkBlock(dst, src)
	if members < 1 || members > 1<<24 {
		panic(fmt.Sprintf("reduce: a group of %d members", members))
	}
	exponent = blockExponent(largest(src), members)
	if exponent == BlockNaN || exponent == BlockZero {
		clear(dst)
		return exponent
	}
	scale, done := pow2(-int(exponent)), fastest.turnBlock(dst, src, -int(exponent), true)
	quantize(dst[done:], src[done:], scale)
	return exponent
}

// DecodeBlock turns src, a vector of Block32 with that exponent, into dst, one
// of Float32: each value is rounded to the nearest float32, of two equally near
// the one whose last bit is 0. dst must have the length of src, and may be src.
func DecodeBlock(dst, src []byte, exponent int8) {
	checkBlock(dst, src)
	switch exponent {
	case BlockZero:
		clear(dst)
		return
	case BlockNaN:
		for at := 0; at < len(dst); at += 4 {
			binary.LittleEndian.PutUint32(dst[at:], nan32)
		}
		return
	}
	scale, done := pow2(int(exponent)), fastest.turnBlock(dst, src, int(exponent), false)
	expand(dst[done:], src[done:], scale)
}

func checkBlock(dst, src []byte) {
	if len(src)%4 != 0 || len(dst) != len(src) {
		panic(fmt.Sprintf("reduce: a block of %d bytes from one of %d", len(dst), len(src)))
	}
}

// pow2 returns 2^e, of which it must be normal.
func pow2(e int) float64 { return math.Float64frombits(uint64(1023+e) << 52) }

// largest returns the greatest magnitude in src, a vector of Float32, as the
// bits of that. Those of infinity, or greater ones, report an infinity or NaN.
func largest(src []byte) (m uint32) {
	const magnitude = math.MaxInt32
	m, done := fastest.largest(src)
	src = src[done:]
	if !aligned[uint32](src) {
		for at := 0; at < len(src); at += 4 {
			m = max(m, binary.LittleEndian.Uint32(src[at:])&magnitude)
		}
		return m
	}
	a, b, c, d := m, m, m, m // so that four comparisons need not wait for each other
	v := view[uint32](src)
	for len(v) >= 8 {
		x := (*[8]uint32)(v)
		a, b = max(a, x[0]&magnitude), max(b, x[1]&magnitude)
		c, d = max(c, x[2]&magnitude), max(d, x[3]&magnitude)
		a, b = max(a, x[4]&magnitude), max(b, x[5]&magnitude)
		c, d = max(c, x[6]&magnitude), max(d, x[7]&magnitude)
		v = v[8:]
	}
	for _, x := range v {
		a = max(a, x&magnitude)
	}
	return max(a, b, c, d)
}

// blockExponent returns the exponent of a chunk whose greatest magnitude has the
// bits m: the least one with which its mantissa, rounded, is within the limit
// that keeps the sum of all members within 32 bits.
func blockExponent(m uint32, members int) int8 {
	switch {
	case m >= inf32:
		return BlockNaN
	case m == 0:
		return BlockZero
	}
	limit := int32(math.MaxInt32 / members)
	x := math.Float32frombits(m)
	_, e := math.Frexp(float64(x)) // x is below 2^e, and 2^(e-1) or more
	// With e - Len(limit) the mantissa is as long as the limit, but may be above.
	exponent := max(e-bits.Len32(uint32(limit)), int(leastBlock))
	if mantissa(x, pow2(-exponent)) > limit {
		exponent++
	}
	return int8(exponent)
}

// mantissa returns x * scale, which is no more than 2^31 in magnitude, rounded
// to the nearest integer, ties to even.
func mantissa(x float32, scale float64) int32 {
	// At this size a float64 has no bits behind the point, so that the sum
	// rounds. Its last 32 bits are those of the integer.
	const integral = 3 << 51
	return int32(math.Float64bits(float64(float64(x)*scale) + integral))
}

// quantize sets each element of dst, of Int32, to the mantissa of that of src, of Float32.
func quantize(dst, src []byte, scale float64) {
	if !aligned[int32](dst) || !aligned[float32](src) {
		for ; len(src) > 0; dst, src = dst[4:], src[4:] {
			x := math.Float32frombits(binary.LittleEndian.Uint32(src))
			binary.LittleEndian.PutUint32(dst, uint32(mantissa(x, scale)))
		}
		return
	}
	to, from := view[int32](dst), view[float32](src)
	for len(to) >= 8 && len(from) >= 8 {
		d, s := (*[8]int32)(to), (*[8]float32)(from)
		d[0], d[1] = mantissa(s[0], scale), mantissa(s[1], scale)
		d[2], d[3] = mantissa(s[2], scale), mantissa(s[3], scale)
		d[4], d[5] = mantissa(s[4], scale), mantissa(s[5], scale)
		d[6], d[7] = mantissa(s[6], scale), mantissa(s[7], scale)
		to, from = to[8:], from[8:]
	}
	from = from[:len(to)]
	for i := range to {
		to[i] = mantissa(from[i], scale)
	}
}

// expand sets each element of dst, of Float32, to that of src, of Int32, times scale.
func expand(dst, src []byte, scale float64) {
	if !aligned[float32](dst) || !aligned[int32](src) {
		for ; len(src) > 0; dst, src = dst[4:], src[4:] {
			m := int32(binary.LittleEndian.Uint32(src))
			binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(float64(m)*scale)))
		}
		return
	}
	to, from := view[float32](dst), view[int32](src)
	for len(to) >= 8 && len(from) >= 8 {
		d, s := (*[8]float32)(to), (*[8]int32)(from)
		d[0], d[1] = float32(float64(s[0])*scale), float32(float64(s[1])*scale)
		d[2], d[3] = float32(float64(s[2])*scale), float32(float64(s[3])*scale)
		d[4], d[5] = float32(float64(s[4])*scale), float32(float64(s[5])*scale)
		d[6], d[7] = float32(float64(s[6])*scale), float32(float64(s[7])*scale)
		to, from = to[8:], from[8:]
	}
	from = from[:len(to)]
	for i, m := range from {
		to[i] = float32(float64(m) * scale)
	}
}
