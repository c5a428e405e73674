package transport_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

type listener func(netip.AddrPort) (transport.Conn, error)

func udp(a netip.AddrPort) (transport.Conn, error) {
	c, err := transport.ListenUDP(a, transport.Config{ReceiveBuffer: 1 << 20})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func open(t *testing.T, listen listener, a netip.AddrPort) transport.Conn {
	t.Helper()
	c, err := listen(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	t.Run("UDP over IPv4", func(t *testing.T) {
		conform(t, func(t *testing.T) (a, b transport.Conn) {
			return open(t, udp, loopback4), open(t, udp, loopback4)
		})
	})
	t.Run("UDP over IPv6", func(t *testing.T) {
		probe, err := udp(loopback6)
		if err != nil {
			t.Skip("skipped: this machine has no IPv6 loopback address: ", err)
		}
		_ = probe.Close()
		conform(t, func(t *testing.T) (a, b transport.Conn) {
			return open(t, udp, loopback6), open(t, udp, loopback6)
		})
	})
	t.Run("without faults", func(t *testing.T) {
		conform(t, func(t *testing.T) (a, b transport.Conn) {
			return open(t, harmed(udp, transport.Faults{}), loopback4), open(t, harmed(udp, transport.Faults{}), loopback4)
		})
	})
}

func harmed(listen listener, f transport.Faults) listener {
	return func(a netip.AddrPort) (transport.Conn, error) {
		c, err := listen(a)
		if err != nil {
			return nil, err
		}
		return transport.WithFaults(c, f)
	}
}

func TestAddressInUse(t *testing.T) {
	c := open(t, udp, loopback4)
	if again, err := udp(c.LocalAddr()); err == nil {
		_ = again.Close()
		t.Errorf("a second Conn on %v", c.LocalAddr())
	}
}

func TestReceiveBuffer(t *testing.T) {
	small, err := transport.ListenUDP(loopback4, transport.Config{ReceiveBuffer: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	large, err := transport.ListenUDP(loopback4, transport.Config{ReceiveBuffer: 128 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	if large.ReceiveBuffer() == 0 {
		t.Skip("skipped: this system does not report a socket's receive buffer")
	}
	if small.ReceiveBuffer() >= large.ReceiveBuffer() || large.ReceiveBuffer() < 128<<10 {
		t.Errorf("16 KiB gave %d bytes, 128 KiB gave %d", small.ReceiveBuffer(), large.ReceiveBuffer())
	}
	if _, err := transport.ListenUDP(loopback4, transport.Config{ReceiveBuffer: -1}); err == nil {
		t.Error("a negative buffer was accepted")
	}
}

func TestOverflowIsCounted(t *testing.T) {
	to, err := transport.ListenUDP(loopback4, transport.Config{ReceiveBuffer: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if to.ReceiveBuffer() == 0 {
		t.Skip("skipped: this system does not count what finds a receive buffer full")
	}
	const sent = 100
	from := open(t, udp, loopback4)
	for range sent {
		if err := from.WriteBatch([]transport.Message{{To: to.LocalAddr(), Body: make([]byte, 1400)}}); err != nil {
			t.Fatal(err)
		}
	}
	// What the system has taken it may hand over a moment later.
	arrived, lost := 0, uint64(0)
	for end := time.Now().Add(30 * time.Second); uint64(arrived)+lost < sent && time.Now().Before(end); lost = to.Counters().Overflowed {
		n, err := to.ReadBatch(make([]transport.Packet, sent), time.Now())
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		arrived += n
	}
	if lost == 0 || lost != uint64(sent-arrived) {
		t.Errorf("%d of %d arrived, %d overflowed", arrived, sent, lost)
	}
}

func TestRefusedMessageHarmsNoOther(t *testing.T) {
	a, b := open(t, udp, loopback4), open(t, udp, loopback4)
	good := transport.Message{To: b.LocalAddr(), Body: []byte("good")}
	tooLong := transport.Message{To: b.LocalAddr(), Body: make([]byte, 1<<16)}
	if err := a.WriteBatch([]transport.Message{tooLong, good, tooLong, good}); err != nil {
		t.Fatal(err)
	}
	got := a.Counters()
	got.WriteCalls = 0 // as many as it takes
	if want := (transport.Counters{PacketsOut: 2, BytesOut: 64, Refused: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	packets := make([]transport.Packet, 4)
	for n := 0; n < 2; {
		m, err := b.ReadBatch(packets, time.Now().Add(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
}

func TestCountersAdd(t *testing.T) {
	a := transport.Counters{PacketsIn: 1, BytesIn: 2, PacketsOut: 3, BytesOut: 4, Refused: 5, Overflowed: 6}
	want := transport.Counters{PacketsIn: 2, BytesIn: 4, PacketsOut: 6, BytesOut: 8, Refused: 10, Overflowed: 12}
	if got := a.Add(a); got != want {
		t.Errorf("got %+v", got)
	}
}

// drain is a Conn that keeps what is sent.
type drain struct {
	transport.Conn
	order []byte // the heads of datagrams
}

func (d *drain) WriteBatch(messages []transport.Message) error {
	for _, m := range messages {
		d.order = append(d.order, slices.Concat(m.Head, m.Body)[0])
	}
	return nil
}

func (*drain) ReadBatch([]transport.Packet, time.Time) (int, error) { return 0, os.ErrDeadlineExceeded }

// fates sends count datagrams in batches of four with faults, and returns in
// which order they came, and what was done to them.
func fates(t *testing.T, f transport.Faults, count int) ([]byte, transport.FaultCounters) {
	t.Helper()
	var b drain
	a, err := transport.WithFaults(&b, f)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < count; i += 4 {
		var batch []transport.Message
		for j := range 4 {
			batch = append(batch, transport.Message{Head: []byte{byte(i + j)}, Body: []byte("body")})
		}
		if err := a.WriteBatch(batch); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.ReadBatch(make([]transport.Packet, 1), time.Now()); err == nil {
		t.Fatal("a datagram came back")
	}
	return b.order, a.Faults()
}

func TestFaults(t *testing.T) {
	const count = 200
	all := transport.Faults{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Seed: 7}
	order, did := fates(t, all, count)
	if did.Lost == 0 || did.Duplicated == 0 || did.Reordered == 0 {
		t.Fatalf("nothing was done: %+v", did)
	}
	if got, want := len(order), count-int(did.Lost)+int(did.Duplicated); got != want {
		t.Errorf("%d arrived, want %d", got, want)
	}
	again, _ := fates(t, all, count)
	if diff := cmp.Diff(order, again); diff != "" {
		t.Errorf("the same seed, another fate:\n%s", diff)
	}
	all.Seed++
	if other, _ := fates(t, all, count); cmp.Equal(order, other) {
		t.Error("another seed, the same fate")
	}
	if order, _ := fates(t, transport.Faults{Reorder: 1}, 8); !cmp.Equal(order, []byte{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("all held back for one batch: got %v", order)
	}
}

func TestFaultsValidate(t *testing.T) {
	for _, f := range []transport.Faults{{Loss: -0.1}, {Duplicate: 1.1}, {Reorder: 2}} {
		if _, err := transport.WithFaults(nil, f); !errors.Is(err, transport.ErrFaults) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestUnspecifiedAddress(t *testing.T) {
	c := open(t, udp, netip.MustParseAddrPort("0.0.0.0:0"))
	if c.LocalAddr().Port() == 0 {
		t.Errorf("listens on %v", c.LocalAddr())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadBatch(make([]transport.Packet, 1), time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
