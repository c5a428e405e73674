package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// referenceEncode is EncodeBlock by what docs/functions.md says: it looks for the
// exponent by trying. A float64 holds every product exactly.
func referenceEncode(v []float32, members int) (mantissas []int32, exponent int8) {
	mantissas = make([]int32, len(v))
	zero := true
	for _, x := range v {
		if x-x != 0 {
			return mantissas, BlockNaN
		}
		zero = zero && x == 0
	}
	if zero {
		return mantissas, BlockZero
	}
	limit := float64(math.MaxInt32 / members)
	greatest := 0.0
	for _, x := range v {
		greatest = max(greatest, math.Abs(float64(x)))
	}
	// Far below that, where all are beyond 40 bits, none fits.
	for exponent = int8(max(-127, math.Ilogb(greatest)-40)); ; exponent++ {
		fits := true
		for i, x := range v {
			m := math.RoundToEven(math.Ldexp(float64(x), -int(exponent)))
			fits = fits && math.Abs(m) <= limit
			mantissas[i] = int32(int64(m))
		}
		if fits {
			return mantissas, exponent
		}
	}
}

// power returns 2^e.
func power(e int) *big.Rat {
	p := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(e, -e))))
	if e < 0 {
		p.Inv(p)
	}
	return p
}

// referenceDecode is DecodeBlock of one mantissa.
func referenceDecode(m int32, exponent int8) float32 {
	switch exponent {
	case BlockZero:
		return 0
	case BlockNaN:
		return math.Float32frombits(nan32)
	}
	x, _ := new(big.Rat).Mul(new(big.Rat).SetInt64(int64(m)), power(int(exponent))).Float32()
	return x
}

// referenceSum is SumBlocks in numbers of any size.
func referenceSum(in [][]int32, exponents []int8) ([]int32, int8) {
	greatest := exponents[0]
	for _, e := range exponents {
		greatest = max(greatest, e)
	}
	out := make([]int32, len(in[0]))
	for i := range out {
		sum := new(big.Int)
		for j := range in {
			by := uint(min(int(greatest)-int(exponents[j]), 31))
			sum.Add(sum, new(big.Int).Rsh(big.NewInt(int64(in[j][i])), by)) // rounds down
		}
		out[i] = int32(uint32(new(big.Int).And(sum, big.NewInt(math.MaxUint32)).Uint64()))
	}
	return out, greatest
}

// vectorOf returns v as a vector.
func vectorOf[T Element](v []T) []byte {
	b := make([]byte, len(v)*TypeOf[T]().Size())
	Put(b, v)
	return b
}

func elementsOf[T Element](b []byte) []T {
	v := make([]T, len(b)/TypeOf[T]().Size())
	Get(v, b)
	return v
}

// eachOrder runs test as it is on this machine, and without its assembly, in
// this machine's order and in the way of those whose order is not that of
// vectors.
func eachOrder(t *testing.T, test func(t *testing.T)) {
	defer func(set *instructions, own bool) { fastest, littleEndian = set, own }(fastest, littleEndian)
	t.Run("fastest", test)
	fastest = nil
	for _, own := range []bool{true, false} {
		if own && !littleEndian {
			continue
		}
		littleEndian = own
		t.Run(fmt.Sprintf("view=%v", own), test)
	}
}

var (
	infinity32 = float32(math.Inf(1))
	tiny       = float32(math.SmallestNonzeroFloat32)
	groups     = []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 100, 127, 128, 129, 255, 256, 257, 1000, 1 << 16, 1<<23 + 1, 1 << 24}
)

// edges are values at which something changes: of every binade the ends and what
// is beside them, subnormals, zeros, the largest, infinities and NaNs.
func edges() []float32 {
	all := []float32{0, math.Float32frombits(1 << 31), infinity32, -infinity32}
	for _, nan := range []uint32{nan32, nan32 | 1, inf32 | 1, 0xffffffff, 0xff800001} {
		all = append(all, math.Float32frombits(nan))
	}
	for e := range uint32(255) {
		for _, fraction := range []uint32{0, 1, 2, 1 << 22, 1<<22 + 1, 1<<23 - 2, 1<<23 - 1} {
			x := math.Float32frombits(e<<23 | fraction)
			all = append(all, x, -x)
		}
	}
	for bit := range uint32(23) {
		x := math.Float32frombits(1 << bit)
		all = append(all, x, -x)
	}
	return all
}

