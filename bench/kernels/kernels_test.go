package kernels

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
	"gonum.org/v1/gonum/floats"
)

// A side is one of the two that take turns. One call of run moves so many
// bytes, reads and writes counted.
type side struct {
	bytes int
	run   func()
}

// alternate lets the sides take turns for b.N rounds, and reports medians. A
// turn is as many calls as take own about a fifth of a millisecond.
func alternate(b *testing.B, own, other side) {
	calls := 1
	for ; calls < 1<<20 && turn(own, calls) < 200*time.Microsecond; calls *= 2 {
	}
	var ownRate, otherRate, ratio []float64
	for b.Loop() {
		x := float64(own.bytes*calls) / turn(own, calls).Seconds()
		y := float64(other.bytes*calls) / turn(other, calls).Seconds()
		ownRate, otherRate, ratio = append(ownRate, x), append(otherRate, y), append(ratio, x/y)
	}
	b.ReportMetric(median(ownRate)/1e9, "GB/s")
	b.ReportMetric(median(otherRate)/1e9, "other-GB/s")
	b.ReportMetric(median(ratio), "ratio")
}

func turn(s side, calls int) time.Duration {
	start := time.Now()
	for range calls {
		s.run()
	}
	return time.Since(start)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// reduction is a side that reduces the vectors in to dst.
func reduction(b *testing.B, f reduce.Function, t reduce.Type, dst []byte, in [][]byte) side {
	kernel, err := reduce.KernelOf(f, t)
	if err != nil {
		b.Fatal(err)
	}
	return side{(len(in) + 1) * len(dst), func() { kernel(dst, in) }}
}

// vectors returns k vectors of n numbers, all of whose pages are there. They lie
// in one piece of memory, each a few lines of the cache further from a multiple
// of a page than the one before it: loads that wait for stores to other pages,
// at the same place, are not what is measured.
func vectors(k, n int) [][]float64 {
	const lines = 72 // in numbers
	pitch := (n+511)/512*512 + lines
	all := make([]float64, k*pitch)
	for i := range all {
		all[i] = 1 + float64(i%13)/64
	}
	v := make([][]float64, k)
	for i := range v {
		v[i] = all[i*pitch:][:n:n]
	}
	return v
}

func bytesOf(v [][]float64) [][]byte {
	all := make([][]byte, len(v))
	for i := range v {
		all[i] = reduce.Bytes(v[i])
	}
	return all
}

// BenchmarkGonum adds a vector to another, both in the first-level cache.
func BenchmarkGonum(b *testing.B) {
	kernel, err := reduce.KernelOf(reduce.Sum, reduce.Float64)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{179, 512, 1000} {
		b.Run(fmt.Sprintf("function=sum/type=float64/k=2/bytes=%d", 8*n), func(b *testing.B) {
			v := vectors(2, n)
			in := bytesOf(v)
			alternate(b,
				side{3 * 8 * n, func() { kernel(in[0], in) }},
				side{3 * 8 * n, func() { floats.Add(v[0], v[1]) }})
		})
	}
}

// BenchmarkTypes has sums of two vectors in the first-level cache, beside those
// of float64.
func BenchmarkTypes(b *testing.B) {
	const size = 8000
	for _, t := range []reduce.Type{reduce.Float32, reduce.Int32, reduce.Int64, reduce.Uint32, reduce.Uint64, reduce.Float16, reduce.BFloat16} {
		b.Run(fmt.Sprintf("function=sum/type=%v/k=2/bytes=%d", t, size), func(b *testing.B) {
			v := bytesOf(vectors(3, size/8))
			alternate(b, reduction(b, reduce.Sum, t, v[0], v[1:]), reduction(b, reduce.Sum, reduce.Float64, v[0], v[1:]))
		})
	}
}

// far is the bytes of a vector that is not in any cache.
const far = 32 << 20

// BenchmarkPasses reduces eight vectors out of cache at once, and, as the other
// side, in seven passes over two. Both count the bytes that the one pass moves.
func BenchmarkPasses(b *testing.B) {
	kernel, err := reduce.KernelOf(reduce.Sum, reduce.Float64)
	if err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("function=sum/type=float64/k=8/bytes=%d", far), func(b *testing.B) {
		const k = 8
		v := bytesOf(vectors(k+1, far/8))
		dst, in := v[0], v[1:]
		moved := (k + 1) * far
		alternate(b,
			side{moved, func() { kernel(dst, in) }},
			side{moved, func() {
				kernel(dst, in[:2])
				for i := 2; i < k; i++ {
					kernel(dst, [][]byte{dst, in[i]})
				}
			}})
	})
}

// BenchmarkCopy reduces eight vectors out of cache beside a copy that reads and
// writes as many bytes.
func BenchmarkCopy(b *testing.B) {
	b.Run(fmt.Sprintf("function=sum/type=float64/k=8/bytes=%d", far), func(b *testing.B) {
		v := bytesOf(vectors(8+1, far/8))
		own := reduction(b, reduce.Sum, reduce.Float64, v[0], v[1:])
		c := bytesOf(vectors(2, own.bytes/2/8))
		alternate(b, own, side{own.bytes, func() { copy(c[0], c[1]) }})
	})
}
