package hostlib

import (
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// BenchmarkAgree is an agreement of members of one process, and beside it an allreduce of 8 bytes over the
// same hosts.
func BenchmarkAgree(b *testing.B) {
	for _, n := range []int{8, 64} {
		hosts, members := company(b, n, false)()
		comms := form(b, "job", hosts, members, OnHosts())
		run := func(name string, op func(c *Communicator) error) {
			b.Run(fmt.Sprintf("members=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				all := func(times int) {
					each(n, func(i int) {
						for range times {
							if err := op(comms[i]); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all(3)
				b.ResetTimer()
				all(b.N)
			})
		}
		run("agree", func(c *Communicator) error {
			_, err := c.Agree(b.Context(), 1)
			return err
		})
		run("allreduce", func(c *Communicator) error {
			v := []uint64{1}
			_, err := Allreduce(b.Context(), c, reduce.Max, v, v)
			return err
		})
		leave(b, comms)
		dismiss(b, hosts)
	}
}
