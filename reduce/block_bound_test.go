package reduce

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// blocks is a chunk on its way through a tree: of a member, or a partial.
type blocks struct {
	vector   []byte
	exponent int8
}

// drawTree folds the members' chunks over a tree of any shape.
func drawTree(t *rapid.T, members []blocks) blocks {
	for len(members) > 1 {
		var level []blocks
		for least := 2; len(members) > 0; least = 1 { // so that every level has fewer
			n := rapid.IntRange(least, len(members)).Draw(t, "children")
			var in [][]byte
			var exponents []int8
			for _, m := range members[:n] {
				in, exponents = append(in, m.vector), append(exponents, m.exponent)
			}
			dst := make([]byte, len(in[0]))
			level = append(level, blocks{dst, SumBlocks(dst, in, exponents)})
			members = members[n:]
		}
		members = level
	}
	return members[0]
}

// drawValues draws a member's chunk: values of one size, or of any, with zeros.
func drawValues(t *rapid.T, n int) []float32 {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	size := rapid.IntRange(-149, 127).Draw(t, "size")
	spread := rapid.SampledFrom([]int{0, 3, 30, 300}).Draw(t, "spread")
	v := make([]float32, n)
	for i := range v {
		x := math.Ldexp(r.Float64()*2-1, size-r.IntN(spread+1))
		if v[i] = float32(x); r.IntN(9) == 0 {
			v[i] = 0
		}
		if r.IntN(40) == 0 {
			v[i] = float32(math.Ldexp(1-0x1p-24, size+1)) // all ones
		}
	}
	return v
}

// TestDocumentedBound: over trees of any shape, each value differs from the
// exact sum by less than n * 2^E, before it is rounded to float32, E is no more
// than docs/functions.md says, and what is above the sum is above by half of
// that at most. Nothing wraps.
func TestDocumentedBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 70)).Draw(t, "members")
		const elements = 12
		exact := make([]*big.Rat, elements)
		for i := range exact {
			exact[i] = new(big.Rat)
		}
		var members []blocks
		greatest := 0.0
		for range n {
			v := drawValues(t, elements)
			for i, x := range v {
				exact[i].Add(exact[i], new(big.Rat).SetFloat64(float64(x)))
				greatest = max(greatest, math.Abs(float64(x)))
			}
			b := vectorOf(v)
			members = append(members, blocks{b, EncodeBlock(b, b, n)})
		}
		sum := drawTree(t, members)
		if greatest == 0 {
			if sum.exponent != BlockZero {
				t.Fatalf("the sum of zeros has the exponent %d", sum.exponent)
			}
			return
		}
		step := power(int(sum.exponent))
		most := new(big.Rat).Quo(
			new(big.Rat).Mul(new(big.Rat).SetFloat64(greatest), big.NewRat(int64(n), 1)),
			new(big.Rat).Sub(power(30), big.NewRat(int64(n), 4)))
		if step.Cmp(most) > 0 && step.Cmp(power(-127)) > 0 {
			t.Fatalf("%d members, the greatest value %x: exponent %d", n, greatest, sum.exponent)
		}
		bound := new(big.Rat).Mul(step, big.NewRat(int64(n), 1))
		half := new(big.Rat).Mul(bound, big.NewRat(1, 2))
		for i, m := range elementsOf[int32](sum.vector) {
			got := new(big.Rat).Mul(new(big.Rat).SetInt64(int64(m)), step)
			off := new(big.Rat).Sub(got, exact[i])
			if off.Cmp(half) > 0 || new(big.Rat).Neg(off).Cmp(bound) >= 0 {
				t.Fatalf("%d members, exponent %d: %v, and exactly %v", n, sum.exponent, got.FloatString(40), exact[i].FloatString(40))
			}
		}
	})
}

// TestBoundIsReached: rounding down costs nearly what the document allows.
func TestBoundIsReached(t *testing.T) {
	const n = 64
	in, exponents := make([][]byte, n), make([]int8, n)
	for i := range in {
		x := float32(-0x1p-100) // each is rounded down to a whole step
		if i == 0 {
			x = 1
		}
		in[i] = vectorOf([]float32{x})
		exponents[i] = EncodeBlock(in[i], in[i], n)
	}
	dst := make([]byte, 4)
	e := SumBlocks(dst, in, exponents)
	got := float64(elementsOf[int32](dst)[0]) * pow2(int(e))
	if want := 1 - (n-1)*pow2(int(e)); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNoSumWraps: members whose values are all as large as the limit, of both
// signs, in one fold, and in two with unequal exponents.
func TestNoSumWraps(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 100, 128, 129, 1000} {
		limit := int32(math.MaxInt32 / n)
		for _, m := range []int32{limit, -limit} {
			for _, e := range []int8{0, -1, -7, -60} { // of all members but the first
				in, exponents := make([][]byte, n), make([]int8, n)
				want := new(big.Int)
				for i := range in {
					in[i] = vectorOf([]int32{m})
					by := uint(0)
					if i > 0 {
						exponents[i], by = e, min(uint(-int(e)), 31)
					}
					want.Add(want, new(big.Int).Rsh(big.NewInt(int64(m)), by))
				}
				dst := make([]byte, 4)
				SumBlocks(dst, in, exponents)
				if got := elementsOf[int32](dst)[0]; int64(got) != want.Int64() {
					t.Errorf("%d members of %d, exponent %d: %d, want %v", n, m, e, got, want)
				}
			}
		}
	}
}
