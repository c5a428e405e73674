package reduce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// FixedBlock is the bytes of a vector whose elements share an exponent in a Fixed sum.
const FixedBlock = 128

// MaxFixedMembers is the most members of a group whose sums are Fixed.
const MaxFixedMembers = 1 << 20

// narrowMembers is the most members for which sums of Float32 are those of Int32.
const narrowMembers = 64

// ErrFixed says that there is no Fixed of a type and number of members.
var ErrFixed = errors.New("no fixed-point sum")

// Fixed says how the members of a group sum floating-point numbers as integers, so that the result
// does not depend on the order in which anybody adds. First all agree on marks, by the maximum of
// those of each member: two uint32 for each block of the vector. Then each member turns its vector
// into words, integers scaled by the agreed exponent of their block, with room for the sum of all. The
// sum of the words is exact, and turned back by one rounding. docs/functions.md has the bound of the
// error.
//
// The marks of a block are 0, or the greatest exponent of its finite numbers as it is stored, 1 at the
// least; and 1 if it has a NaN or an infinity, otherwise 0.
type Fixed struct {
	from, word Type
	members    uint32
	bits       uint8 // of a mantissa: its magnitude is below 2^bits
	field      uint8 // bits of a word for the sum, in a block with NaNs or infinities. The others count these
	mixed      uint8 // bits of a mantissa there

	fromLog, wordLog uint8 // binary logarithms of the bytes of an element and of a word
}

// FixedOf returns how a group of so many members sums a type: Float32 or Float64. The error wraps
// ErrFixed.
func FixedOf(from Type, members int) (Fixed, error) {
	f := Fixed{from: from, word: Int64, members: uint32(members)}
	precision := 53
	switch {
	case members < 1 || members > MaxFixedMembers:
		return Fixed{}, fmt.Errorf("%w of %d members, 1 to %d have one", ErrFixed, members, MaxFixedMembers)
	case from == Float32:
		precision = 24
		if members <= narrowMembers {
			f.word = Int32
		}
	case from != Float64:
		return Fixed{}, fmt.Errorf("%w of %v", ErrFixed, from)
	}
	// One with fewer bits than the numbers may be rounded up to the limit.
	room := func(width int) uint8 {
		b := width - 1 - bits.Len(uint(members-1))
		if b < precision {
			b--
		}
		return uint8(b)
	}
	kinds := uint64(members+1) * uint64(members+1)
	width := 8 * f.word.Size()
	f.bits = room(width)
	f.field = uint8(width - bits.Len64(kinds-1))
	f.mixed = room(int(f.field))
	f.fromLog, f.wordLog = uint8(bits.TrailingZeros(uint(from.Size()))), uint8(bits.TrailingZeros(uint(f.word.Size())))
	return f, nil
}

// IsSet reports whether f was returned by FixedOf.
func (f Fixed) IsSet() bool { return f.from != NoType }

// From returns the type of the vectors, Word that of the words: Int32 or Int64.
func (f Fixed) From() Type { return f.from }

// Word returns the type of the words.
func (f Fixed) Word() Type { return f.word }

// Members returns how many members there may be at most.
func (f Fixed) Members() int { return int(f.members) }

// Block returns the elements of a block.
func (f Fixed) Block() int { return FixedBlock >> f.fromLog }

// Unit returns the elements whose words have FixedBlock bytes. Chunks of so many, or of a multiple, are turned
// fastest.
func (f Fixed) Unit() int { return FixedBlock >> f.wordLog }

// Bits returns how many bits of the greatest number of a block a word has, where the block has no NaN and no
// infinity, and where it has.
func (f Fixed) Bits() (plain, mixed int) { return int(f.bits), int(f.mixed) }

// Marks returns how many uint32 the marks of a vector of so many elements are.
func (f Fixed) Marks(elements int) int { return 2 * f.blocks(elements) }

func (f *Fixed) blocks(elements int) int {
	return (elements<<f.fromLog + FixedBlock - 1) / FixedBlock
}

const markSize = 8 // bytes of a block's marks

// Mark sets dst to the marks of src, a vector of From. It panics where the lengths do not fit.
func (f Fixed) Mark(dst, src []byte) {
	f.check(len(src), len(src)>>f.fromLog<<f.wordLog, dst, 0)
	for len(src) > 0 {
		n := fastest.markFixed(dst, src, f.from)
		dst, src = dst[n*markSize:], src[n*FixedBlock:]
		if len(src) > 0 {
			n = min(len(src), FixedBlock)
			f.mark(dst, src[:n])
			dst, src = dst[markSize:], src[n:]
		}
	}
}

