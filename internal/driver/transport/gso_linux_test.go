package transport_test

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// TestGSOBatches sends batches of messages of many sizes to several sockets: each
// gets its own, in their order, as the datagrams that they were, however few it
// reads at once, also where one wants batches as they are; and both sides count
// datagrams.
func TestGSOBatches(t *testing.T) {
	from := open(t, udp, loopback4)
	to := []transport.Conn{open(t, udp, loopback4), open(t, udp, loopback4), open(t, batches, loopback4)}
	noise := bytes.Repeat([]byte{0xa5, 0x5a, 0x33}, 3000)
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SampledFrom([]int{0, 1, 40, 41, 700, 1472, 1472, 1472, 1472, 8000})
		want := make([][][]byte, len(to))
		var batch []transport.Message
		total := 0
		for i := range rapid.IntRange(1, 150).Draw(rt, "messages") {
			k, size := rapid.IntRange(0, len(to)-1).Draw(rt, "to"), sizes.Draw(rt, "size")
			if total += size; total > 300_000 { // within the receive buffers
				break
			}
			if count := rapid.IntRange(1, 100).Draw(rt, "of a batch"); size > 0 && count*(size+40) < 100_000 && total+count*(size+40) <= 300_000 {
				m, datagrams := run(rt, noise[i:], size, count)
				m.To = to[k].LocalAddr()
				batch, want[k] = append(batch, m), append(want[k], datagrams...)
				total += count * (size + 40)
				continue
			}
			body := append([]byte(nil), noise[i:i+size]...)
			cut := rapid.IntRange(0, min(size, 40)).Draw(rt, "head")
			batch = append(batch, transport.Message{To: to[k].LocalAddr(), Head: body[:cut], Body: body[cut:]})
			want[k] = append(want[k], body)
		}
		before := from.Counters()
		if err := from.WriteBatch(batch); err != nil {
			rt.Fatal(err)
		}
		if sent := from.Counters().PacketsOut - before.PacketsOut; sent != uint64(len(want[0])+len(want[1])+len(want[2])) {
			rt.Fatalf("%d datagrams counted of %d", sent, len(want[0])+len(want[1])+len(want[2]))
		}
		packets := make([]transport.Packet, rapid.IntRange(1, 70).Draw(rt, "read at once"))
		for k, c := range to {
			receive(rt, c, packets, want[k], from.LocalAddr())
		}
	})
}

// batches listens for UDP, and takes what came as one as one.
func batches(a netip.AddrPort) (transport.Conn, error) {
	return transport.ListenUDP(a, transport.Config{ReceiveBuffer: 1 << 20, Batches: true})
}

// run returns a batch of so many datagrams with that many bytes of body each, but
// for the last, with heads or without, and the datagrams.
func run(t *rapid.T, noise []byte, size, count int) (m transport.Message, datagrams [][]byte) {
	heads, last := rapid.SampledFrom([]int{0, 1, 40}).Draw(t, "heads"), rapid.IntRange(1, size).Draw(t, "last")
	m.Size = size
	for i := range count {
		n := size
		if i == count-1 {
			n = last
		}
		head, body := noise[i:i+heads], noise[2*i:2*i+n]
		m.Head, m.Body = append(m.Head, head...), append(m.Body, body...)
		datagrams = append(datagrams, append(append([]byte(nil), head...), body...))
	}
	return m, datagrams
}

// receive reads datagrams and holds them against what they should be.
func receive(t *rapid.T, c transport.Conn, packets []transport.Packet, want [][]byte, from netip.AddrPort) {
	before, bytesWanted := c.Counters(), uint64(0)
	for got := 0; got < len(want); {
		n, err := c.ReadBatch(packets, time.Now().Add(patience))
		if err != nil {
			t.Fatalf("after %d of %d: %v", got, len(want), err)
		}
		for i := range packets[:n] {
			for _, data := range apart(&packets[i]) {
				if got == len(want) || !bytes.Equal(data, want[got]) || packets[i].From != from {
					t.Fatalf("datagram %d of %d has %d bytes, from %v", got, len(want), len(data), packets[i].From)
				}
				bytesWanted += uint64(len(want[got])) + 28 // with its headers
				got++
			}
		}
	}
	after := c.Counters()
	if after.PacketsIn-before.PacketsIn != uint64(len(want)) || after.BytesIn-before.BytesIn != bytesWanted {
		t.Fatalf("%d datagrams counted, want %d; %d bytes, want %d",
			after.PacketsIn-before.PacketsIn, len(want), after.BytesIn-before.BytesIn, bytesWanted)
	}
}

// apart returns the datagrams of a packet.
func apart(p *transport.Packet) [][]byte {
	if p.Size == 0 {
		return [][]byte{p.Data}
	}
	return slices.Collect(slices.Chunk(p.Data, p.Size))
}

// TestBatchesAreWhole: what is sent as a batch arrives as one, if that is asked for.
func TestBatchesAreWhole(t *testing.T) {
	from, to := open(t, udp, loopback4), open(t, batches, loopback4)
	if all := inUse(t, 0); all&(transport.Segmentation|transport.Coalescing) != transport.Segmentation|transport.Coalescing {
		t.Skip("skipped: this kernel knows no batches")
	}
	const count, size = wire.BatchChunks, 1000
	m := transport.Message{To: to.LocalAddr(), Head: make([]byte, count*40), Body: make([]byte, count*size-1), Size: size}
	if err := from.WriteBatch([]transport.Message{m}); err != nil {
		t.Fatal(err)
	}
	packets := make([]transport.Packet, 8)
	n, err := to.ReadBatch(packets, time.Now().Add(patience))
	if err != nil || n != 1 || packets[0].Size != size+40 || len(packets[0].Data) != count*(size+40)-1 {
		t.Errorf("%d packets, the first %d bytes of datagrams of %d, %v", n, len(packets[0].Data), packets[0].Size, err)
	}
	if c := to.Counters(); c.PacketsIn != count {
		t.Errorf("%d datagrams counted, want %d", c.PacketsIn, count)
	}
}

// TestGSOBatchesRefused sends to a place that the system refuses amid messages to
// one that it does not.
func TestGSOBatchesRefused(t *testing.T) {
	from, to := open(t, udp, loopback4), open(t, udp, loopback4)
	nowhere := netip.MustParseAddrPort("127.0.0.1:0") // nothing can be sent there
	var batch []transport.Message
	for i := range 100 {
		m := transport.Message{To: to.LocalAddr(), Body: make([]byte, 100)}
		if i%4 == 1 {
			m.To = nowhere
		}
		batch = append(batch, m)
	}
	if err := from.WriteBatch(batch); err != nil {
		t.Fatal(err)
	}
	if c := from.Counters(); c.Refused != 25 || c.PacketsOut != 75 {
		t.Errorf("%+v, want 25 refused and 75 sent", c)
	}
	packets := make([]transport.Packet, 64)
	for got := 0; got < 75; {
		n, err := to.ReadBatch(packets, time.Now().Add(patience))
		if err != nil {
			t.Fatalf("after %d: %v", got, err)
		}
		got += n
	}
}
