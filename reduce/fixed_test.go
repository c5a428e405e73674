package reduce

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fixedSum is the sum of the members' vectors, as members and switches compute it, with the marks and the
// sums of words.
type fixedSum struct {
	Fixed
	marks, words, result []byte
}

// sumFixed adds words in the order of the members.
func sumFixed(f Fixed, members [][]byte) fixedSum {
	elements := len(members[0]) / f.From().Size()
	s := fixedSum{Fixed: f, marks: make([]byte, 4*f.Marks(elements)), words: make([]byte, elements*f.Word().Size()), result: make([]byte, len(members[0]))}
	own, words := make([]byte, len(s.marks)), make([]byte, len(s.words))
	most, _ := KernelOf(Max, Uint32)
	add, _ := KernelOf(Sum, f.Word())
	for _, v := range members {
		f.Mark(own, v)
		most(s.marks, [][]byte{s.marks, own})
	}
	for _, v := range members {
		f.Encode(words, v, s.marks, 0)
		add(s.words, [][]byte{s.words, words})
	}
	f.Decode(s.result, s.words, s.marks, 0)
	return s
}

// step returns the value of 1 in the words of an element's block, and whether it has NaNs or infinities.
func (s *fixedSum) step(element int) (*big.Rat, bool) {
	block := element / s.Block()
	stored, special := int(exponentMark(s.marks, block)), isSpecial(s.marks, block)
	bias := 1022
	if s.From() == Float32 {
		bias = 126
	}
	plain, mixed := s.Bits()
	if special {
		plain = mixed
	}
	return power(stored - bias - plain), special
}

// word returns the sum of an element's words, without what counts NaNs and infinities.
func (s *fixedSum) word(element int) *big.Rat {
	m := s.getWord(s.words[element*s.Word().Size():])
	if isSpecial(s.marks, element/s.Block()) {
		m, _ = s.unmix(m)
	}
	return new(big.Rat).SetInt64(m)
}

// nearest returns the bits of the number of a type that is nearest to an exact value.
func nearest(from Type, x *big.Rat) uint64 {
	if from == Float32 {
		v, _ := x.Float32()
		return uint64(math.Float32bits(v))
	}
	v, _ := x.Float64()
	return math.Float64bits(v)
}

func bitsAt(from Type, v []byte, i int) uint64 {
	if from == Float32 {
		return uint64(binary.LittleEndian.Uint32(v[4*i:]))
	}
	return binary.LittleEndian.Uint64(v[8*i:])
}

// drawFixed draws a member's vector, of numbers of one size or of any, with zeros and, if it is to have some, NaNs
// and infinities.
func drawFixed(t *rapid.T, from Type, n int, specials bool) []byte {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	least, most := -149, 127
	if from == Float64 {
		least, most = -1074, 1023
	}
	size := rapid.IntRange(least, most).Draw(t, "size")
	spread := rapid.SampledFrom([]int{0, 3, 30, 300}).Draw(t, "spread")
	v := make([]byte, n*from.Size())
	for i := range n {
		x := math.Ldexp(r.Float64()*2-1, size-r.IntN(spread+1))
		switch r.IntN(60) {
		case 0, 1, 2, 3, 4:
			x = math.Copysign(0, x)
		case 5:
			x = math.Ldexp(1-0x1p-53, size+1) // all ones
		case 6:
			if specials {
				x = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
			}
		}
		if from == Float64 {
			binary.LittleEndian.PutUint64(v[8*i:], math.Float64bits(x))
		} else {
			binary.LittleEndian.PutUint32(v[4*i:], math.Float32bits(float32(x)))
		}
	}
	return v
}

// TestFixedBound: the sum of the words differs from the exact sum by n/2 steps at most, and is rounded once; a
// step is what docs/functions.md says. An element is NaN or infinite where a sum of the members' is, and nowhere
// else but for a sum that is too great. The bits do not depend on the members' order.
func TestFixedBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]Type{Float32, Float64}).Draw(t, "type")
		n := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 70)).Draw(t, "members")
		elements := rapid.IntRange(1, 70).Draw(t, "elements")
		specials := rapid.Bool().Draw(t, "specials")
		f, err := FixedOf(from, n)
		if err != nil {
			t.Fatal(err)
		}
		members := make([][]byte, n)
		for i := range members {
			members[i] = drawFixed(t, from, elements, specials)
		}
		s := sumFixed(f, members)
		checkFixed(t, &s, members)
		slices.Reverse(members)
		at := rapid.IntRange(0, n-1).Draw(t, "rotation")
		if again := sumFixed(f, append(members[at:], members[:at]...)); !bytes.Equal(again.result, s.result) {
			t.Fatal("the members in another order get other bits")
		}
	})
}

