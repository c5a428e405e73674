package session

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestSteadyStateAllocatesNothing: a chunk is sent and finished in memory that
// is there already, once the ring is full.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, element := range []reduce.Type{reduce.Int32, reduce.Block32, reduce.BFloat16} { // of the last, vectors of float32
		t.Run(element.String(), func(t *testing.T) { testSteadyState(t, element) })
	}
}

func testSteadyState(t *testing.T, element reduce.Type) {
	const window, chunks = 8, 2000
	s, err := New(Config{Rank: 1, Members: 8, ChunkBytes: chunkBytes, Window: window}, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: element, Compressed: element == reduce.BFloat16}
	perChunk, _ := o.Chunk(chunkBytes)
	o.Elements = chunks * perChunk
	o.In = make([]byte, o.Elements*o.Width())
	o.Out = o.In
	if err := s.Start(o); err != nil {
		t.Fatal(err)
	}
	var out Output
	link := Link{Epoch: 2, Window: window, Parent: parentAddr}
	if err := s.Enter(0, link, Decision{}, &out); err != nil {
		t.Fatal(err)
	}
	s.Step(0, nil, &out)
	h := wire.Header{Type: wire.Result, Flags: wire.Sink, Epoch: 2}
	packet := make([]byte, wire.HeaderSize+chunkBytes)
	in := []Input{{From: parentAddr, Packet: packet}}
	now := core.Time(0)
	sent := 0
	step := func() {
		h.Signature = s.at(h.Chunk).signature()
		h.Put(packet)
		h.Chunk++
		now++
		out.Reset()
		s.Step(now, in, &out)
		sent += len(out.Sends)
	}
	for range 4 * window {
		step()
	}
	before := s.Counters().Results
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations a chunk", n)
	}
	if done := s.Counters().Results - before; done < 1000 || sent < 1000 {
		t.Errorf("%d chunks finished, %d sent", done, sent)
	}
}
