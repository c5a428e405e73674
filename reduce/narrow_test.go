package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestHalves: every number of 16 bits is the same after Widen and Narrow, and Narrow rounds as F16From and
// BF16From do, in all sets of instructions.
func TestHalves(t *testing.T) {
	all := make([]byte, 2<<16)
	for v := range 1 << 16 {
		binary.LittleEndian.PutUint16(all[2*v:], uint16(v))
	}
	r := rand.New(rand.NewPCG(2, 2))
	random := make([]byte, 4<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint32(random[4*i:], r.Uint32()&^uint32(0x7fff*(i%2)))
	}
	for _, way := range implementations() {
		way.use(t)
		for _, half := range []Type{Float16, BFloat16} {
			wide, back := make([]byte, 4<<16), make([]byte, 2<<16)
			Widen(half, wide, all)
			Narrow(half, back, wide)
			for i := range 1 << 16 {
				x, want := math.Float32frombits(binary.LittleEndian.Uint32(wide[4*i:])), uint16(i)
				if x != x {
					want = map[Type]uint16{Float16: nanF16, BFloat16: nanBF16}[half]
				}
				if got := binary.LittleEndian.Uint16(back[2*i:]); got != want || x != x && math.Float32bits(x) != nan32 {
					t.Fatalf("%v, %v: %#x becomes %x, and %#x again", way, half, i, x, got)
				}
			}
			Narrow(half, back, random)
			for i := range 1 << 16 {
				x := math.Float32frombits(binary.LittleEndian.Uint32(random[4*i:]))
				want := uint16(BF16From(x))
				if half == Float16 {
					want = uint16(F16From(x))
				}
				if got := binary.LittleEndian.Uint16(back[2*i:]); got != want {
					t.Fatalf("%v, %v: %x becomes %#x, want %#x", way, half, x, got, want)
				}
			}
		}
	}
}

// TestHalvesOfEveryLength compares the sets of instructions with Go, and guards both ends.
func TestHalvesOfEveryLength(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const most = 70
	whole, halves := make([]byte, 4*most), make([]byte, 2*most)
	for i := range whole {
		whole[i], halves[i/2] = byte(r.Uint32()), byte(r.Uint32())
	}
	for _, half := range []Type{Float16, BFloat16} {
		for n := range most + 1 {
			for align := range 16 {
				var want [2][]byte
				for i, way := range implementations() {
					way.use(t)
					narrow, wide := place(make([]byte, 2*n), align), place(make([]byte, 4*n), align)
					Narrow(half, narrow.vector, place(whole[:4*n], (align+5)%16).vector)
					Widen(half, wide.vector, place(halves[:2*n], (align+7)%16).vector)
					if i == 0 {
						want = [2][]byte{narrow.vector, wide.vector}
					}
					if !bytes.Equal(narrow.vector, want[0]) || !bytes.Equal(wide.vector, want[1]) || !narrow.intact() || !wide.intact() {
						t.Fatalf("%v, %v: %d elements differ, or what is around them", way, half, n)
					}
				}
			}
		}
	}
}

func BenchmarkHalves(b *testing.B) {
	whole, halves := make([]byte, 4<<20), make([]byte, 2<<20)
	for _, half := range []Type{Float16, BFloat16} {
		for _, way := range implementations() {
			for name, run := range map[string]func(){"narrow": func() { Narrow(half, halves, whole) }, "widen": func() { Widen(half, whole, halves) }} {
				b.Run(fmt.Sprintf("%v/type=%v/%s", way, half, name), func(b *testing.B) {
					way.use(b)
					b.SetBytes(int64(len(whole)))
					for b.Loop() {
						run()
					}
				})
			}
		}
	}
}