func checkFixed(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, s *fixedSum, members [][]byte) {
	t.Helper()
	from, n := s.From(), len(members)
	greatest := make([]float64, s.Marks(len(s.result)/from.Size())/2)
	for _, v := range members {
		for i := range len(v) / from.Size() {
			if x := math.Abs(s.number(v[i*from.Size():])); x <= math.MaxFloat64 {
				greatest[i/s.Block()] = max(greatest[i/s.Block()], x)
			}
		}
	}
	for i := range len(s.result) / from.Size() {
		exact, kind := new(big.Rat), 0.0
		for _, v := range members {
			if x := s.number(v[i*from.Size():]); x != x || math.IsInf(x, 0) {
				kind += x
			} else {
				exact.Add(exact, new(big.Rat).SetFloat64(x))
			}
		}
		got := bitsAt(from, s.result, i)
		switch {
		case kind != kind && got == map[Type]uint64{Float32: nan32, Float64: nan64}[from]:
			continue
		case math.IsInf(kind, 0) && s.number(s.result[i*from.Size():]) == kind:
			continue
		case kind != 0:
			t.Fatalf("element %d is %x, where the sum is %v", i, got, kind)
		}
		step, special := s.step(i)
		sum := new(big.Rat).Mul(s.word(i), step)
		if exponentMark(s.marks, i/s.Block()) == 0 {
			sum = new(big.Rat)
		}
		if want := nearest(from, sum); got != want {
			t.Fatalf("element %d is %x, want %x: %s", i, got, want, sum.FloatString(30))
		}
		off := new(big.Rat).Sub(sum, exact)
		if most := new(big.Rat).Mul(step, big.NewRat(int64(n), 2)); off.Abs(off).Cmp(most) > 0 {
			t.Fatalf("%d members: element %d is off by %s, more than %s", n, i, off.FloatString(30), most.FloatString(30))
		}
		// The step as the page reports it: 2^(1-b) M, or that of the smallest normal number.
		bits, mixed := s.Bits()
		if special {
			bits = mixed
		}
		normal := map[Type]float64{Float32: 0x1p-126, Float64: 0x1p-1022}[from]
		if most := new(big.Rat).Mul(new(big.Rat).SetFloat64(max(greatest[i/s.Block()], normal)), power(1-bits)); greatest[i/s.Block()] > 0 && step.Cmp(most) > 0 {
			t.Fatalf("element %d has a step of %s, more than %s", i, step.FloatString(30), most.FloatString(30))
		}
	}
}

// TestFixedBits: what docs/functions.md says of the bits of a mantissa. None overflows: n of the greatest fit.
func TestFixedBits(t *testing.T) {
	for _, test := range []struct {
		from         Type
		members      int
		word         Type
		plain, mixed int
	}{
		{Float32, 1, Int32, 31, 29}, {Float32, 2, Int32, 30, 26}, {Float32, 8, Int32, 28, 20}, {Float32, 64, Int32, 25, 11},
		{Float32, 65, Int64, 56, 43}, {Float32, 65536, Int64, 47, 13}, {Float32, MaxFixedMembers, Int64, 43, 1},
		{Float64, 1, Int64, 63, 61}, {Float64, 8, Int64, 60, 53}, {Float64, 1024, Int64, 53, 31}, {Float64, 1025, Int64, 51, 30}, {Float64, 65536, Int64, 46, 13},
		{Float64, MaxFixedMembers, Int64, 42, 1},
	} {
		f, err := FixedOf(test.from, test.members)
		if err != nil {
			t.Fatal(err)
		}
		if plain, mixed := f.Bits(); f.Word() != test.word || plain != test.plain || mixed != test.mixed {
			t.Errorf("%d members of %v: %v, %d and %d bits, want %v, %d and %d", test.members, test.from, f.Word(), plain, mixed, test.word, test.plain, test.mixed)
		}
	}
	for _, from := range []Type{Float32, Float64} {
		for n := 1; n <= MaxFixedMembers; n += 1 + n/50 {
			f, err := FixedOf(from, n)
			if err != nil {
				t.Fatal(err)
			}
			plain, mixed := f.Bits()
			count, precision := big.NewInt(int64(n)), map[Type]int{Float32: 24, Float64: 53}[from]
			for _, x := range []struct{ bits, width int }{{plain, 8 * f.Word().Size()}, {mixed, int(f.field)}} {
				limit := new(big.Int).Lsh(big.NewInt(1), uint(x.bits)) // what a number just below 2^e is rounded to
				if x.bits >= precision {
					limit.Sub(limit, new(big.Int).Lsh(big.NewInt(1), uint(x.bits-precision)))
				}
				if sum := limit.Mul(limit, count); x.bits < 1 || sum.BitLen() > x.width-1 {
					t.Fatalf("%d members of %v: %d bits, whose sum has %d, of %d", n, from, x.bits, sum.BitLen(), x.width)
				}
			}
			if kinds := new(big.Int).Exp(big.NewInt(int64(n)+1), big.NewInt(2), nil); kinds.Cmp(new(big.Int).Lsh(big.NewInt(1), uint(8*f.Word().Size()-int(f.field)))) > 0 {
				t.Fatalf("%d members of %v: %d bits do not count infinities", n, from, 8*f.Word().Size()-int(f.field))
			}
		}
	}
	for _, n := range []int{-1, 0, MaxFixedMembers + 1} {
		if _, err := FixedOf(Float32, n); !errors.Is(err, ErrFixed) {
			t.Errorf("%d members: %v", n, err)
		}
	}
	if _, err := FixedOf(Float16, 2); !errors.Is(err, ErrFixed) {
		t.Errorf("float16: %v", err)
	}
}

