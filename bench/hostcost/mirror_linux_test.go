package main

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// mirror is a data socket that, once it is on, answers each contribution with a result of
// the same bytes, without a system call. Only what drives the member uses it.
type mirror struct {
	transport.Conn
	isOn    *atomic.Bool
	parent  netip.AddrPort
	results [][]byte // of a message each; their memory is used again
	sizes   []int    // of their datagrams; 0: there is one
	given   int      // of these
}

func (m *mirror) WriteBatch(messages []transport.Message) error {
	if !m.isOn.Load() {
		return m.Conn.WriteBatch(messages)
	}
	for i := range messages {
		to := &messages[i]
		if len(m.sizes) == len(m.results) {
			m.results = append(m.results, nil)
		}
		result, size := m.results[len(m.sizes)][:0], 0
		to.Each(func(head, body []byte) {
			at := len(result)
			result = append(append(result, head...), body...)
			result[at] = wire.Version<<4 | byte(wire.Result)
		})
		if to.Count() > 1 {
			size = wire.HeaderSize + to.Size
		}
		m.results[len(m.sizes)], m.sizes, m.parent = result, append(m.sizes, size), to.To
	}
	return nil
}

func (m *mirror) ReadBatch(packets []transport.Packet, until time.Time) (int, error) {
	if len(m.sizes) == 0 || !m.isOn.Load() {
		return m.Conn.ReadBatch(packets, until)
	}
	n := min(len(packets), len(m.sizes)-m.given)
	for i := range n {
		packets[i] = transport.Packet{Data: m.results[m.given+i], From: m.parent, Size: m.sizes[m.given+i]}
	}
	if m.given += n; m.given == len(m.sizes) { // the step that follows reads them before it sends
		m.sizes, m.given = m.sizes[:0], 0
	}
	return n, nil
}

// BenchmarkWithoutSystemCalls:
//
//	go test -C bench -run '^$' -bench . -cpu 1 ./hostcost
func BenchmarkWithoutSystemCalls(b *testing.B) {
	p, err := newProduct(b.Context(), func(c transport.Conn, isOn *atomic.Bool) transport.Conn {
		return &mirror{Conn: c, isOn: isOn}
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := p.fabric.Close(); err != nil {
			b.Error(err)
		}
	}()
	for _, size := range []int{8, 64 << 10, 1 << 20} {
		in, out := make([]float32, size/4), make([]float32, size/4)
		for i := range in {
			in[i] = float32(i)
		}
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.allreduce(b.Context(), in, out); err != nil {
					b.Fatal(err)
				}
			}
			if !slices.Equal(in, out) {
				b.Error("the result is wrong")
			}
		})
	}
}