func checkEncode(t *testing.T, v []float32, members int) {
	t.Helper()
	want, exponent := referenceEncode(v, members)
	dst := vectorOf(v)
	if e := EncodeBlock(dst, dst, members); e != exponent || !bytes.Equal(dst, vectorOf(want)) {
		t.Fatalf("%x of %d members is %v with the exponent %d, want %v with %d", v, members, elementsOf[int32](dst), e, want, exponent)
	}
	back := make([]byte, len(dst))
	DecodeBlock(back, dst, exponent)
	for i, x := range elementsOf[float32](back) {
		if w := referenceDecode(want[i], exponent); math.Float32bits(x) != math.Float32bits(w) {
			t.Fatalf("mantissa %d with the exponent %d is %x, want %x", want[i], exponent, x, w)
		}
	}
}

// TestEncodeEdges turns every edge, alone and beside smaller values, for groups
// of all kinds of sizes.
func TestEncodeEdges(t *testing.T) {
	eachOrder(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		all := edges()
		for i, x := range all {
			if !littleEndian && i%5 != 0 {
				continue
			}
			for _, members := range []int{groups[i%len(groups)], 8} {
				checkEncode(t, []float32{x}, members)
				checkEncode(t, []float32{x, x / 3, -x / 1000, x * 0x1p-24, x * 0x1p-31, -x * 0x1.8p-30, all[r.IntN(len(all))]}, members)
			}
		}
	})
}

// TestEncodeLimits: the limit of a group's mantissas is reached and not passed,
// also by what rounds up to it.
func TestEncodeLimits(t *testing.T) {
	for _, test := range []struct {
		x        float32
		members  int
		mantissa int32
		exponent int8
	}{
		{1, 1, 1 << 30, -30},
		{1, 2, 1 << 29, -29},
		{1, 3, 1 << 29, -29},
		{1.25, 3, 5 << 27, -29}, // 671088640 of at most 715827882
		{1.5, 3, 3 << 27, -28},
		{1, 1 << 24, 64, -6},
		{-1, 1 << 24, -64, -6},
		{127.4, 1 << 24, 127, 0},
		{127.5, 1 << 24, 64, 1}, // it would round to 128
		{-127.5, 1 << 24, -64, 1},
		{math.MaxFloat32, 1, (1<<24 - 1) << 7, 97},
		{math.MaxFloat32, 1 << 24, 64, 122},
		{0x1p-126, 1, 2, -127},
		{tiny, 1, 0, -127}, // not a chunk of zeros, but below half of the least step
		{0x1p-128, 8, 0, -127},
		{0x1.000002p-127, 8, 1, -127},
		{0x1.8p-127, 8, 2, -127},
		{-0x1.8p-127, 8, -2, -127},
	} {
		dst := vectorOf([]float32{test.x})
		if e := EncodeBlock(dst, dst, test.members); e != test.exponent || elementsOf[int32](dst)[0] != test.mantissa {
			t.Errorf("%x of %d members is %v * 2^%d, want %d * 2^%d", test.x, test.members, elementsOf[int32](dst), e, test.mantissa, test.exponent)
		}
		checkEncode(t, []float32{test.x}, test.members)
	}
}

// TestDecodeEdges: every exponent with every kind of mantissa.
func TestDecodeEdges(t *testing.T) {
	mantissas := []int32{0, math.MinInt32, math.MinInt32 + 1, math.MaxInt32}
	for bit := range 31 {
		for _, m := range []int32{1 << bit, 1<<bit + 1, 1<<bit - 1, 3 << bit >> 1} {
			mantissas = append(mantissas, m, -m)
		}
	}
	eachOrder(t, func(t *testing.T) {
		src := vectorOf(mantissas)
		dst := make([]byte, len(src))
		for e := math.MinInt8; e <= math.MaxInt8; e++ {
			DecodeBlock(dst, src, int8(e))
			for i, x := range elementsOf[float32](dst) {
				if w := referenceDecode(mantissas[i], int8(e)); math.Float32bits(x) != math.Float32bits(w) {
					t.Fatalf("%d * 2^%d is %x, want %x", mantissas[i], e, x, w)
				}
			}
		}
	})
}

