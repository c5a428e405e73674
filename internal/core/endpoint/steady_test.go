package endpoint

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestSteadyStateAllocatesNothing: neither does an operation allocate, over
// switches or over hosts, nor do its chunks.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, name := range []string{"offload", "offload in runs", "hosts"} {
		for _, element := range []reduce.Type{reduce.Float32, reduce.Block32} {
			t.Run(name+" "+element.String(), func(t *testing.T) {
				m := newMirror(t, name != "hosts")
				m.out.TakesBatches = name == "offload in runs"
				for _, chunks := range []int{1000, 1, 100, 1000} {
					vector := make([]byte, chunks*mirrorChunk)
					o := &session.Operation{
						Collective: wire.Allreduce, Function: reduce.Sum, Element: element,
						Elements: len(vector) / 4, In: vector, Out: vector,
					}
					in := []Input{{Kind: Start, Operation: o}}
					operation := func() {
						m.step(in...)
						m.answer(16)
					}
					for range 2 * mirrorWindow { // until every place of the ring has been used
						operation()
					}
					m.done = 0
					if n := testing.AllocsPerRun(10, operation); n != 0 {
						t.Errorf("%v allocations in an operation of %d chunks", n, chunks)
					}
					if m.done != 11 {
						t.Errorf("%d operations done, want 11", m.done)
					}
				}
			})
		}
	}
}
