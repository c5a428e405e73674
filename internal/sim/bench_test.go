package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// relay passes every datagram on to the next node.
type relay struct {
	next Addr
	body []byte
}

func (r *relay) Deadline() core.Time { return core.Never }

func (r *relay) Step(_ core.Time, batch []Delivery, h Handle) {
	for range batch {
		h.Send(1, r.next, nil, r.body)
	}
}

// newRelays returns a ring of n nodes around which n datagrams go.
func newRelays(tb testing.TB, cfg Config, n, size int) *World {
	w, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		w.Add("", &relay{next: Addr{NodeID((i + 1) % n), 1}, body: make([]byte, size)})
	}
	for i := range n {
		w.Command(NodeID(i), nil)
	}
	return w
}

// BenchmarkWorld measures steps of a node that only passes a datagram on.
func BenchmarkWorld(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		for _, size := range []int{40, 1472} {
			b.Run(fmt.Sprintf("nodes=%d/bytes=%d", n, size), func(b *testing.B) {
				cfg := DefaultConfig(1)
				cfg.Budget = 1 << 62
				w := newRelays(b, cfg, n, size)
				if err := w.RunFor(10 * time.Microsecond); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				target := w.Steps() + uint64(b.N)
				if err := w.Await(time.Hour, func() bool { return w.Steps() >= target }); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
			})
		}
	}
}

// A world that has warmed up allocates nothing.
func TestNoAllocation(t *testing.T) {
	w := newRelays(t, DefaultConfig(1), 10, 100)
	run := func() {
		if err := w.RunFor(100 * time.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if allocs := testing.AllocsPerRun(50, run); allocs > 0 {
		t.Errorf("%v allocations in 100 microseconds, want none", allocs)
	}
}
