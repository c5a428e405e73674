package reduce

import (
	"math"
	"math/rand/v2"
	"testing"
)

// conversions16 pairs the conversions with the oracle's type.
var conversions16 = []struct {
	t    Type
	wide func(uint16) float32
	from func(float32) uint16
}{
	{Float16, func(v uint16) float32 { return F16(v).Float32() }, func(x float32) uint16 { return uint16(F16From(x)) }},
	{BFloat16, func(v uint16) float32 { return BF16(v).Float32() }, func(x float32) uint16 { return uint16(BF16From(x)) }},
}

// TestFloat32OfAll compares all 65536 values with the oracle, and converts them
// back.
func TestFloat32OfAll(t *testing.T) {
	for _, c := range conversions16 {
		for v := range 1 << 16 {
			x := c.wide(uint16(v))
			want := floatOf(c.t, uint64(v))
			if math.IsNaN(want) {
				if !math.IsNaN(float64(x)) || math.Signbit(float64(x)) != (v&0x8000 != 0) {
					t.Fatalf("%v %#04x is %v, want a NaN of that sign", c.t, v, x)
				}
				if got := c.from(x); got != uint16(bitsOf(c.t, want)) {
					t.Fatalf("%v %#04x, a NaN, comes back as %#04x", c.t, v, got)
				}
				continue
			}
			if float64(x) != want || math.Signbit(float64(x)) != math.Signbit(want) {
				t.Fatalf("%v %#04x is %v, want %v", c.t, v, x, want)
			}
			if got := c.from(x); got != uint16(v) {
				t.Fatalf("%v %#04x comes back as %#04x", c.t, v, got)
			}
		}
	}
}

func TestNaNKeepsPayload(t *testing.T) {
	if got := math.Float32bits(F16(0xfe15).Float32()); got != 0xffc2a000 {
		t.Errorf("F16: got %#x", got)
	}
	if got := math.Float32bits(BF16(0xffd5).Float32()); got != 0xffd50000 {
		t.Errorf("BF16: got %#x", got)
	}
}

// TestFromRounds compares the rounding of numbers at, next to and halfway
// between all values of 16 bits, and of others all over, with the oracle.
func TestFromRounds(t *testing.T) {
	for _, c := range conversions16 {
		check := func(b uint32) {
			x := math.Float32frombits(b)
			if got, want := c.from(x), uint16(bitsOf(c.t, float64(x))); got != want {
				t.Fatalf("%v from %v (%#08x) is %#04x, want %#04x", c.t, x, b, got, want)
			}
		}
		f := formats16[c.t]
		for v := range f.infinity() + 1 {
			// Infinity counts as what would follow the largest value, which for
			// BF16 is beyond binary32: its neighbours then are NaNs.
			value := math.Float32bits(float32(f.magnitude(v)))
			halfway := math.Float32bits(float32((f.magnitude(v) + f.magnitude(v+1)) / 2))
			for _, b := range []uint32{value, halfway} {
				for near := b - 2; near != b+3; near++ {
					check(near & 0x7fffffff)
					check(near | 0x80000000)
				}
			}
		}
		const stride = 16381 // a prime, so that all low bits occur
		for b := uint64(0); b <= math.MaxUint32; b += stride {
			check(uint32(b))
		}
		r := rand.New(rand.NewPCG(16, uint64(c.t)))
		for range 50_000 {
			check(r.Uint32())
		}
	}
}

func TestF16FromEdges(t *testing.T) {
	for _, test := range []struct {
		x    float32
		want F16
	}{
		{65504, 0x7bff},
		{65519.996, 0x7bff},
		{65520, 0x7c00},
		{-65520, 0xfc00},
		{float32(math.Inf(-1)), 0xfc00},
		{0x1p-24, 1},
		{0x1p-25, 0},         // a tie, to even
		{0x1.000002p-25, 1},  // just above it
		{0x1.8p-24, 2},       // a tie, to even
		{0x1.ff8p-15, 0x3ff}, // the largest subnormal
		{0x1.ffcp-15, 0x400}, // a tie, to the smallest normal
		{float32(math.Copysign(0, -1)), 0x8000},
		{math.SmallestNonzeroFloat32, 0},
	} {
		if got := F16From(test.x); got != test.want {
			t.Errorf("F16From(%v) = %#04x, want %#04x", test.x, got, test.want)
		}
	}
}
