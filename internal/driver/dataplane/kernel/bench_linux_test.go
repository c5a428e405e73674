package kernel_test

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// BenchmarkProgram reports what the program takes for a chunk of 1,432 bytes, in batches
// of so many, at the root: of a contribution that is stored, and of the last one, with
// the results' way to all children but for their system calls.
func BenchmarkProgram(b *testing.B) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Skip(err)
	}
	defer func() { _ = stats.Close() }()
	for _, children := range []int{2, 4, 8} {
		for _, batch := range []uint32{1, 8, wire.BatchChunks} {
			b.Run(fmt.Sprintf("children=%d/batch=%d", children, batch), func(b *testing.B) {
				r := newRig(b, children)
				c := config(2, children, true)
				r.install(c)
				const n = 358
				batches := make([][]byte, children)
				send := func(i int, first uint32) {
					batches[i] = batches[i][:0]
					for k := range batch {
						batches[i] = append(batches[i], packet(sums(c, i, first+k, n), values(n, k))...)
					}
					r.send(i, batches[i], wire.HeaderSize+4*n)
				}
				drain := func() {
					for _, fd := range r.neighbours {
						for {
							if p, _ := r.receive(fd); p == nil {
								break
							}
						}
					}
				}
				for i := range children {
					send(i, 0)
				}
				r.pump()
				drain()
				spent := func() int64 {
					s, err := r.offload.Program().Stats()
					r.check(err)
					return s.Runtime.Nanoseconds()
				}
				var stored, last int64
				first := batch
				for b.Loop() {
					at := spent()
					for i := range children - 1 {
						send(i, first)
					}
					r.settle()
					middle := spent()
					send(children-1, first)
					r.settle()
					stored += middle - at
					last += spent() - middle
					drain()
					first += batch
				}
				chunks := float64(b.N) * float64(batch)
				b.ReportMetric(float64(stored)/chunks/float64(children-1), "ns/stored")
				b.ReportMetric(float64(last)/chunks, "ns/last")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