// mark sets the marks of one block.
func (f *Fixed) mark(dst, src []byte) {
	greatest, special := uint64(0), uint32(0)
	if f.from == Float32 {
		for ; len(src) >= 4; src = src[4:] {
			if m := binary.LittleEndian.Uint32(src) &^ (1 << 31); m < inf32 {
				greatest = max(greatest, uint64(m))
			} else {
				special = 1
			}
		}
		putMarks(dst, storedExponent(greatest, 23), special)
		return
	}
	for ; len(src) >= 8; src = src[8:] {
		if m := binary.LittleEndian.Uint64(src) &^ (1 << 63); m < inf64 {
			greatest = max(greatest, m)
		} else {
			special = 1
		}
	}
	putMarks(dst, storedExponent(greatest, 52), special)
}

// storedExponent returns the mark of a magnitude by its bits, of which so many are of the fraction.
func storedExponent(magnitude uint64, fraction int) uint32 {
	if magnitude == 0 {
		return 0
	}
	return max(1, uint32(magnitude>>fraction))
}

func putMarks(dst []byte, exponent, special uint32) {
	binary.LittleEndian.PutUint32(dst, exponent)
	binary.LittleEndian.PutUint32(dst[4:], special)
}

// Encode turns src, which are elements of a vector of From, the first of which has the index at, into
// words, by the marks of the whole vector, on which the members have agreed. It panics where the lengths
// do not fit. dst and src do not overlap.
func (f Fixed) Encode(dst, src, marks []byte, at int) {
	f.check(len(src), len(dst), marks, at)
	f.turn(dst, src, marks, at, true)
}

// Decode turns src, sums of words, into elements of a vector of From, as Encode turned them: each is rounded
// once, to nearest, ties to even.
func (f Fixed) Decode(dst, src, marks []byte, at int) {
	f.check(len(dst), len(src), marks, at)
	f.turn(dst, src, marks, at, false)
}

// check panics unless vector and words are of equally many elements, and the marks are those of a vector
// that has them.
func (f *Fixed) check(vector, words int, marks []byte, at int) {
	n := vector >> f.fromLog
	if vector != n<<f.fromLog || words != n<<f.wordLog || at < 0 || len(marks) < markSize*f.blocks(at+n) {
		panic(fmt.Sprintf("reduce: %d bytes of %v, %d bytes of %v, from %d on, by %d bytes of marks", vector, f.from, words, f.word, at, len(marks)))
	}
}

// turn encodes or decodes: whole units by kernels, what these leave element by element.
func (f *Fixed) turn(dst, src, marks []byte, at int, encodes bool) {
	from, to := f.wordLog, f.fromLog // of the elements of src, of dst
	if encodes {
		from, to = to, from
	}
	unit, block := f.Unit(), f.Block() // powers of two
	for left := len(src) >> from; left > 0; {
		n := 0
		if at&(unit-1) == 0 {
			n = unit * fastest.turnFixed(dst, src, marks, at<<f.wordLog/FixedBlock, left<<f.wordLog/FixedBlock, f, encodes)
		}
		if n == 0 {
			n = min(left, block-at&(block-1))
			f.turnEach(dst[:n<<to], src[:n<<from], marks, at, encodes)
		}
		dst, src, at, left = dst[n<<to:], src[n<<from:], at+n, left-n
	}
}

// A form is what a Fixed turns, and into what.
const (
	float32AsInt32 = iota
	float32AsInt64
	float64AsInt64
	forms
)

func (f *Fixed) form() int {
	switch {
	case f.from == Float64:
		return float64AsInt64
	case f.word == Int64:
		return float32AsInt64
	}
	return float32AsInt32
}

func exponentMark(marks []byte, block int) uint32 {
	return binary.LittleEndian.Uint32(marks[block*markSize:])
}

func isSpecial(marks []byte, block int) bool {
	return binary.LittleEndian.Uint32(marks[block*markSize+4:]) != 0
}

// A word is a number x 2^-e x 2^bits, where 2^e is the least power of two that is above all finite numbers of
// the block: with stored exponents s and the bias of the type, e = s - bias + 1. Of Float64, neither factor
// need be a number, so that e - 2 and e - 1 are taken into the scale of a block, and the rest into a constant.

// scale returns the factor of a block with that exponent; 0 where it has zeros alone.
func (f *Fixed) scale(exponent uint32, encodes bool) float64 {
	s := uint64(exponent)
	if encodes {
		s = -s
	}
	if s == 0 {
		return 0
	}
	return math.Float64frombits((f.origin(encodes) + s) << 52)
}

// origin returns the exponent of scale, as it is stored, of a block with the exponent 0.
func (f *Fixed) origin(encodes bool) uint64 {
	switch {
	case f.from == Float32 && encodes:
		return 1023 + 126 + uint64(f.bits)
	case f.from == Float32:
		return 1023 - 126 - uint64(f.bits)
	case encodes:
		return 1023 + 1024
	}
	return 0
}

