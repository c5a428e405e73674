package transport_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// chunk is the bytes of the datagrams of the fabric.
const chunk = 1472

// pipe sends chunks over the loopback interface and takes them in.
type pipe struct {
	from, to transport.Conn
	messages []transport.Message
	packets  []transport.Packet
	total    int // datagrams
}

// newPipe makes a pipe for count chunks at once: as a host has them, header and
// body apart, or as batches, as a switch has them.
func newPipe(tb testing.TB, without transport.Features, count, run int) *pipe {
	listen := func() transport.Conn {
		c, err := transport.ListenUDP(loopback4, transport.Config{ReceiveBuffer: 8 << 20, Without: without})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = c.Close() })
		return c
	}
	p := &pipe{from: listen(), to: listen(), packets: make([]transport.Packet, count), total: count}
	vector := make([]byte, count*chunk)
	for i := 0; i < count; i += run {
		body := vector[i*chunk : (i+run)*chunk]
		m := transport.Message{To: p.to.LocalAddr(), Body: body, Size: chunk}
		if run == 1 {
			m = transport.Message{To: p.to.LocalAddr(), Head: body[:40], Body: body[40:]}
		}
		p.messages = append(p.messages, m)
	}
	return p
}

func (p *pipe) move(tb testing.TB) {
	if err := p.from.WriteBatch(p.messages); err != nil {
		tb.Fatal(err)
	}
	until := time.Now().Add(patience)
	for got := 0; got < p.total; {
		n, err := p.to.ReadBatch(p.packets, until)
		if err != nil {
			tb.Fatalf("after %d of %d: %v", got, p.total, err)
		}
		got += n
	}
}

// TestNoAllocation: nothing is allocated for a datagram, nor for a batch.
func TestNoAllocation(t *testing.T) {
	for _, f := range []transport.Features{0, transport.Segmentation, transport.Coalescing, transport.Lending} {
		for _, run := range []int{1, 32} {
			p := newPipe(t, f, 128, run)
			p.move(t)
			if n := testing.AllocsPerRun(100, func() { p.move(t) }); n != 0 {
				t.Errorf("without %v, batches of %d: %v allocations, want 0", f, run, n)
			}
		}
	}
}

// BenchmarkBatch moves 128 chunks over the loopback interface, with one feature
// less in each line.
func BenchmarkBatch(b *testing.B) {
	for _, f := range []transport.Features{
		0, transport.Lending, transport.Coalescing, transport.Segmentation,
		transport.Segmentation | transport.Coalescing, transport.Batching,
	} {
		for _, run := range []int{1, 128} {
			b.Run(fmt.Sprintf("without=%v/run=%d", f, run), func(b *testing.B) {
				p := newPipe(b, f, 128, run)
				b.SetBytes(int64(p.total * chunk))
				b.ReportAllocs()
				for b.Loop() {
					p.move(b)
				}
			})
		}
	}
}

// BenchmarkRoundTrip sends a datagram to another goroutine, and waits for its
// answer.
func BenchmarkRoundTrip(b *testing.B) {
	for _, f := range []transport.Features{0, transport.Polling, transport.Sleeping, transport.Polling | transport.Sleeping, transport.Batching} {
		b.Run(fmt.Sprintf("without=%v", f), func(b *testing.B) {
			p := newPipe(b, f, 1, 1)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				packets := make([]transport.Packet, 1)
				for {
					if _, err := p.to.ReadBatch(packets, time.Time{}); err != nil {
						return // it is closed
					}
					if p.to.WriteBatch([]transport.Message{{To: packets[0].From, Body: packets[0].Data}}) != nil {
						return
					}
				}
			}()
			for b.Loop() {
				if err := p.from.WriteBatch(p.messages); err != nil {
					b.Fatal(err)
				}
				if _, err := p.from.ReadBatch(p.packets, time.Now().Add(patience)); err != nil {
					b.Fatal(err)
				}
			}
			_ = p.to.Close()
			<-ended
		})
	}
}
