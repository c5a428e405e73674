package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// An implementation is one of the ways in which kernels run.
type implementation struct {
	set  *instructions
	view bool // vectors are taken for what they are in memory
}

// implementations returns those that this machine can run: Go, as here and as
// on machines whose order is not that of vectors, and every set of
// instructions.
func implementations() []implementation {
	all := []implementation{{nil, false}}
	if littleEndian {
		all = append(all, implementation{nil, true})
	}
	for _, s := range instructionSets() {
		all = append(all, implementation{s, true})
	}
	return all
}

func (i implementation) String() string {
	if i.set != nil {
		return "set=" + i.set.name
	}
	if !i.view {
		return "set=go-other-order"
	}
	return "set=go"
}

// use makes it the one in use until the test ends.
func (i implementation) use(t testing.TB) {
	set, all, view := fastest, kernels, littleEndian
	t.Cleanup(func() { fastest, kernels, littleEndian = set, all, view })
	fastest, kernels, littleEndian = i.set, makeKernels(i.set), i.view
}

// eachAssembled runs test for every set of instructions and defined pair, with
// the kernel of the set and its twin.
func eachAssembled(t *testing.T, test func(t *testing.T, p assembled)) {
	sets := instructionSets()
	if len(sets) == 0 {
		t.Skip("this build, or this machine, has no kernels in assembly")
	}
	for _, s := range sets {
		for f := Sum; f.Valid(); f++ {
			for e := Int32; e.Valid(); e++ {
				if Defined(f, e) && e != Block32 {
					t.Run(fmt.Sprintf("set=%v/function=%v/type=%v", s.name, f, e), func(t *testing.T) {
						test(t, assembledOf(s, f, e))
					})
				}
			}
		}
	}
}

// assembled is a kernel in assembly.
type assembled struct {
	f            Function
	e            Type
	kernel, twin Kernel
}

func assembledOf(s *instructions, f Function, e Type) assembled {
	twin := makeKernel(f, e)
	return assembled{f, e, s.kernel(f, e, twin), twin}
}

func (p assembled) size() int { return ElementSize(p.f, p.e) }

func (p assembled) random(k, n int) [][]byte {
	return randomVectors(rand.New(rand.NewPCG(uint64(p.f), uint64(p.e)+200)), p.f, p.e, k, n)
}

// A berth is memory for one vector after the other, between guards.
type berth struct {
	memory []byte
	at     int
}

func newBerth(size int) *berth {
	return &berth{memory: bytes.Repeat([]byte{guard}, size+3*64)}
}

// place copies v to align bytes beyond a multiple of 64.
func (b *berth) place(v []byte, align int) []byte {
	b.at = 64 + (align-addressOf(b.memory)%64+64)%64
	end := b.at + copy(b.memory[b.at:], v)
	return b.memory[b.at:end:end]
}

// clear makes guards of v, which was placed here, and reports whether nothing
// around it was written to.
func (b *berth) clear(v []byte) (intact bool) {
	for i := range v {
		v[i] = guard
	}
	around := b.memory[b.at-64 : b.at+len(v)+64]
	return bytes.Count(around, []byte{guard}) == len(around)
}