// TestFixedOfMany: the most hosts of a fabric, with numbers that are all as great as can be, of one sign and of
// both, and with a NaN and infinities of one member or of all.
func TestFixedOfMany(t *testing.T) {
	const n = 65_536
	for _, from := range []Type{Float32, Float64} {
		f, err := FixedOf(from, n)
		if err != nil {
			t.Fatal(err)
		}
		largest := map[Type]float64{Float32: math.MaxFloat32, Float64: math.MaxFloat64}[from]
		column := []func(i int) float64{
			func(int) float64 { return largest },
			func(i int) float64 { return largest * float64(1-2*(i%2)) },
			func(i int) float64 { return math.Ldexp(1+float64(i)/n, -30) },
			func(i int) float64 { return 0 },
		}
		inf := append(slices.Clone(column), func(int) float64 { return math.Inf(1) }, func(int) float64 { return math.Inf(-1) },
			func(i int) float64 { return math.Inf(1 - 2*(i%2)) }, func(i int) float64 { return map[bool]float64{true: math.NaN()}[i == 7] })
		for _, of := range [][]func(int) float64{column, inf, column[2:]} {
			members := make([][]byte, n)
			for i := range members {
				for _, x := range of {
					if from == Float64 {
						members[i] = binary.LittleEndian.AppendUint64(members[i], math.Float64bits(x(i)))
					} else {
						members[i] = binary.LittleEndian.AppendUint32(members[i], math.Float32bits(float32(x(i))))
					}
				}
			}
			s := sumFixed(f, members)
			checkFixed(t, &s, members)
		}
	}
}

// TestFixedIsLikeTwin compares all sets of instructions with Go, for every length up to some blocks, from every
// element on, at all alignments, and guards both ends.
func TestFixedIsLikeTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, members := range []int{1, 8, 64, 65, 4096} {
		for _, from := range []Type{Float32, Float64} {
			f, err := FixedOf(from, members)
			if err != nil {
				t.Fatal(err)
			}
			size, word := from.Size(), f.Word().Size()
			most := 5 * f.Block()
			for round := range 3 {
				vector := make([]byte, most*size)
				for i := range most {
					x := math.Ldexp(r.NormFloat64(), r.IntN(40)-10)
					switch {
					case round == 1 && r.IntN(150) == 0:
						x = math.Inf(1)
					case round == 1 && i > 2*f.Block(): // words that end in a half, or next to that
						x = math.Ldexp(float64(r.Int64N(1<<20)|1), r.IntN(3)-int(f.bits)%20)
					case round == 2 && i > 2*f.Block():
						x = 0
					case round == 2:
						x = math.Ldexp(r.NormFloat64(), map[Type]int{Float32: -147, Float64: -1072}[from])
					}
					if from == Float64 {
						binary.LittleEndian.PutUint64(vector[8*i:], math.Float64bits(x))
					} else {
						binary.LittleEndian.PutUint32(vector[4*i:], math.Float32bits(float32(x)))
					}
				}
				words := make([]byte, most*word)
				for i := range words {
					words[i] = byte(r.Uint32())
				}
				for i := 0; round == 2 && i < len(words); i += word { // those that lie between two numbers, or next to that
					m := (r.Int64N(1<<25)|1)<<r.IntN(39) + r.Int64N(3) - 1
					f.putWord(words[i:], m*(1-2*r.Int64N(2)))
				}
				for n := range most + 1 {
					at := r.IntN(most - n + 1)
					align := r.IntN(16)
					src, in := vector[at*size:(at+n)*size], words[at*word:(at+n)*word]
					var want [3][]byte
					for i, way := range implementations() {
						way.use(t)
						all, own := place(make([]byte, 4*f.Marks(most)), align), place(make([]byte, 4*f.Marks(n)), align)
						f.Mark(all.vector, vector)
						f.Mark(own.vector, src)
						turned, back := place(make([]byte, n*word), align), place(make([]byte, n*size), align)
						f.Encode(turned.vector, place(src, (align+5)%16).vector, all.vector, at)
						f.Decode(back.vector, place(in, (align+3)%16).vector, all.vector, at)
						for j, g := range []guarded{own, turned, back} {
							if i == 0 {
								want[j] = g.vector
							}
							if d := firstDifference(g.vector, want[j]); d >= 0 || !g.intact() {
								t.Fatalf("%v, %d members of %v, %d elements from %d on, align %d: result %d differs at byte %d, or around it: got %x, want %x",
									way, members, from, n, at, align, j, d, g.vector, want[j])
							}
						}
					}
				}
			}
		}
	}
}

