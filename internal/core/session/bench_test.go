package session

import (
	"fmt"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// BenchmarkAllreduce is the member's core alone in allreduces whose batches are answered by batches: time, by the
// chunk as well.
func BenchmarkAllreduce(b *testing.B) {
	for _, chunks := range []int{1, 45, 732} {
		b.Run(fmt.Sprintf("chunks=%d", chunks), func(b *testing.B) {
			const perChunk = 1432 / 4
			s, err := New(Config{Rank: 1, Members: 8, ChunkBytes: 1432, Window: 512}, 0)
			if err != nil {
				b.Fatal(err)
			}
			out := Output{TakesBatches: true}
			link := Link{Group: 9, Cookie: 7, Parent: parentAddr, Epoch: 2, Window: 512}
			if err := s.Enter(0, link, Decision{}, &out); err != nil {
				b.Fatal(err)
			}
			v := make([]byte, 4*perChunk*chunks)
			var in []Input
			memory := make([]byte, 0, 2*(len(v)+chunks*wire.HeaderSize))
			now := core.Time(0)
			for b.Loop() {
				o := Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: perChunk * chunks, In: v, Out: v}
				if err := s.Start(o); err != nil {
					b.Fatal(err)
				}
				for in = in[:0]; ; {
					now = now.Add(10_000)
					out.Reset()
					s.Step(now, in, &out)
					if len(out.Completions) > 0 {
						break
					}
					in, memory = answered32(in[:0], memory[:0], out.Sends)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chunks), "ns/chunk")
		})
	}
}

// answered32 appends the results of contributions, batch by batch, to in, in memory.
func answered32(in []Input, memory []byte, sends []Send) ([]Input, []byte) {
	for i := range sends {
		send := &sends[i]
		heads, size := send.Heads, send.Size
		if size == 0 {
			heads, size = send.Head[:], len(send.Body)
		}
		for body := send.Body; len(body) > 0; {
			from := len(memory)
			for n := 0; n < wire.BatchChunks && len(body) > 0; n++ {
				at := len(memory)
				memory = append(memory, heads[:wire.HeaderSize]...)
				memory[at] = memory[at]&^0xf | byte(wire.Result)
				memory = append(memory, body[:size]...)
				heads, body = heads[wire.HeaderSize:], body[size:]
			}
			in = append(in, Input{From: parentAddr, Packet: memory[from:], Size: wire.HeaderSize + size})
		}
	}
	return in, memory
}