// constant returns the factor of all blocks.
func (f *Fixed) constant(mantissa uint8, encodes bool) float64 {
	switch {
	case f.from == Float32 && encodes:
		return pow2(int(mantissa) - int(f.bits))
	case f.from == Float32:
		return pow2(int(f.bits) - int(mantissa))
	case encodes:
		return pow2(int(mantissa) - 2)
	default:
		return pow2(1 - int(mantissa))
	}
}

// turnEach turns elements of one block, one by one.
func (f *Fixed) turnEach(dst, src, marks []byte, at int, encodes bool) {
	b := at << f.fromLog / FixedBlock
	scale, special := f.scale(exponentMark(marks, b), encodes), isSpecial(marks, b)
	mantissa, from, word := f.bits, f.from.Size(), f.word.Size()
	if special {
		mantissa = f.mixed
	}
	constant := f.constant(mantissa, encodes)
	switch {
	case f.word == Int32 && !special && encodes:
		quantize(dst, src, scale)
	case f.word == Int32 && !special:
		expand(dst, src, scale)
	case encodes:
		for ; len(src) > 0; dst, src = dst[word:], src[from:] {
			if special {
				f.putWord(dst, f.mix(f.number(src), scale, constant))
			} else {
				f.putWord(dst, int64(math.RoundToEven(f.number(src)*scale*constant)))
			}
		}
	default:
		for ; len(src) > 0; dst, src = dst[from:], src[word:] {
			m, kind := f.getWord(src), 0.0
			if special {
				m, kind = f.unmix(m)
			}
			f.putNumber(dst, m, kind, scale, constant)
		}
	}
}

func (f *Fixed) number(src []byte) float64 {
	if f.from == Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(src)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(src))
}

func (f *Fixed) putWord(dst []byte, m int64) {
	if f.word == Int32 {
		binary.LittleEndian.PutUint32(dst, uint32(m))
	} else {
		binary.LittleEndian.PutUint64(dst, uint64(m))
	}
}

func (f *Fixed) getWord(src []byte) int64 {
	if f.word == Int32 {
		return int64(int32(binary.LittleEndian.Uint32(src)))
	}
	return int64(binary.LittleEndian.Uint64(src))
}

// putNumber rounds a sum, unless kind, an infinity or a NaN, takes its place.
//
// A mantissa is rounded to the type first, and then scaled, which is exact: what is subnormal afterwards has a
// sum of so few bits that nothing was rounded before.
func (f *Fixed) putNumber(dst []byte, m int64, kind, scale, constant float64) {
	if f.from == Float32 {
		sum := float64(m)
		if f.word == Int64 {
			sum = float64(float32(float64(toOdd(m))))
		}
		x := float32(float64(sum*constant) * scale)
		switch {
		case kind != kind:
			x = math.Float32frombits(nan32)
		case kind != 0:
			x = float32(kind)
		}
		binary.LittleEndian.PutUint32(dst, math.Float32bits(x))
		return
	}
	x := float64(float64(m)*constant) * scale
	switch {
	case kind != kind:
		x = math.Float64frombits(nan64)
	case kind != 0:
		x = kind
	}
	binary.LittleEndian.PutUint64(dst, math.Float64bits(x))
}

// toOdd returns an integer that a float64 holds, and that rounds to the same float32 as m: without its last bits, and
// the next one set if one of these was. Go on 32 bits rounds from int64 to float32 twice.
func toOdd(m int64) int64 {
	const last = 1<<10 - 1
	if -1<<53 <= m && m < 1<<53 {
		return m
	}
	if m&last != 0 {
		m |= last + 1
	}
	return m &^ last
}

// In a block with NaNs or infinities, a word has a sum in its lower bits, and in the upper ones how many
// members have had +Inf or NaN there, and -Inf or NaN, as a number of two digits.

// mix returns the word of a number in such a block.
func (f *Fixed) mix(x, scale, constant float64) int64 {
	base, kind := int64(f.members)+1, int64(0)
	switch {
	case x != x:
		kind = 1 + base
	case math.IsInf(x, 1):
		kind = 1
	case math.IsInf(x, -1):
		kind = base
	default:
		return int64(math.RoundToEven(x * scale * constant))
	}
	return kind << f.field
}

// unmix returns the sum of such a word and, unless none was there, the infinity or NaN.
func (f *Fixed) unmix(word int64) (m int64, kind float64) {
	over := 64 - f.field
	m = word << over >> over
	count := uint64(word-m) << (64 - 8*f.word.Size()) >> (64 - 8*f.word.Size()) >> f.field
	base := uint64(f.members) + 1
	switch up, down := count%base, count/base; {
	case up > 0 && down > 0:
		return m, math.NaN()
	case up > 0:
		return m, math.Inf(1)
	case down > 0:
		return m, math.Inf(-1)
	}
	return m, 0
}
