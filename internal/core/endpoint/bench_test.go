package endpoint

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// A mirror is a tree of switches for one member: it answers each contribution
// with a result of the same bytes. Its own work is a copy of the header.
type mirror struct {
	core    *Core
	out     Output
	now     core.Time
	packets [][]byte
	batches [][]byte // of results, where the core takes batches
	inputs  []Input
	done    int
}

const (
	mirrorChunk  = 1432
	mirrorWindow = 64
)

var mirrorAddr = netip.MustParseAddrPort("10.0.0.1:7")

func newMirror(tb testing.TB, offload bool) *mirror {
	tb.Helper()
	c, err := New(Config{Size: 1, ChunkBytes: mirrorChunk, Window: mirrorWindow})
	if err != nil {
		tb.Fatal(err)
	}
	m := &mirror{core: c}
	for range 2 * mirrorWindow {
		m.packets = append(m.packets, make([]byte, wire.HeaderSize+mirrorChunk))
	}
	if offload {
		link := session.Link{Epoch: 2, Window: mirrorWindow, Parent: mirrorAddr, Cookie: 5, Probes: 8}
		m.step(Input{Kind: Offer, News: &News{Link: link}})
		if c.Epoch() != 2 {
			tb.Fatal("the tree was not entered")
		}
	}
	return m
}

func (m *mirror) step(in ...Input) {
	m.now++
	m.out.Reset()
	m.core.Step(m.now, in, &m.out)
	m.done += len(m.out.Completions)
}

// answer steps the member with the results of what it has sent, in batches.
func (m *mirror) answer(batch int) {
	if m.out.TakesBatches {
		m.answerBatches()
		return
	}
	for len(m.out.Datagrams) > 0 {
		m.inputs = m.inputs[:0]
		for i := range m.out.Datagrams {
			d := &m.out.Datagrams[i]
			p := m.packets[i][:wire.HeaderSize+len(d.Body)]
			copy(p, d.Head[:])
			p[0] = wire.Version<<4 | byte(wire.Result)
			m.inputs = append(m.inputs, Input{Kind: Packet, From: mirrorAddr, Bytes: p})
		}
		m.now++
		m.out.Reset()
		for at := 0; at < len(m.inputs); at += batch {
			m.core.Step(m.now, m.inputs[at:min(at+batch, len(m.inputs))], &m.out)
		}
		m.done += len(m.out.Completions)
	}
}

// answerBatches does so run by run.
func (m *mirror) answerBatches() {
	for len(m.out.Datagrams) > 0 {
		m.inputs = m.inputs[:0]
		for i := range m.out.Datagrams {
			d := &m.out.Datagrams[i]
			if i == len(m.batches) {
				m.batches = append(m.batches, make([]byte, mirrorWindow*(wire.HeaderSize+mirrorChunk)))
			}
			batch := m.batches[i]
			for body := range slices.Chunk(d.Body, d.Size) {
				copy(batch, d.Heads[:wire.HeaderSize])
				batch[0] = wire.Version<<4 | byte(wire.Result)
				d.Heads = d.Heads[wire.HeaderSize:]
				batch = batch[wire.HeaderSize+len(body):]
			}
			whole := m.batches[i][:len(m.batches[i])-len(batch)]
			m.inputs = append(m.inputs, Input{Kind: Packet, From: mirrorAddr, Bytes: whole, Size: wire.HeaderSize + d.Size})
		}
		m.step(m.inputs...)
	}
}

// sum has the member sum a vector of as many chunks, in place.
func (m *mirror) sum(vector []byte, batch int) {
	m.step(Input{Kind: Start, Operation: &session.Operation{
		Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Float32,
		Elements: len(vector) / 4, In: vector, Out: vector,
	}})
	m.answer(batch)
}

// BenchmarkChunk reports what a member's core does for one chunk of a large
// operation: a contribution out, a result in.
//
//	go test -run '^$' -bench Chunk ./internal/core/endpoint
func BenchmarkChunk(b *testing.B) {
	const chunks = 4096
	vector := make([]byte, chunks*mirrorChunk)
	for _, way := range []string{"offload", "hosts", "offload in runs"} {
		for _, batch := range []int{1, 16} {
			b.Run(fmt.Sprintf("way=%s/batch=%d", way, batch), func(b *testing.B) {
				m := newMirror(b, way != "hosts")
				m.out.TakesBatches = way == "offload in runs"
				m.sum(vector, batch)
				b.ReportAllocs()
				b.SetBytes(mirrorChunk)
				m.done = 0
				b.ResetTimer()
				for left := b.N; left > 0; left -= chunks {
					m.sum(vector[:min(left, chunks)*mirrorChunk], batch)
				}
				if want := (b.N + chunks - 1) / chunks; m.done != want {
					b.Errorf("%d operations done, want %d", m.done, want)
				}
			})
		}
	}
}
