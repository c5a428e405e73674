package hostlib

import (
	"net/netip"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

func TestTrialLoss(t *testing.T) {
	const packets = 1000
	for _, test := range []struct {
		p        float64
		min, max uint64 // that are sent
	}{{0, packets, packets}, {0.1, packets * 8 / 10, packets * 97 / 100}, {1, 0, 0}, {7, 0, 0}} {
		var memory transport.Memory
		inner, err := memory.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		s := defaults()
		WithTrialLoss(test.p, 1)(&s)
		conn := s.wrapData(inner)
		for range packets {
			if err := conn.WriteBatch([]transport.Message{{To: inner.LocalAddr(), Body: []byte{1}}}); err != nil {
				t.Fatal(err)
			}
		}
		if sent := inner.Counters().PacketsOut; sent < test.min || sent > test.max {
			t.Errorf("with a loss of %v, %d of %d packets were sent", test.p, sent, packets)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
