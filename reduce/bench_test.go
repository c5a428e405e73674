package reduce

import (
	"fmt"
	"testing"
)

// BenchmarkKernel measures kernels on a packet's payload and on vectors beyond
// it, in Go and in each set of instructions. Bytes per second count each vector
// in once. To compare two versions, or the sets:
//
//	go test ./reduce -run '^$' -bench Kernel -count 10 | tee new.txt
//	benchstat old.txt new.txt
//	benchstat -col /set new.txt
func BenchmarkKernel(b *testing.B) {
	pairs := []struct {
		f Function
		t Type
	}{
		{Sum, Float32}, {Sum, Float64}, {Sum, Int32}, {Sum, Int64}, {Sum, Float16}, {Sum, BFloat16},
		{Product, Float32}, {Min, Float32}, {Max, Int32}, {BXor, Uint64}, {LAnd, Int32}, {MinLoc, Float32},
	}
	for _, p := range pairs {
		for _, k := range []int{2, 8} {
			for _, size := range []int{1432, 65536} {
				for _, way := range implementations() {
					if !way.view {
						continue
					}
					b.Run(fmt.Sprintf("function=%v/type=%v/k=%d/bytes=%d/%v", p.f, p.t, k, size, way), func(b *testing.B) {
						way.use(b)
						benchmarkKernel(b, p.f, p.t, k, size, 0)
					})
				}
			}
		}
	}
}

// BenchmarkUnaligned measures what a vector costs that begins at an odd
// address, as a part of another one may.
func BenchmarkUnaligned(b *testing.B) {
	for _, k := range []int{2, 8} {
		b.Run(fmt.Sprintf("function=sum/type=float32/k=%d/bytes=1432", k), func(b *testing.B) {
			benchmarkKernel(b, Sum, Float32, k, 1432, 1)
		})
	}
}

func benchmarkKernel(b *testing.B, f Function, t Type, k, size, offset int) {
	kernel, err := KernelOf(f, t)
	if err != nil {
		b.Fatal(err)
	}
	size -= size % ElementSize(f, t)
	in := make([][]byte, k)
	for j := range in {
		in[j] = place(make([]byte, size), offset).vector
		for at := 0; at+ElementSize(f, t) <= size; at += ElementSize(f, t) {
			x := float64(at%13) + 1
			if isFloat(t) {
				writeBits(t, in[j][at:], bitsOf(t, 1+x/64)) // products stay in range
			} else {
				writeBits(t, in[j][at:], uint64(x))
			}
		}
	}
	dst := place(make([]byte, size), offset).vector
	b.SetBytes(int64(k * size))
	b.ReportAllocs()
	for b.Loop() {
		kernel(dst, in)
	}
}

// BenchmarkBlock measures the two ways between float32 and block32, and sums,
// of vectors with one exponent and with several.
func BenchmarkBlock(b *testing.B) {
	const size = 1432
	v, w := make([]byte, size), make([]byte, size)
	values := make([]float32, size/4)
	for i := range values {
		values[i] = float32(i%13) + 0.1
	}
	Put(v, values)
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			EncodeBlock(w, v, 8)
		}
	})
	e := EncodeBlock(w, v, 8)
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			DecodeBlock(v, w, e)
		}
	})
	for _, k := range []int{2, 8} {
		in := make([][]byte, k)
		for i := range in {
			in[i] = w
		}
		for _, step := range []int{0, 1} {
			exponents := make([]int8, k)
			for i := range exponents {
				exponents[i] = int8(i * step)
			}
			dst := make([]byte, size)
			b.Run(fmt.Sprintf("sum/k=%d/exponents=%v", k, exponents), func(b *testing.B) {
				b.SetBytes(int64(k * size))
				for b.Loop() {
					SumBlocks(dst, in, exponents)
				}
			})
		}
	}
}
