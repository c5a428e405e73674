package reduce

import (
	"fmt"
	"testing"
)

// BenchmarkKernel measures kernels on a packet's payload and on vectors beyond
// it. Bytes per second count each vector in once. To compare two versions:
//
//	go test ./reduce -run '^$' -bench Kernel -count 10 | tee new.txt
//	benchstat -col /k old.txt new.txt
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
				b.Run(fmt.Sprintf("function=%v/type=%v/k=%d/bytes=%d", p.f, p.t, k, size), func(b *testing.B) {
					benchmarkKernel(b, p.f, p.t, k, size, 0)
				})
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
