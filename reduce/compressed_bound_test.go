package reduce_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/reduce"
)

// halfTree sums numbers of 16 bits over a tree of any shape, and notes which it is.
type halfTree struct {
	*rapid.T
	of    reduce.Type
	shape reducetest.Shape
}

// fold draws the tree beneath a switch, for all of in.
func (t *halfTree) fold(in [][]byte, depth int) []byte {
	t.shape.Switches++
	t.shape.Depth = max(t.shape.Depth, depth)
	var parts [][]byte
	for rest := in; len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t.T, "beneath a child")
		part := rest[0]
		if n > 1 && (n < len(in) || depth < 9) || n == 1 && depth < 9 && rapid.IntRange(0, 9).Draw(t.T, "switch of one") == 0 {
			part = t.fold(rest[:n], depth+1)
		} else {
			n = 1
		}
		parts, rest = append(parts, part), rest[n:]
	}
	t.shape.Children = max(t.shape.Children, len(parts))
	kernel, err := reduce.KernelOf(reduce.Sum, t.of)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, len(in[0]))
	kernel(out, parts)
	return out
}

// drawCompressible draws a member's vector: numbers of one size or of many, also those that become subnormal or
// infinite as numbers of 16 bits.
func drawCompressible(t *rapid.T, half reduce.Type, n int) []float32 {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	least, most := -149, 127
	if half == reduce.Float16 {
		least, most = -30, 16
	}
	size, spread := rapid.IntRange(least, most).Draw(t, "size"), rapid.SampledFrom([]int{1, 4, 40, 300}).Draw(t, "spread")
	v := make([]float32, n)
	for i := range v {
		x := math.Ldexp(1+r.Float64(), size-r.IntN(spread))
		switch r.IntN(30) {
		case 0:
			x = 0
		case 1:
			x = math.Ldexp(1+0x1p-8, size) // a tie of bfloat16
		case 2:
			x = math.Ldexp(1+0x1p-8+0x1p-20, size) // just above it
		case 3:
			x = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
		}
		if v[i] = float32(x); r.IntN(3) == 0 {
			v[i] = -v[i]
		}
	}
	return v
}

// TestCompressedBound: over trees of switches of any shape, a compressed sum differs from the exact one by no more
// than docs/functions.md says.
func TestCompressedBound(t *testing.T) {
	held, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.SampledFrom([]reduce.Type{reduce.Float16, reduce.BFloat16}).Draw(t, "type")
		n := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 70)).Draw(t, "members")
		const elements = 24
		in := make([][]byte, n)
		for i := range in {
			in[i] = reduce.Bytes(drawCompressible(t, half, elements))
		}
		tree := &halfTree{T: t, of: half, shape: reducetest.Shape{Members: n}}
		out := reducetest.Compressed(half, in, func(in [][]byte) []byte { return tree.fold(in, 1) })
		some, err := reducetest.CheckCompressed(half, tree.shape, in, out)
		if err != nil {
			t.Fatalf("%v of %d members: %v", half, n, err)
		}
		held, all = held+some, all+elements
	})
	if held < all/2 {
		t.Errorf("of %d elements, %d were held to the bound", all, held)
	}
}

// TestCompressedBoundIsNear: what is rounded up at each step of the way reaches the bound but for a few per cent: that
// of a way with a switch less does not hold.
func TestCompressedBoundIsNear(t *testing.T) {
	for half, digits := range map[reduce.Type]int{reduce.BFloat16: 8, reduce.Float16: 11} {
		for depth := 1; depth <= 6; depth++ {
			up := float32(math.Ldexp(1+0x1p-6, -digits)) // a bit more than half of the last place of 1
			in := [][]byte{reduce.Bytes([]float32{1 + up})}
			for range depth {
				in = append(in, reduce.Bytes([]float32{up}))
			}
			kernel, err := reduce.KernelOf(reduce.Sum, half)
			if err != nil {
				t.Fatal(err)
			}
			out := reducetest.Compressed(half, in, func(in [][]byte) []byte {
				sum := in[0]
				for _, next := range in[1:] { // a chain of switches with two children
					kernel(sum, [][]byte{sum, next})
				}
				return sum
			})
			shape := reducetest.Shape{Members: depth + 1, Switches: depth, Depth: depth, Children: 2}
			if held, err := reducetest.CheckCompressed(half, shape, in, out); err != nil || held != 1 {
				t.Errorf("%v, %d switches: %d, %v", half, depth, held, err)
			}
			shape.Depth--
			if _, err := reducetest.CheckCompressed(half, shape, in, out); err == nil {
				t.Errorf("%v: %d switches are allowed no more than %d", half, depth, depth-1)
			}
		}
	}
}
