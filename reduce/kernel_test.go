package reduce

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachPair runs test for every defined pair, in each implementation.
func eachPair(t *testing.T, test func(t *testing.T, f Function, e Type)) {
	for _, way := range implementations() {
		for f := Sum; f.Valid(); f++ {
			for e := Int32; e.Valid(); e++ {
				if !Defined(f, e) || e == Block32 {
					continue
				}
				t.Run(fmt.Sprintf("%v/function=%v/type=%v", way, f, e), func(t *testing.T) {
					way.use(t)
					test(t, f, e)
				})
			}
		}
	}
}

func kernelOf(t testing.TB, f Function, e Type) Kernel {
	t.Helper()
	kernel, err := KernelOf(f, e)
	if err != nil {
		t.Fatal(err)
	}
	return kernel
}

// randomVectors returns k vectors of n elements.
func randomVectors(r *rand.Rand, f Function, e Type, k, n int) [][]byte {
	in := make([][]byte, k)
	for j := range in {
		in[j] = randomVector(r, f, e, n)
	}
	return in
}

// lengths are element counts: all up to beyond three rounds of an unrolled
// loop, and those about one and two blocks.
func lengths() (all []int) {
	for n := range 28 {
		all = append(all, n)
	}
	return append(all, block-1, block, block+1, block+13, 2*block, 2*block+9)
}

func TestKernelIsLikeOracle(t *testing.T) {
	eachPair(t, func(t *testing.T, f Function, e Type) {
		kernel, size := kernelOf(t, f, e), ElementSize(f, e)
		r := rand.New(rand.NewPCG(uint64(f), uint64(e)))
		for _, k := range []int{1, 2, 4, 8} {
			all := randomVectors(r, f, e, k, 2*block+9)
			want := reference(f, e, all)
			for _, n := range lengths() {
				for align := range 16 {
					if n >= block-1 && align%7 != 0 {
						continue
					}
					for _, step := range []int{0, 5} { // all vectors aligned alike, or not
						reduceGuarded(t, kernel, all, want, n*size, align, step)
					}
				}
			}
		}
	})
}

// reduceGuarded runs kernel on the first n bytes of the vectors all, each
// placed step bytes further from its alignment than the one before it.
func reduceGuarded(t *testing.T, kernel Kernel, all [][]byte, want []byte, n, align, step int) {
	t.Helper()
	placed, in := make([]guarded, len(all)), make([][]byte, len(all))
	for j, v := range all {
		placed[j] = place(v[:n], (align+(j+1)*step)%16)
		in[j] = placed[j].vector
	}
	dst := place(bytes.Repeat([]byte{guard}, n), align)
	kernel(dst.vector, in)
	if i := firstDifference(dst.vector, want[:n]); i >= 0 {
		t.Fatalf("k=%d bytes=%d align=%d step=%d: byte %d differs:\n got %x\nwant %x", len(all), n, align, step, i, dst.vector[i&^15:min(n, i+16)], want[i&^15:min(n, i+16)])
	}
	if !dst.intact() {
		t.Fatalf("k=%d bytes=%d align=%d step=%d: wrote beyond the result", len(all), n, align, step)
	}
	for j, g := range placed {
		if !g.intact() || !bytes.Equal(g.vector, all[j][:n]) {
			t.Fatalf("k=%d bytes=%d align=%d step=%d: wrote to vector %d or around it", len(all), n, align, step, j)
		}
	}
}

// firstDifference returns the first index at which a and b differ, or -1.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

func TestKernelInPlace(t *testing.T) {
	eachPair(t, func(t *testing.T, f Function, e Type) {
		kernel, size := kernelOf(t, f, e), ElementSize(f, e)
		r := rand.New(rand.NewPCG(uint64(f), uint64(e)+100))
		const k = 5
		in := randomVectors(r, f, e, k, block+21)
		for count := 1; count <= k; count++ {
			want := reference(f, e, in[:count])
			for same := range count {
				for _, align := range []int{0, size, 1} {
					placed := make([][]byte, count)
					for j := range placed {
						placed[j] = place(in[j], align%16).vector
					}
					dst := place(in[same], align%16)
					placed[same] = dst.vector
					kernel(dst.vector, placed)
					if i := firstDifference(dst.vector, want); i >= 0 || !dst.intact() {
						t.Fatalf("k=%d, vector %d is the result, align=%d: byte %d is wrong", count, same, align, i)
					}
				}
			}
		}
	})
}

