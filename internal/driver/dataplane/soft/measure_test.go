package soft

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// TestMeasure measures this machine over sockets of all kinds.
func TestMeasure(t *testing.T) {
	for _, c := range []Config{
		{Data: netip.IPv4Unspecified(), Chunk: 8928},
		{Data: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Chunk: 64, Without: transport.AllFeatures},
		{Data: netip.IPv6Loopback(), Chunk: 1432},
	} {
		c.Switch, c.Clock, c.Log, c.Notify = "s", runner.NewClock(), slog.New(slog.DiscardHandler), func(dataplane.Event) {}
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Measure()
		if err != nil || r.Speed.Bytes <= 1 || r.Speed.Packets <= 1 || r.Speed.Validate() != nil {
			t.Errorf("at %v: %+v, %v", c.Data, r, err)
		}
		t.Logf("at %v without %v: %v, %.0f %% longer on average", c.Data, c.Without, r.Speed, 100*r.Disturbed)
		p.Close()
	}
}
