package p4_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// BenchmarkOnBMv2 sends packets of 1,432 bytes of payload through one switch,
// some at a time, each of which is forwarded, or reduced with another. A packet
// is one that goes in.
func BenchmarkOnBMv2(b *testing.B) {
	if !live(b) {
		return
	}
	p := newPipeline(b)
	p.begin()
	cfg := &switchreduce.Config{
		Group: 9, Epoch: 2, Cookie: 7, Window: 64, ChunkBytes: 1432, Parent: addr('p'),
		Children: []switchreduce.Child{{Addr: addr('a'), Lowest: 0, Cookie: 7}, {Addr: addr('b'), Lowest: 1, Cookie: 7}},
	}
	p.install(cfg)
	b.Run("forward", func(b *testing.B) {
		frame := frameOf(udpPacket(addr('a'), netip.AddrPortFrom(addr('p').Addr(), 7), make([]byte, wire.HeaderSize+1432), true))
		p.flow(b, 1, func(int) []byte { return frame })
	})
	number := uint32(0)
	for _, pair := range []struct {
		f reduce.Function
		t reduce.Type
	}{{reduce.BOr, reduce.Int32}, {reduce.Sum, reduce.Int32}, {reduce.Sum, reduce.Block32}, {reduce.Sum, reduce.Int64}, {reduce.Max, reduce.Int32}, {reduce.Min, reduce.Float32}} {
		b.Run(fmt.Sprintf("%v/%v", pair.f, pair.t), func(b *testing.B) {
			p.flow(b, 2, func(i int) []byte {
				if i%2 == 0 {
					number++
				}
				h := wire.Header{
					Type: wire.Contribution, Flags: wire.Sink, Group: 9, Epoch: 2, Cookie: 7,
					Child: uint16(i % 2), Lowest: uint32(i % 2), Chunk: number,
					Signature: wire.Signature{Collective: wire.Allreduce, Function: pair.f, Element: pair.t, Elements: 1 << 20,
						ChunkElements: uint16(1432 / pair.t.Size())},
				}
				if pair.t == reduce.Block32 {
					h.Exponent = int8(i % 3)
				}
				packet := make([]byte, wire.HeaderSize, wire.HeaderSize+1432)
				h.Put(packet)
				packet = append(packet, drawn(h.Signature, uint64(i))...)
				c := cfg.Children[i%2].Addr
				to := netip.AddrPortFrom(p.state.Ports[1+i%2].Addr, 49152+uint16(p.tree().Index))
				return frameOf(udpPacket(c, to, packet, true))
			})
		})
	}
}

// flow sends b.N frames, of which every so many bring one to the parent's port,
// and waits for those; 32 are on their way at most.
func (p *pipeline) flow(b *testing.B, every int, frame func(i int) []byte) {
	frames := make([][]byte, b.N+every)
	for i := range frames {
		frames[i] = frame(i)
	}
	buffer := make([]byte, 4096)
	got := 0
	before := p.spent(b)
	b.ResetTimer()
	for i := 0; i < b.N-b.N%every || i == 0; i++ {
		for i-got*every >= 32 {
			p.await1(b, buffer)
			got++
		}
		port := 2 + i%2
		if every == 1 {
			port = 2
		}
		if err := unix.Send(p.sockets[port], frames[i], 0); err != nil {
			b.Fatal(err)
		}
	}
	for got < max(b.N/every, 1) && b.N >= every {
		p.await1(b, buffer)
		got++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
	all, most := 0.0, 0.0
	for thread, ns := range p.spent(b) {
		ns -= before[thread]
		all, most = all+ns, max(most, ns)
	}
	b.ReportMetric(all/float64(b.N), "bmv2-ns/packet")
	b.ReportMetric(most/float64(b.N), "thread-ns/packet") // of the busiest one
}

// spent returns the time that each thread of bmv2 has run so far, in ns: unlike
// the time that passes it does not depend on what else the machine does.
func (p *pipeline) spent(b *testing.B) map[string]float64 {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("threads of bmv2: %v", err)
	}
	all := map[string]float64{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		if all[file], err = strconv.ParseFloat(strings.Fields(string(text))[0], 64); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

func (p *pipeline) await1(b *testing.B, buffer []byte) {
	for {
		_, _, err := unix.Recvfrom(p.sockets[1], buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			b.Fatal(err)
		}
		return
	}
}
