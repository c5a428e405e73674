package reduce

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a defined pair and vectors for it.
type drawn struct {
	f  Function
	e  Type
	in [][]byte
}

// draw draws a pair that fits, and one to nine vectors.
func draw(t *rapid.T, fits func(Function, Type) bool) drawn {
	var pairs []drawn
	for f := Sum; f.Valid(); f++ {
		for e := Int32; e.Valid(); e++ {
			if Defined(f, e) && e != Block32 && fits(f, e) {
				pairs = append(pairs, drawn{f: f, e: e})
			}
		}
	}
	d := rapid.SampledFrom(pairs).Draw(t, "pair")
	k, n := rapid.IntRange(1, 9).Draw(t, "vectors"), rapid.IntRange(0, 300).Draw(t, "elements")
	d.in = randomVectors(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), d.f, d.e, k, n)
	return d
}

func (d drawn) reduce(t *rapid.T, in ...[]byte) []byte {
	kernel, err := KernelOf(d.f, d.e)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, len(in[0]))
	kernel(dst, in)
	return dst
}

// TestFoldsLeft: k vectors at once give the bits that two at a time give, from
// the left. Types of 16 bits are left out where they round: in between, k
// vectors at once have more bits.
func TestFoldsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, func(f Function, e Type) bool {
			return e.Size() > 2 || f != Sum && f != Product
		})
		acc := d.reduce(t, d.in[0])
		for _, v := range d.in[1:] {
			acc = d.reduce(t, acc, v)
		}
		if got := d.reduce(t, d.in...); !bytes.Equal(got, acc) {
			t.Fatalf("%v of %v: at once %x, one by one %x", d.f, d.e, got, acc)
		}
	})
}

// TestOrderIsNothing: where nothing is rounded, neither the order of the
// vectors nor how they are grouped matters.
func TestOrderIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, func(f Function, e Type) bool {
			return !isFloat(e) || f != Sum && f != Product
		})
		want := d.reduce(t, d.in...)
		cut := rapid.IntRange(1, len(d.in)).Draw(t, "cut")
		parts := [][]byte{d.reduce(t, d.in[:cut]...)}
		if cut < len(d.in) {
			parts = append(parts, d.reduce(t, d.in[cut:]...))
		}
		if got := d.reduce(t, parts...); !bytes.Equal(got, want) {
			t.Fatalf("%v of %v: in two parts %x, else %x", d.f, d.e, got, want)
		}
		shuffled := rapid.Permutation(slices.Clone(d.in)).Draw(t, "order")
		if got := d.reduce(t, shuffled...); !bytes.Equal(got, want) {
			t.Fatalf("%v of %v: shuffled %x, else %x", d.f, d.e, got, want)
		}
	})
}

// TestTwoCommute: two vectors give the same bits either way, whatever the type.
func TestTwoCommute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, func(Function, Type) bool { return true })
		a, b := d.in[0], d.in[len(d.in)-1]
		if x, y := d.reduce(t, a, b), d.reduce(t, b, a); !bytes.Equal(x, y) {
			t.Fatalf("%v of %v: %x and %x", d.f, d.e, x, y)
		}
	})
}

// TestSettledStays: a result, reduced alone, is the same again.
func TestSettledStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, func(Function, Type) bool { return true })
		once := d.reduce(t, d.in...)
		if twice := d.reduce(t, once); !bytes.Equal(once, twice) {
			t.Fatalf("%v of %v: %x becomes %x", d.f, d.e, once, twice)
		}
	})
}

// FuzzKernel lets the fuzzer choose the pair, the number of vectors, their
// alignment and their bytes, and compares with the oracle.
func FuzzKernel(f *testing.F) {
	f.Add(uint8(Sum), uint8(Float32), uint8(3), uint8(1), bytes.Repeat([]byte{0, 0, 0xc0, 0x7f, 1, 0, 0x80, 0xff}, 24))
	f.Add(uint8(Product), uint8(Float64), uint8(2), uint8(0), bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 8))
	f.Add(uint8(Sum), uint8(Float16), uint8(5), uint8(3), bytes.Repeat([]byte{0xff, 0x7b, 1, 0x80}, 30))
	f.Add(uint8(Max), uint8(BFloat16), uint8(1), uint8(2), []byte{0x81, 0x7f, 0, 0x80})
	f.Add(uint8(LXor), uint8(Int64), uint8(4), uint8(7), bytes.Repeat([]byte{0, 1, 0}, 64))
	f.Add(uint8(MinLoc), uint8(Float32), uint8(3), uint8(8), bytes.Repeat([]byte{0, 0, 0x80, 0x7f, 9}, 80))
	f.Fuzz(func(t *testing.T, function, element, k, align uint8, data []byte) {
		fn, e := Function(function), Type(element)
		if !Defined(fn, e) || e == Block32 || k == 0 || k > 16 {
			return
		}
		size := ElementSize(fn, e)
		n := len(data) / int(k) / size * size
		all := make([][]byte, k)
		for j := range all {
			all[j] = data[j*n:][:n]
		}
		want := make([]byte, 0, n)
		if n > 0 {
			want = reference(fn, e, all)
		}
		reduceGuarded(t, kernelOf(t, fn, e), all, want, n, int(align%16), int(align/16))
	})
}