// TestBlockPlaced: vectors of all lengths and alignments, in place or not, and
// nothing beside them is touched.
func TestBlockPlaced(t *testing.T) {
	eachOrder(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range lengths() {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(r.NormFloat64())
			}
			want, exponent := referenceEncode(v, 8)
			wantBack := make([]float32, n)
			for i := range want {
				wantBack[i] = referenceDecode(want[i], exponent)
			}
			for align := range 5 {
				src, dst := place(vectorOf(v), align), place(make([]byte, 4*n), (align*3)%16)
				if e := EncodeBlock(dst.vector, src.vector, 8); e != exponent || !bytes.Equal(dst.vector, vectorOf(want)) {
					t.Fatalf("%d elements at %d: not what is wanted", n, align)
				}
				if !bytes.Equal(src.vector, vectorOf(v)) {
					t.Fatalf("%d elements at %d: the input has changed", n, align)
				}
				DecodeBlock(src.vector, dst.vector, exponent)
				if !bytes.Equal(src.vector, vectorOf(wantBack)) || !src.intact() || !dst.intact() {
					t.Fatalf("%d elements at %d: not what was turned, or beyond it", n, align)
				}
				DecodeBlock(dst.vector, dst.vector, exponent)
				if !bytes.Equal(dst.vector, src.vector) {
					t.Fatalf("%d elements at %d: in place it differs", n, align)
				}
			}
		}
	})
}

// drawBlocks draws mantissas and exponents of any kind, which need not be a
// member's.
func drawBlocks(t *rapid.T, k, n int) (in [][]int32, exponents []int8) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	one := rapid.Bool().Draw(t, "one exponent")
	for i := range k {
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(r.Uint32()) >> r.IntN(32)
		}
		in = append(in, v)
		exponents = append(exponents, rapid.OneOf(rapid.Int8(), rapid.Int8Range(-3, 3), rapid.SampledFrom([]int8{BlockZero, BlockNaN})).Draw(t, "exponent"))
		if one {
			exponents[i] = exponents[0]
		}
	}
	return in, exponents
}

// TestSumBlocksIsLikeOracle: at any alignment, and with the result in place of
// one of the vectors.
func TestSumBlocksIsLikeOracle(t *testing.T) {
	eachOrder(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			k, n := rapid.IntRange(1, 9).Draw(t, "vectors"), rapid.SampledFrom(lengths()).Draw(t, "elements")
			in, exponents := drawBlocks(t, k, n)
			want, exponent := referenceSum(in, exponents)
			step := rapid.SampledFrom([]int{1, 4}).Draw(t, "step of alignments")
			alignment := rapid.Custom(func(t *rapid.T) int { return rapid.IntRange(0, 3).Draw(t, "alignment") * step })
			dst := place(make([]byte, 4*n), alignment.Draw(t, "result"))
			vectors := make([][]byte, k)
			for i := range in {
				vectors[i] = place(vectorOf(in[i]), alignment.Draw(t, "vector")).vector
			}
			if same := rapid.IntRange(-1, k-1).Draw(t, "in place of"); same >= 0 {
				copy(dst.vector, vectors[same])
				vectors[same] = dst.vector
			}
			e := SumBlocks(dst.vector, vectors, exponents)
			if e != exponent || !bytes.Equal(dst.vector, vectorOf(want)) || !dst.intact() {
				t.Fatalf("exponents %v: got %v with %d, want %v with %d", exponents, elementsOf[int32](dst.vector), e, want, exponent)
			}
		})
	})
}

// TestSumBlocksOrder: the order of the vectors is nothing to the bits.
func TestSumBlocksOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, exponents := drawBlocks(t, rapid.IntRange(1, 9).Draw(t, "vectors"), 40)
		sum := func(order []int) []byte {
			vectors, es := make([][]byte, len(in)), make([]int8, len(in))
			for i, j := range order {
				vectors[i], es[i] = vectorOf(in[j]), exponents[j]
			}
			dst := make([]byte, 160)
			return append(dst, byte(SumBlocks(dst, vectors, es)))
		}
		order := make([]int, len(in))
		for i := range order {
			order[i] = i
		}
		want := sum(order)
		if got := sum(rapid.Permutation(order).Draw(t, "order")); !bytes.Equal(got, want) {
			t.Fatalf("%x, and in another order %x", want, got)
		}
	})
}

