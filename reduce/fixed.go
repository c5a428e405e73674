package reduce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
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
func (f Fixed) Block() int { return FixedBlock / f.from.Size() }

// Bits returns how many bits of the greatest number of a block a word has, where the block has no NaN and no
// infinity, and where it has.
func (f Fixed) Bits() (plain, mixed int) { return int(f.bits), int(f.mixed) }

// Marks returns how many uint32 the marks of a vector of so many elements are.
func (f Fixed) Marks(elements int) int { return 2 * ((elements + f.Block() - 1) / f.Block()) }

const markSize = 8 // bytes of a block's marks

// Mark sets dst to the marks of src, a vector of From. It panics where the lengths do not fit.
func (f Fixed) Mark(dst, src []byte) {
	f.check(len(src), len(src)/f.from.Size()*f.word.Size(), dst, 0)
	whole := fastest.markFixed(dst, src, f)
	for at := whole; at < len(src); at += FixedBlock {
		f.mark(dst[at/FixedBlock*markSize:], src[at:min(at+FixedBlock, len(src))])
	}
}

// mark sets the marks of one block.
func (f Fixed) mark(dst, src []byte) {
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
func (f Fixed) check(vector, words int, marks []byte, at int) {
	n := vector / f.from.Size()
	if vector%f.from.Size() != 0 || words != n*f.word.Size() || at < 0 || len(marks) < 4*f.Marks(at+n) {
		panic(fmt.Sprintf("reduce: %d bytes of %v, %d bytes of %v, from %d on, by %d bytes of marks", vector, f.from, words, f.word, at, len(marks)))
	}
}

// turn encodes or decodes, block by block: those that are whole and plain many at a time.
func (f Fixed) turn(dst, src, marks []byte, at int, encodes bool) {
	from, word, block := f.from.Size(), f.word.Size(), f.Block()
	size := func(n int) (dst, src int) {
		if encodes {
			return n * word, n * from
		}
		return n * from, n * word
	}
	left := len(dst) / from
	if encodes {
		left = len(src) / from
	}
	w := benches.Get().(*bench)
	defer benches.Put(w)
	scales := &w.scales
	for left > 0 {
		first := at / block
		n := 0
		if at%block == 0 {
			for n < min(left/block, len(scales)) && !isSpecial(marks, first+n) {
				scales[n] = f.scale(exponentMark(marks, first+n), encodes)
				n++
			}
		}
		count := n * block
		switch {
		case n == 0: // a part of a block, or one with NaNs or infinities
			count = min(left, block-at%block)
			if d, s := size(count); isSpecial(marks, first) || !f.turnPart(w, dst[:d], src[:s], f.scale(exponentMark(marks, first), encodes), encodes) {
				f.turnEach(dst, src, marks, at, count, encodes)
			}
		case fastest.turnFixed(dst, src, scales[:n], f, encodes):
		case f.word == Int32 && aligned[int32](dst) && aligned[int32](src):
			for i, scale := range scales[:n] {
				d, s := dst[i*FixedBlock:][:FixedBlock], src[i*FixedBlock:][:FixedBlock]
				if encodes {
					quantize(view[int32](d), view[float32](s), scale)
				} else {
					expand(view[float32](d), view[int32](s), scale)
				}
			}
		default:
			f.turnEach(dst, src, marks, at, count, encodes)
		}
		d, s := size(count)
		dst, src, at, left = dst[d:], src[s:], at+count, left-count
	}
}

// bench is memory for what kernels take, which would be allocated anew each time.
type bench struct {
	scales  [32]float64
	found   [32]uint64
	in, out [FixedBlock]byte
}

var benches = sync.Pool{New: func() any { return new(bench) }}

// turnPart turns a part of a block as if it were one, if the processor has instructions for that.
func (f Fixed) turnPart(w *bench, dst, src []byte, scale float64, encodes bool) bool {
	if f.from.Size() != f.word.Size() {
		return false
	}
	copy(w.in[:], src)
	w.scales[0] = scale
	if !fastest.turnFixed(w.out[:], w.in[:], w.scales[:1], f, encodes) {
		return false
	}
	copy(dst, w.out[:])
	return true
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
func (f Fixed) scale(exponent uint32, encodes bool) float64 {
	switch s := int(exponent); {
	case s == 0:
		return 0
	case f.from == Float32 && encodes:
		return pow2(int(f.bits) + 126 - s)
	case f.from == Float32:
		return pow2(s - 126 - int(f.bits))
	case encodes:
		return pow2(1024 - s)
	default:
		return pow2(s - 1023)
	}
}

// constant returns the factor of all blocks.
func (f Fixed) constant(mantissa uint8, encodes bool) float64 {
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

// turnEach turns n elements one by one.
func (f Fixed) turnEach(dst, src, marks []byte, at, n int, encodes bool) {
	from, word, block := f.from.Size(), f.word.Size(), f.Block()
	for n > 0 {
		b := at / block
		many := min(n, block-at%block)
		scale, special := f.scale(exponentMark(marks, b), encodes), isSpecial(marks, b)
		mantissa := f.bits
		if special {
			mantissa = f.mixed
		}
		constant := f.constant(mantissa, encodes)
		for i := range many {
			switch {
			case encodes && special:
				f.putWord(dst[i*word:], f.mix(f.number(src[i*from:]), scale, constant))
			case encodes:
				f.putWord(dst[i*word:], int64(math.RoundToEven(f.number(src[i*from:])*scale*constant)))
			default:
				m, kind := f.getWord(src[i*word:]), 0.0
				if special {
					m, kind = f.unmix(m)
				}
				f.putNumber(dst[i*from:], m, kind, scale, constant)
			}
		}
		d, s := many*word, many*from
		if !encodes {
			d, s = s, d
		}
		dst, src, at, n = dst[d:], src[s:], at+many, n-many
	}
}

func (f Fixed) number(src []byte) float64 {
	if f.from == Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(src)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(src))
}

func (f Fixed) putWord(dst []byte, m int64) {
	if f.word == Int32 {
		binary.LittleEndian.PutUint32(dst, uint32(m))
	} else {
		binary.LittleEndian.PutUint64(dst, uint64(m))
	}
}

func (f Fixed) getWord(src []byte) int64 {
	if f.word == Int32 {
		return int64(int32(binary.LittleEndian.Uint32(src)))
	}
	return int64(binary.LittleEndian.Uint64(src))
}

// putNumber rounds a sum, unless kind, an infinity or a NaN, takes its place.
//
// A mantissa is rounded to the type first, and then scaled, which is exact: what is subnormal afterwards has a
// sum of so few bits that nothing was rounded before.
func (f Fixed) putNumber(dst []byte, m int64, kind, scale, constant float64) {
	if f.from == Float32 {
		sum := float64(m)
		if f.word == Int64 { // which a float64 may not hold
			sum = float64(float32(m))
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

// In a block with NaNs or infinities, a word has a sum in its lower bits, and in the upper ones how many
// members have had +Inf or NaN there, and -Inf or NaN, as a number of two digits.

// mix returns the word of a number in such a block.
func (f Fixed) mix(x, scale, constant float64) int64 {
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
func (f Fixed) unmix(word int64) (m int64, kind float64) {
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
