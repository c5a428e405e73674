package transport_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// TestSource has single datagrams and batches come from one address after the other, of a
// socket that listens on all of them, and from an address that is not the machine's.
func TestSource(t *testing.T) {
	for name, without := range map[string]transport.Features{"batches": 0, "one by one": transport.Segmentation} {
		t.Run(name, func(t *testing.T) { testSource(t, without) })
	}
}

func testSource(t *testing.T, without transport.Features) {
	from, err := transport.ListenUDP(netip.MustParseAddrPort("0.0.0.0:0"), transport.Config{Without: without})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	to := open(t, udp, loopback4)
	packets := make([]transport.Packet, 64)
	receive := func(count int, want netip.Addr) {
		t.Helper()
		for got := 0; got < count; {
			n, err := to.ReadBatch(packets, time.Now().Add(patience))
			if err != nil {
				t.Fatalf("after %d: %v", got, err)
			}
			for _, p := range packets[:n] {
				if p.From != netip.AddrPortFrom(want, from.LocalAddr().Port()) {
					t.Fatalf("from %v, want %v", p.From, want)
				}
			}
			got += n
		}
	}
	batch := []transport.Message{
		{To: to.LocalAddr(), Body: []byte("one")}, {To: to.LocalAddr(), Body: make([]byte, 1000), Size: 100},
	}
	for _, text := range []string{"127.0.0.5", "127.0.0.6"} {
		a := netip.MustParseAddr(text)
		if !from.SetSource(a, 0) {
			t.Skip("skipped: without sendmmsg there are no sources")
		}
		write(t, from, batch...)
		receive(11, a)
	}
	if from.SetSource(netip.MustParseAddr("::1"), 0) {
		t.Error("an address of the other family")
	}
	from.SetSource(netip.MustParseAddr("192.0.2.1"), 0) // of nobody
	before := from.Features()
	write(t, from, batch...)
	if c := from.Counters(); c.Refused != 11 || from.Features() != before {
		t.Errorf("%+v with %v, want 11 refused; before that %v", c, from.Features(), before)
	}
	from.SetSource(netip.Addr{}, 0)
	write(t, from, batch...)
	receive(11, loopback4.Addr())
}
