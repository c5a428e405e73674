package attack_test

import (
	"fmt"
	"testing"
)

// BenchmarkForming is the forming of a group of four hosts on a tree of three switches, over mutual TLS, until
// all members use it, by how its packets are protected.
func BenchmarkForming(b *testing.B) {
	f := newFabric(b)
	for _, of := range groups[:3] {
		b.Run(of.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				g := f.form(fmt.Sprintf("%s-%d", of.name, i), of.hosts, of.options...)
				b.StopTimer()
				f.each(len(g.comms), func(rank int) error { return g.comms[rank].Leave(f.ctx) })
				f.until("the manager has released it", func() bool { return len(f.summaries()) == len(f.list) })
				b.StartTimer()
			}
		})
	}
}
