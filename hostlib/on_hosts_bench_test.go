package hostlib_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
)

// BenchmarkOnHosts is an operation by an algorithm of hosts, at all of eight members of one process.
func BenchmarkOnHosts(b *testing.B) {
	for _, size := range []int{0, 8, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("allgather/%d", size), func(b *testing.B) {
			hosts, members := join(b, 8)
			comms := form(b, hosts, members, hostlib.OnHosts())
			b.ReportAllocs()
			b.SetBytes(int64(size))
			b.ResetTimer()
			var g sync.WaitGroup
			for _, c := range comms {
				g.Go(func() {
					in, out := make([]uint8, size/8), make([]uint8, size)
					for range b.N {
						if _, err := hostlib.Allgather(b.Context(), c, in, out); err != nil {
							b.Error(err)
						}
					}
				})
			}
			g.Wait()
		})
	}
}