// TestFixedGolden: the bits are those of all versions, machines and builds.
func TestFixedGolden(t *testing.T) {
	for _, test := range []struct {
		from    Type
		members int
		want    string
	}{
		{Float32, 1, "51db98164b1f6d10"}, {Float32, 8, "3f32f1ba35673a5d"}, {Float32, 64, "b371c89858bb5ce9"}, {Float32, 65, "fcfc801e1d40204c"},
		{Float64, 1, "85a8dc3460efde6c"}, {Float64, 8, "94475c7aa7724697"}, {Float64, 65, "29fb69f662be3e0b"},
	} {
		f, err := FixedOf(test.from, test.members)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(test.members), uint64(test.from)))
		least := map[Type]int{Float32: -149, Float64: -1074}[test.from]
		members := make([][]byte, test.members)
		for i := range members {
			for j := range 1500 { // each 150 of another size, the first subnormal, and one in 40 none
				bits := r.Uint64()
				x := math.Ldexp(float64(int64(bits|1))*0x1p-63, least+3+j/150*25)
				switch bits >> 20 % 40 {
				case 0:
					x = math.Copysign(0, x)
				case 1:
					if j%300 < 10 {
						x = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[bits>>32%3]
					}
				}
				if test.from == Float64 {
					members[i] = binary.LittleEndian.AppendUint64(members[i], math.Float64bits(x))
				} else {
					members[i] = binary.LittleEndian.AppendUint32(members[i], math.Float32bits(float32(x)))
				}
			}
		}
		s := sumFixed(f, members)
		if got := fmt.Sprintf("%x", sha256.Sum256(s.result))[:16]; got != test.want {
			t.Errorf("%d members of %v: %s, want %s", test.members, test.from, got, test.want)
		}
	}
}

// FuzzFixed lets the fuzzer choose the bits of three members' vectors.
func FuzzFixed(f *testing.F) {
	f.Add(true, bytes.Repeat([]byte{0, 0, 0x80, 0x7f, 1, 0, 0, 0x80}, 100))
	f.Add(false, bytes.Repeat([]byte{1, 2, 3, 0x80, 0xff, 0xf0, 0x3f}, 90))
	f.Fuzz(func(t *testing.T, narrow bool, data []byte) {
		from := Float64
		if narrow {
			from = Float32
		}
		n := len(data) / 3 / from.Size() * from.Size()
		if n == 0 {
			return
		}
		fixed, err := FixedOf(from, 3)
		if err != nil {
			t.Fatal(err)
		}
		members := [][]byte{data[:n], data[n : 2*n], data[2*n : 3*n]}
		s := sumFixed(fixed, members)
		checkFixed(t, &s, members)
	})
}

func BenchmarkFixed(b *testing.B) {
	for _, of := range []struct {
		from    Type
		members int
	}{{Float32, 8}, {Float32, 65}, {Float64, 8}} {
		f, err := FixedOf(of.from, of.members)
		if err != nil {
			b.Fatal(err)
		}
		for _, elements := range []int{FixedBlock * 11 / f.Word().Size(), 1 << 20} { // a packet's, and many
			src, words := make([]byte, elements*of.from.Size()), make([]byte, elements*f.Word().Size())
			r := rand.New(rand.NewPCG(1, 1))
			for i := range elements {
				if of.from == Float64 {
					binary.LittleEndian.PutUint64(src[8*i:], math.Float64bits(r.NormFloat64()))
				} else {
					binary.LittleEndian.PutUint32(src[4*i:], math.Float32bits(float32(r.NormFloat64())))
				}
			}
			marks := make([]byte, 4*f.Marks(elements))
			f.Mark(marks, src)
			for _, way := range implementations() {
				for name, run := range map[string]func(){
					"mark": func() { f.Mark(marks, src) }, "encode": func() { f.Encode(words, src, marks, 0) }, "decode": func() { f.Decode(src, words, marks, 0) },
				} {
					b.Run(fmt.Sprintf("%v/type=%v/members=%d/elements=%d/%s", way, of.from, of.members, elements, name), func(b *testing.B) {
						way.use(b)
						b.SetBytes(int64(len(src)))
						for b.Loop() {
							run()
						}
					})
				}
			}
		}
	}
}
