package transport_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/transport"
)

// patience bounds the wait for a datagram.
const patience = 10 * time.Second

// TestTrains sends batches of messages of many sizes to several sockets: each
// gets its own, in their order, as the datagrams that they were, however few it
// reads at once; and both sides count datagrams.
func TestTrains(t *testing.T) {
	from := open(t, udp, loopback4)
	to := []transport.Conn{open(t, udp, loopback4), open(t, udp, loopback4), open(t, udp, loopback4)}
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
			body := append([]byte(nil), noise[i:i+size]...)
			cut := rapid.IntRange(0, min(size, 40)).Draw(rt, "head")
			batch = append(batch, transport.Message{To: to[k].LocalAddr(), Head: body[:cut], Body: body[cut:]})
			want[k] = append(want[k], body)
		}
		before := from.Counters()
		if err := from.WriteBatch(batch); err != nil {
			rt.Fatal(err)
		}
		if sent := from.Counters().PacketsOut - before.PacketsOut; sent != uint64(len(batch)) {
			rt.Fatalf("%d datagrams counted of %d", sent, len(batch))
		}
		packets := make([]transport.Packet, rapid.IntRange(1, 70).Draw(rt, "read at once"))
		for k, c := range to {
			receive(rt, c, packets, want[k], from.LocalAddr())
		}
	})
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
			if got == len(want) || !bytes.Equal(packets[i].Data, want[got]) || packets[i].From != from {
				t.Fatalf("datagram %d of %d has %d bytes, from %v", got, len(want), len(packets[i].Data), packets[i].From)
			}
			bytesWanted += uint64(len(want[got])) + 28 // with its headers
			got++
		}
	}
	after := c.Counters()
	if after.PacketsIn-before.PacketsIn != uint64(len(want)) || after.BytesIn-before.BytesIn != bytesWanted {
		t.Fatalf("%d datagrams counted, want %d; %d bytes, want %d",
			after.PacketsIn-before.PacketsIn, len(want), after.BytesIn-before.BytesIn, bytesWanted)
	}
}

// TestTrainsRefused sends to a place that the system refuses amid messages to
// one that it does not.
func TestTrainsRefused(t *testing.T) {
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