func TestKernelDoesNotAllocate(t *testing.T) {
	eachPair(t, func(t *testing.T, f Function, e Type) {
		r := rand.New(rand.NewPCG(1, 1))
		in := randomVectors(r, f, e, 4, 300)
		dst := make([]byte, len(in[0]))
		if n := testing.AllocsPerRun(5, func() {
			kernel, _ := KernelOf(f, e)
			kernel(dst, in)
			kernel(dst, in[:2])
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestKernelPanicsOnWrongLengths(t *testing.T) {
	eachPair(t, func(t *testing.T, f Function, e Type) {
		kernel, size := kernelOf(t, f, e), ElementSize(f, e)
		for name, call := range map[string]func(){
			"no vectors":       func() { kernel(make([]byte, size), nil) },
			"part of element":  func() { kernel(make([]byte, size+1), [][]byte{make([]byte, size+1)}) },
			"shorter vector":   func() { kernel(make([]byte, 2*size), [][]byte{make([]byte, 2*size), make([]byte, size)}) },
			"longer vector":    func() { kernel(make([]byte, size), [][]byte{make([]byte, 2*size)}) },
			"only dst has any": func() { kernel(make([]byte, size), [][]byte{nil}) },
		} {
			if !panics(call) {
				t.Errorf("%s: no panic", name)
			}
		}
	})
}

func panics(call func()) (did bool) {
	defer func() { did = recover() != nil }()
	call()
	return false
}

func TestKernelOfUndefined(t *testing.T) {
	for f := range Function(255) {
		for e := range Type(255) {
			kernel, err := KernelOf(f, e)
			switch {
			case f == Sum && e == Block32:
				if kernel != nil || !errors.Is(err, ErrExponents) {
					t.Errorf("KernelOf(%v, %v): %v", f, e, err)
				}
			case Defined(f, e) && (kernel == nil || err != nil):
				t.Errorf("KernelOf(%v, %v) of a defined pair: %v", f, e, err)
			case !Defined(f, e) && (kernel != nil || !errors.Is(err, ErrUndefined)):
				t.Errorf("KernelOf(%v, %v) of an undefined pair: %v", f, e, err)
			}
		}
	}
}

// TestOrderOfSum has sums whose bits depend on the order of addition.
func TestOrderOfSum(t *testing.T) {
	for _, test := range []struct {
		e    Type
		in   []float64
		want float64
	}{
		{Float32, []float64{1 << 24, 1, -1 << 24}, 0}, // the 1 is lost
		{Float32, []float64{1 << 24, -1 << 24, 1}, 1},
		{Float32, []float64{1, 1 << 24, 1}, 1 << 24}, // two ones are lost one by one
		{Float32, []float64{1, 1, 1 << 24}, 1<<24 + 2},
		{Float64, []float64{1 << 53, 1, -1 << 53}, 0},
		{Float64, []float64{1 << 53, -1 << 53, 1}, 1},
		{Float64, []float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}, math.Inf(1)},
		{Float64, []float64{math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
		// Sixteen bits keep what fits 32 until the end.
		{Float16, []float64{2048, 1, 1}, 2050},
		{Float16, []float64{65504, 65504, -65504}, 65504},
		{Float16, []float64{1 << 15, 1.0 / 1024, -1 << 15}, 0}, // beyond 24 bits
		{BFloat16, []float64{256, 1, 1}, 258},
	} {
		if got := reduceFloats(t, Sum, test.e, test.in); got != bitsOf(test.e, test.want) {
			t.Errorf("%v sum of %v is %v, want %v", test.e, test.in, floatOf(test.e, got), test.want)
		}
	}
}

// reduceFloats returns the bits of f over single values of type e.
func reduceFloats(t *testing.T, f Function, e Type, values []float64) uint64 {
	t.Helper()
	in := make([][]byte, len(values))
	for j, x := range values {
		in[j] = make([]byte, e.Size())
		writeBits(e, in[j], bitsOf(e, x))
	}
	dst := make([]byte, e.Size())
	kernelOf(t, f, e)(dst, in)
	return readBits(e, dst)
}

// TestFloatSpecials holds what docs/functions.md says of floating-point types.
func TestFloatSpecials(t *testing.T) {
	nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	for _, e := range []Type{Float32, Float64, Float16, BFloat16} {
		largest := floatOf(e, bitsOf(e, inf)-1)
		smallest := floatOf(e, 1)
		for _, test := range []struct {
			f    Function
			in   []float64
			want float64
		}{
			{Sum, []float64{1, nan}, nan},
			{Sum, []float64{nan, 1}, nan},
			{Sum, []float64{-nan}, nan},
			{Sum, []float64{inf, -inf}, nan},
			{Sum, []float64{inf, 1}, inf},
			{Sum, []float64{largest, largest}, inf},
			{Sum, []float64{zero, zero}, zero},
			{Sum, []float64{zero, 0}, 0},
			{Sum, []float64{1, -1}, 0},
			{Sum, []float64{smallest, smallest}, 2 * smallest},
			{Product, []float64{0, inf}, nan},
			{Product, []float64{0, -1}, zero},
			{Product, []float64{largest, -2}, -inf},
			{Product, []float64{smallest, 0.25}, 0},
			{Product, []float64{smallest, 3}, 3 * smallest},
			{Min, []float64{0, zero}, zero},
			{Min, []float64{zero, 0}, zero},
			{Min, []float64{-inf, nan}, nan},
			{Min, []float64{nan, -inf}, nan},
			{Min, []float64{inf, 1}, 1},
			{Max, []float64{0, zero}, 0},
			{Max, []float64{zero, 0}, 0},
			{Max, []float64{inf, nan}, nan},
			{Max, []float64{nan, inf}, nan},
			{Max, []float64{-smallest, -inf}, -smallest},
		} {
			if got, want := reduceFloats(t, test.f, e, test.in), bitsOf(e, test.want); got != want {
				t.Errorf("%v of %v %v is %#x, want %#x", test.f, e, test.in, got, want)
			}
		}
	}
}

// TestIntegerOverflow holds what docs/functions.md says of integers.
func TestIntegerOverflow(t *testing.T) {
	for _, test := range []struct {
		f    Function
		e    Type
		a, b int64
		want int64
	}{
		{Sum, Int32, math.MaxInt32, 1, math.MinInt32},
		{Sum, Uint32, math.MaxUint32, 2, 1},
		{Sum, Int64, math.MinInt64, -1, math.MaxInt64},
		{Sum, Uint64, -1, 2, 1},
		{Product, Int32, math.MinInt32, -1, math.MinInt32},
		{Product, Uint32, 1 << 31, 2, 0},
		{Product, Int64, 1 << 62, 4, 0},
		{Product, Uint64, -1, -1, 1},
		{Min, Int32, -1, 1, -1},
		{Min, Uint32, -1, 1, 1},
		{Max, Int64, -1, 1, 1},
		{Max, Uint64, -1, 1, -1},
		{LAnd, Int64, 1 << 40, -1, 1},
		{LXor, Uint64, 1 << 40, 2, 0},
	} {
		in := [][]byte{make([]byte, test.e.Size()), make([]byte, test.e.Size())}
		writeBits(test.e, in[0], uint64(test.a))
		writeBits(test.e, in[1], uint64(test.b))
		kernelOf(t, test.f, test.e)(in[0], in)
		want := make([]byte, test.e.Size())
		writeBits(test.e, want, uint64(test.want))
		if !bytes.Equal(in[0], want) {
			t.Errorf("%v of %v %d, %d is %x, want %x", test.f, test.e, test.a, test.b, in[0], want)
		}
	}
}

// TestLocatedPadding checks that bytes between a value and its location count
// for nothing and leave as zeros.
func TestLocatedPadding(t *testing.T) {
	for e := Int32; Defined(MaxLoc, e); e++ {
		a, b := bytes.Repeat([]byte{0xff}, LocatedSize), bytes.Repeat([]byte{0x77}, LocatedSize)
		for j, v := range [][]byte{a, b} {
			writeBits(e, v, 3)
			binary.LittleEndian.PutUint64(v[8:], uint64(int64(-j)))
		}
		want := make([]byte, LocatedSize)
		writeBits(e, want, 3)
		binary.LittleEndian.PutUint64(want[8:], math.MaxUint64)
		dst := make([]byte, LocatedSize)
		kernelOf(t, MaxLoc, e)(dst, [][]byte{a, b})
		if !bytes.Equal(dst, want) {
			t.Errorf("%v: got %x, want %x", e, dst, want)
		}
	}
}
