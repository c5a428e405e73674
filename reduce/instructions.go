package reduce

import "bytes"

// A pass reduces what the k vectors whose slices lie at in have from the byte
// from up to the byte to, and writes it to dst; what it wants is reported in package
// asm. Vectors that are far come from memory.
type pass func(dst *byte, in *[]byte, k, from, to int, far bool)

type passes [len(defined)][len(typeNames)]pass

// piece is the bytes of each vector that a pass takes at a time, since the
// scheduler cannot interrupt it: some microseconds for every vector.
const piece = 64 << 10

// instructions is a set of a processor's instructions, and the kernels in its
// assembly. A nil one has none.
type instructions struct {
	name string
	// step is the least bytes of a vector that a pass takes, if its values are
	// in registers as they are in vectors. Shorter ones are left to the twin.
	step          int
	passes        passes
	locateInteger func(dst *byte, in *[]byte, order *[4]uint64, k, from, to int, far bool)
	locateFloat   func(dst *byte, in *[]byte, order *[4]uint64, k, from, to int, far bool)
	sumBlock32    func(dst *byte, in *[]byte, exponents *int8, exponent, k, from, to int, far bool)
	fixed         fixedKernels
	narrow, widen [len(typeNames)]func(dst, src *byte, steps int) // nil but for types of 16 bits; steps of so many binary32 as there are in
	lanes         int                                             // a register
}

// fixedKernels are those of Fixed and of Block32, over whole blocks or units; see package asm.
type fixedKernels struct {
	largest        func(src *byte, blocks int) (bits uint32)
	mark           [len(typeNames)]markKernel // of Float32 and Float64
	encode, decode [forms]turnKernel
}

type (
	markKernel func(dst, src *byte, blocks int) (done int)
	turnKernel func(dst, src, marks *byte, origin uint64, constant float64, at, units int) (done int)
)

// fastest is the set whose kernels are used, nil if this machine runs none.
var fastest = func() *instructions {
	for _, s := range instructionSets() {
		return s
	}
	return nil
}()

// kernel returns the kernel of f on t in the set's assembly. The bits of its
// results are those of twin, the one in Go, which it is if the set has none.
func (s *instructions) kernel(f Function, t Type, twin Kernel) Kernel {
	if s == nil {
		return twin
	}
	size, run, least := ElementSize(f, t), s.passes[f][t], s.step
	switch {
	case f.Located():
		run, least = s.locate(f, t), 2*s.step // values in one register, locations in another
	case size == 2:
		least = s.step / 2 // values have twice their size in registers
	}
	return func(dst []byte, in [][]byte) {
		check(dst, in, size)
		n := len(dst)
		if n < least {
			twin(dst, in)
			return
		}
		far := isFar(dst, in)
		for from := 0; from < n; {
			to := pieceFrom(from, n, least)
			run(&dst[from], &in[0], len(in), from, to, far)
			from = to
		}
	}
}

// far is the bytes of vectors, the result among them, that no cache holds. It
// is a variable so that tests can do with less.
var far = 32 << 20

// isFar distinguishes whether the vectors come from memory.
func isFar(dst []byte, in [][]byte) bool { return (len(in)+1)*len(dst) >= far }

// pieceFrom returns the end of the piece that begins at from: no less than
// least is left behind it of n bytes, or nothing.
func pieceFrom(from, n, least int) (to int) {
	if to = from + piece; n-to < least {
		return n
	}
	return to
}

// locate returns the pass of f, a location function, on t. Ranks are as those
// of ordering, but signed, and in the upper bits.
func (s *instructions) locate(f Function, t Type) pass {
	o := orderingOf(t, f == MaxLoc)
	shift := uint64(64 - 8*t.Size())
	words := [4]uint64{shift, o.reverse, o.infinity << shift, o.nan}
	locate := s.locateInteger
	if o.float {
		locate = s.locateFloat
	} else if o.sign == 0 {
		words[1] ^= 1 << 63
	}
	return func(dst *byte, in *[]byte, k, from, to int, far bool) {
		locate(dst, in, &words, k, from, to, far)
	}
}

// sumBlocks is SumBlocks without the checks, if the set can do it.
func (s *instructions) sumBlocks(dst []byte, in [][]byte, exponents []int8, exponent int8) bool {
	if s == nil || len(dst) < s.step {
		return false
	}
	far := isFar(dst, in)
	for from := 0; from < len(dst); {
		to := pieceFrom(from, len(dst), s.step)
		s.sumBlock32(&dst[from], &in[0], &exponents[0], int(exponent), len(in), from, to, far)
		from = to
	}
	return true
}

// markFixed sets the marks of as many whole blocks as the set can do one after the other, and returns how many.
func (s *instructions) markFixed(dst, src []byte, from Type) (blocks int) {
	if blocks = min(len(src), piece) / FixedBlock; s == nil || blocks == 0 {
		return 0
	}
	return s.fixed.mark[from](&dst[0], &src[0], blocks)
}

// turnFixed turns as many whole units, from one on, as the set can do one after the other, and returns how many.
func (s *instructions) turnFixed(dst, src, marks []byte, unit, units int, f *Fixed, encodes bool) int {
	if s == nil || units == 0 {
		return 0
	}
	kernels := &s.fixed.decode
	if encodes {
		kernels = &s.fixed.encode
	}
	return kernels[f.form()](&dst[0], &src[0], &marks[0], f.origin(encodes), f.constant(f.bits, encodes), unit, min(units, piece/FixedBlock))
}

// turnBlock turns elements of Block32, or into these, by 2^exponent, as far as the set can do it, and returns how many
// bytes it has done.
func (s *instructions) turnBlock(dst, src []byte, exponent int, encodes bool) (done int) {
	if s == nil {
		return 0
	}
	turn, origin := s.fixed.decode[float32AsInt32], 1023+exponent-1 // the mark is added to it,
	if encodes {
		turn, origin = s.fixed.encode[float32AsInt32], 1023+exponent+1 // or taken from it
	}
	for len(src)-done >= FixedBlock {
		n := min((len(src)-done)/FixedBlock, len(plainMarks)/markSize)
		turn(&dst[done], &src[done], &plainMarks[0], uint64(origin), 1, 0, n)
		done += n * FixedBlock
	}
	return done
}

// plainMarks are marks of blocks with the exponent 1.
var plainMarks = bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 256)

// largest returns the bits of the greatest magnitude of Float32 in src as far as the set can do it, and how many bytes
// it has done.
func (s *instructions) largest(src []byte) (bits uint32, done int) {
	if s == nil {
		return 0, 0
	}
	for len(src)-done >= FixedBlock {
		n := min(len(src)-done, piece) / FixedBlock
		bits = max(bits, s.fixed.largest(&src[done], n))
		done += n * FixedBlock
	}
	return bits, done
}