func addressOf(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// TestEveryLengthAndAlignment compares the kernels in assembly with their twins:
// all lengths beyond two of the longest rounds, at every alignment in a line of
// the cache, the vectors aligned differently, up to five of them.
func TestEveryLengthAndAlignment(t *testing.T) {
	const rounds = 2 * 256 // bytes of two rounds; 16-bit types have them of half of that
	eachAssembled(t, func(t *testing.T, p assembled) {
		most := rounds/p.size() + 2*64/min(p.size(), 8) + 3
		if p.size() == 2 {
			most = rounds/2/p.size() + 64/p.size() + 3
		}
		const k = 5
		all := p.random(k, most)
		var want [k + 1][]byte
		for count := 1; count <= k; count++ {
			want[count] = make([]byte, len(all[0]))
			p.twin(want[count], all[:count])
		}
		blank, result, inputs := make([]byte, len(all[0])), newBerth(len(all[0])), [k]*berth{}
		for j := range inputs {
			inputs[j] = newBerth(len(all[0]))
		}
		in := make([][]byte, k)
		for n := 0; n <= most*p.size(); n += p.size() {
			for align := range 64 {
				count := 1 + (n/p.size()+align)%k
				for j := range count {
					in[j] = inputs[j].place(all[j][:n], (align*(j+2)+9*j)%64)
				}
				dst := result.place(blank[:n], align)
				p.kernel(dst, in[:count])
				if i := firstDifference(dst, want[count][:n]); i >= 0 {
					t.Fatalf("k=%d bytes=%d align=%d: byte %d differs:\n got %x\nwant %x", count, n, align, i, dst[i&^15:min(n, i&^15+16)], want[count][i&^15:min(n, i&^15+16)])
				}
				if !result.clear(dst) {
					t.Fatalf("k=%d bytes=%d align=%d: wrote beyond the result", count, n, align)
				}
				for j, v := range in[:count] {
					if !bytes.Equal(v, all[j][:n]) || !inputs[j].clear(v) {
						t.Fatalf("k=%d bytes=%d align=%d: wrote to vector %d or around it", count, n, align, j)
					}
				}
			}
		}
	})
}

// TestPieces has vectors of more than one piece, also with the result in one.
func TestPieces(t *testing.T) {
	eachAssembled(t, func(t *testing.T, p assembled) {
		all := p.random(3, 2*piece/p.size()+40)
		want := make([]byte, len(all[0]))
		p.twin(want, all)
		for _, n := range []int{piece, piece + p.size(), piece + 3*p.size(), piece + 5*p.size(), piece + 37*p.size(), 2 * piece, 2*piece + p.size()} {
			in := [][]byte{bytes.Clone(all[0][:n]), bytes.Clone(all[1][:n]), bytes.Clone(all[2][:n])}
			dst := make([]byte, n)
			p.kernel(dst, in)
			p.kernel(in[1], in)
			for _, got := range [][]byte{dst, in[1]} {
				if i := firstDifference(got, want[:n]); i >= 0 {
					t.Fatalf("%d bytes: byte %d differs", n, i)
				}
			}
		}
	})
}

func TestPieceFrom(t *testing.T) {
	for _, test := range []struct{ from, n, least, want int }{
		{0, 1, 1, 1},
		{0, piece, 32, piece},
		{0, piece + 31, 32, piece + 31},
		{0, piece + 32, 32, piece},
		{piece, piece + 32, 32, piece + 32},
		{piece, 3 * piece, 32, 2 * piece},
	} {
		if got := pieceFrom(test.from, test.n, test.least); got != test.want {
			t.Errorf("pieceFrom(%d, %d, %d) = %d, want %d", test.from, test.n, test.least, got, test.want)
		}
	}
}

// TestFar runs what fetches ahead, as if every vector were far.
func TestFar(t *testing.T) {
	defer func(was int) { far = was }(far)
	far = 0
	eachAssembled(t, func(t *testing.T, p assembled) {
		all := p.random(5, 4*256/p.size()+3)
		want := make([]byte, len(all[0]))
		p.twin(want, all)
		for n := 0; n <= len(want); n += p.size() {
			in := make([][]byte, len(all))
			for j := range in {
				in[j] = all[j][:n]
			}
			dst := make([]byte, n)
			if p.kernel(dst, in); !bytes.Equal(dst, want[:n]) {
				t.Fatalf("%d bytes: byte %d differs", n, firstDifference(dst, want[:n]))
			}
		}
	})
}

func TestIsFar(t *testing.T) {
	v := make([]byte, far/4)
	if !isFar(v, [][]byte{v, v, v}) || isFar(v[1:], [][]byte{v, v, v}) || isFar(v, [][]byte{v, v}) {
		t.Error("the vectors and the result do not count as far as they should")
	}
}

// TestAllOf16Bits has all values of the types of 16 bits, alone and each with a
// number of others.
func TestAllOf16Bits(t *testing.T) {
	all, r := make([]byte, 2<<16), rand.New(rand.NewPCG(16, 16))
	for v := range 1 << 16 {
		binary.LittleEndian.PutUint16(all[2*v:], uint16(v))
	}
	eachAssembled(t, func(t *testing.T, p assembled) {
		if p.size() != 2 {
			return
		}
		got, want := make([]byte, len(all)), make([]byte, len(all))
		in := [][]byte{all}
		for range 9 {
			p.kernel(got, in)
			p.twin(want, in)
			if i := firstDifference(got, want); i >= 0 {
				t.Fatalf("%d vectors: element %#x is %x, want %x", len(in), i/2, got[i&^1:i|1], want[i&^1:i|1])
			}
			other := bytes.Clone(all)
			r.Shuffle(1<<16, func(i, j int) {
				a, b := (*[2]byte)(other[2*i:]), (*[2]byte)(other[2*j:])
				*a, *b = *b, *a
			})
			in = [][]byte{all, other}
		}
	})
}

// TestBlocksAreLikeTwin compares sums of Block32 in assembly with those in Go,
// of exponents that are alike, near, far from each other, and no exponents.
func TestBlocksAreLikeTwin(t *testing.T) {
	const k, most = 4, 2*128 + 20
	r := rand.New(rand.NewPCG(32, 32))
	all := randomVectors(r, Sum, Int32, k, most)
	near := far
	defer func() { far = near }()
	for _, exponents := range [][]int8{{0, 0, 0, 0}, {3, 4, 0, -1}, {126, 100, 95, 94}, {-127, 126, 0, 90}, {BlockZero, 5, BlockNaN, 1}} {
		want := make([]byte, len(all[0]))
		implementation{nil, false}.use(t)
		exponent := SumBlocks(want, all, exponents)
		for i, way := range append(implementations(), implementations()...) {
			way.use(t)
			if far = near; i >= len(implementations()) {
				far = 0
			}
			for n := 0; n <= len(want); n += 4 {
				in := make([][]byte, k)
				for j := range in {
					in[j] = place(all[j][:n], (n/4+5*j)%16).vector
				}
				dst := place(make([]byte, n), n/8%16)
				if got := SumBlocks(dst.vector, in, exponents); got != exponent && n > 0 || !bytes.Equal(dst.vector, want[:n]) || !dst.intact() {
					t.Fatalf("%v exponents=%v bytes=%d: got %d %x, want %d %x", way, exponents, n, got, dst.vector, exponent, want[:n])
				}
				SumBlocks(in[1], in, exponents)
				if !bytes.Equal(in[1], want[:n]) {
					t.Fatalf("%v exponents=%v bytes=%d: wrong in place", way, exponents, n)
				}
			}
		}
	}
}

// FuzzTwin lets the fuzzer choose as FuzzKernel does, and compares every set of
// instructions with the twins, also with the result in one of the vectors.
func FuzzTwin(f *testing.F) {
	f.Add(uint8(Sum), uint8(Float64), uint8(3), uint8(1), bytes.Repeat([]byte{0, 0, 0xc0, 0x7f, 1, 0, 0xf8, 0xff}, 250))
	f.Add(uint8(Product), uint8(Int64), uint8(2), uint8(40), bytes.Repeat([]byte{1, 2, 3, 0x80, 0xff, 0xf0, 0x3f}, 90))
	f.Add(uint8(Min), uint8(Float16), uint8(5), uint8(3), bytes.Repeat([]byte{0, 0x80, 0, 0, 1, 0x7c}, 300))
	f.Add(uint8(MaxLoc), uint8(BFloat16), uint8(4), uint8(17), bytes.Repeat([]byte{0x81, 0x7f, 0}, 500))
	f.Fuzz(func(t *testing.T, function, element, k, align uint8, data []byte) {
		fn, e := Function(function), Type(element)
		if !Defined(fn, e) || e == Block32 || k == 0 {
			return
		}
		size := ElementSize(fn, e)
		n := len(data) / int(k) / size * size
		all := make([][]byte, k)
		for j := range all {
			all[j] = data[j*n:][:n]
		}
		for _, s := range instructionSets() {
			p := assembledOf(s, fn, e)
			want := make([]byte, n)
			p.twin(want, all)
			reduceGuarded(t, p.kernel, all, want, n, int(align%16), int(align/16))
			same := int(align) % len(all)
			in := append([][]byte(nil), all...)
			in[same] = bytes.Clone(all[same])
			if p.kernel(in[same], in); !bytes.Equal(in[same], want) {
				t.Fatalf("%v: the result in vector %d: got %x, want %x", s.name, same, in[same], want)
			}
		}
	})
}
