package hostlib

import (
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// BenchmarkAgree is an agreement of members of one process, and beside it an allreduce of 8 bytes over the
// same hosts: messages are of the member that sends most, calls those for connections of all.
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
				sent, calls := counted(comms)
				b.ResetTimer()
				all(b.N)
				sentAfter, callsAfter := counted(comms)
				most := uint64(0)
				for i := range sent {
					most = max(most, sentAfter[i]-sent[i])
				}
				b.ReportMetric(float64(most)/float64(b.N), "messages/op")
				b.ReportMetric(float64(callsAfter-calls), "calls")
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

// counted returns the messages that each member has sent, and the calls of all for connections.
func counted(comms []*Communicator) (sent []uint64, calls uint64) {
	for _, c := range comms {
		k := c.messaging.node.Counters()
		sent = append(sent, k.Eager.Sent.Messages)
		calls += c.host.Connections().Calls
	}
	return sent, calls
}
