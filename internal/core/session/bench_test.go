package session

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// BenchmarkAllreduce is the member's core alone in allreduces whose batches are answered by batches, of integers and
// of float32 as integers: time, by the chunk as well.
func BenchmarkAllreduce(b *testing.B) {
	asIntegers, err := reduce.FixedOf(reduce.Float32, 8)
	if err != nil {
		b.Fatal(err)
	}
	for _, fixed := range []reduce.Fixed{{}, asIntegers} {
		for _, chunks := range []int{1, 45, 732} {
			b.Run(fmt.Sprintf("chunks=%d/fixed=%t", chunks, fixed.IsSet()), func(b *testing.B) {
				const perChunk = 1408 / 4
				s, err := New(Config{Rank: 1, Members: 8, ChunkBytes: 1408, Window: 512}, 0)
				if err != nil {
					b.Fatal(err)
				}
				out := Output{TakesBatches: true}
				link := Link{Group: 9, Cookie: 7, Parent: parentAddr, Epoch: 2, Window: 512}
				if err := s.Enter(0, link, Decision{}, &out); err != nil {
					b.Fatal(err)
				}
				v := make([]byte, 4*perChunk*chunks)
				for i := range perChunk * chunks {
					binary.LittleEndian.PutUint32(v[4*i:], math.Float32bits(float32(i%100)+0.5))
				}
				var marks []byte
				if fixed.IsSet() {
					marks = make([]byte, 4*fixed.Marks(len(v)/4))
				}
				var in []Input
				memory := make([]byte, 0, 2*(len(v)+chunks*wire.HeaderSize))
				now := core.Time(0)
				for b.Loop() {
					o := Operation{
						Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: perChunk * chunks, In: v, Out: v,
						Fixed: fixed, Marks: marks,
					}
					if fixed.IsSet() {
						fixed.Mark(marks, v)
					}
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
				n := min(size, len(body)) // of marks the last packet has fewer
				memory = append(memory, body[:n]...)
				heads, body = heads[wire.HeaderSize:], body[n:]
			}
			in = append(in, Input{From: parentAddr, Packet: memory[from:], Size: wire.HeaderSize + size})
		}
	}
	return in, memory
}