func TestBlockPanics(t *testing.T) {
	b := func(n int) []byte { return make([]byte, n) }
	for name, call := range map[string]func(){
		"encode: no members":        func() { EncodeBlock(b(4), b(4), 0) },
		"encode: too many members":  func() { EncodeBlock(b(4), b(4), 1<<24+1) },
		"encode: part of element":   func() { EncodeBlock(b(6), b(6), 1) },
		"encode: other length":      func() { EncodeBlock(b(8), b(4), 1) },
		"decode: part of element":   func() { DecodeBlock(b(6), b(6), 1) },
		"decode: other length":      func() { DecodeBlock(b(4), b(8), 1) },
		"sum: none":                 func() { SumBlocks(b(4), nil, nil) },
		"sum: an exponent too few":  func() { SumBlocks(b(4), [][]byte{b(4), b(4)}, []int8{0}) },
		"sum: an exponent too many": func() { SumBlocks(b(4), [][]byte{b(4)}, []int8{0, 0}) },
		"sum: part of element":      func() { SumBlocks(b(6), [][]byte{b(6)}, []int8{0}) },
		"sum: other length":         func() { SumBlocks(b(4), [][]byte{b(8)}, []int8{0}) },
	} {
		if !panics(call) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func TestBlockDoesNotAllocate(t *testing.T) {
	v, w := make([]byte, 1432), make([]byte, 1432)
	Put(v, make([]float32, 358))
	v[2] = 1
	in, exponents := [][]byte{v, w, v}, []int8{0, -3, 5}
	if n := testing.AllocsPerRun(5, func() {
		e := EncodeBlock(w, v, 8)
		exponents[1] = e
		SumBlocks(w, in, exponents)
		DecodeBlock(w, w, e)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzBlock lets the fuzzer choose values, the size of the group, and how the
// vectors lie, and compares with the oracles.
func FuzzBlock(f *testing.F) {
	f.Add(uint32(8), uint8(0), vectorOf([]float32{1, -0.375, 0, tiny, math.MaxFloat32}))
	f.Add(uint32(1<<24-1), uint8(3), vectorOf([]float32{127.5, -1e-30}))
	f.Add(uint32(0), uint8(5), vectorOf([]float32{infinity32, 1}))
	f.Add(uint32(2), uint8(1), vectorOf([]float32{0x1.000002p-127, -0x1p-128}))
	f.Fuzz(func(t *testing.T, group uint32, align uint8, data []byte) {
		members := int(group%(1<<24)) + 1
		data = data[:min(len(data), 400)/4*4]
		v := elementsOf[float32](data)
		want, exponent := referenceEncode(v, members)
		src, dst := place(data, int(align%16)), place(make([]byte, len(data)), int(align/16))
		if e := EncodeBlock(dst.vector, src.vector, members); e != exponent || !bytes.Equal(dst.vector, vectorOf(want)) || !dst.intact() {
			t.Fatalf("%x of %d members is %v with the exponent %d, want %v with %d", v, members, elementsOf[int32](dst.vector), e, want, exponent)
		}
		// Read as mantissas, the same bytes are any at all.
		DecodeBlock(dst.vector, src.vector, int8(align))
		for i, x := range elementsOf[float32](dst.vector) {
			if w := referenceDecode(elementsOf[int32](data)[i], int8(align)); math.Float32bits(x) != math.Float32bits(w) {
				t.Fatalf("%d * 2^%d is %x, want %x", elementsOf[int32](data)[i], int8(align), x, w)
			}
		}
	})
}

// TestBlockIsLikeTwin compares all sets of instructions with Go, for every length up to some blocks, at all
// alignments, in place and not, and guards both ends.
func TestBlockIsLikeTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	const most = 5 * FixedBlock / 4
	for round := range 4 {
		whole, words := make([]byte, 4*most), make([]byte, 4*most)
		for i := range most {
			x := math.Ldexp(r.NormFloat64(), r.IntN(40)-10)
			switch {
			case round == 1 && i == 70:
				x = math.NaN()
			case round == 2:
				x = 0
			case round == 3:
				x = math.Ldexp(r.NormFloat64(), -146)
			}
			binary.LittleEndian.PutUint32(whole[4*i:], math.Float32bits(float32(x)))
			binary.LittleEndian.PutUint32(words[4*i:], r.Uint32())
		}
		for n := range most + 1 {
			align, exponent := r.IntN(16), int8(r.Uint32())
			members := 1 + r.IntN(1<<r.IntN(24))
			var want [2][]byte
			var wantExponent int8
			for i, way := range implementations() {
				way.use(t)
				out, back := place(make([]byte, 4*n), align), place(make([]byte, 4*n), align)
				src, in := place(whole[:4*n], (align+5)%16).vector, place(words[:4*n], (align+3)%16).vector
				if round == 0 {
					copy(out.vector, src)
					copy(back.vector, in)
					src, in = out.vector, back.vector
				}
				e := EncodeBlock(out.vector, src, members)
				DecodeBlock(back.vector, in, exponent)
				if i == 0 {
					want, wantExponent = [2][]byte{out.vector, back.vector}, e
				}
				if e != wantExponent || !bytes.Equal(out.vector, want[0]) || !bytes.Equal(back.vector, want[1]) || !out.intact() || !back.intact() {
					t.Fatalf("%v, round %d, %d elements, %d members, exponent %d: exponent %d, want %d, or elements differ, or what is around them", way, round, n, members, exponent, e, wantExponent)
				}
			}
		}
	}
}
