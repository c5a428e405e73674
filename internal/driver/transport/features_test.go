package transport_test

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// each are the features one by one, and all at once.
var each = []transport.Features{
	transport.Batching, transport.Segmentation, transport.Coalescing, transport.Lending, transport.Polling,
	transport.Sleeping, transport.GROBatches, transport.Adapting, transport.Polling | transport.Sleeping, transport.AllFeatures,
}

// without returns a listener for UDP without some features.
func without(f transport.Features) listener {
	return func(a netip.AddrPort) (transport.Conn, error) {
		return transport.ListenUDP(a, transport.Config{ReceiveBuffer: 1 << 20, Without: f})
	}
}

// TestWithout leaves features out: nobody sees that but by the time it takes.
func TestWithout(t *testing.T) {
	for _, f := range each {
		t.Run(f.String(), func(t *testing.T) {
			conform(t, func(t *testing.T) (a, b transport.Conn) {
				return open(t, without(f), loopback4), open(t, without(f), loopback4)
			})
		})
	}
}

// TestMixed lets two speak of which each has what the other has not.
func TestMixed(t *testing.T) {
	for _, f := range each {
		t.Run(f.String(), func(t *testing.T) {
			conform(t, func(t *testing.T) (a, b transport.Conn) {
				return open(t, udp, loopback4), open(t, without(f), loopback4)
			})
		})
	}
}

func TestFeaturesInUse(t *testing.T) {
	all := inUse(t, 0)
	if all == 0 {
		t.Skip("skipped: this system has the plain path only")
	}
	if all != transport.AllFeatures {
		t.Logf("this kernel has %v only", all)
	}
	for _, f := range each {
		if got := inUse(t, f); got&f != 0 || f&transport.Batching == 0 && got != all&^f {
			t.Errorf("without %v: %v in use", f, got)
		}
	}
}

func inUse(t *testing.T, without transport.Features) transport.Features {
	t.Helper()
	c, err := transport.ListenUDP(loopback4, transport.Config{Without: without})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Features()
}

func TestFeatureNames(t *testing.T) {
	for f := range transport.AllFeatures + 1 {
		if got, err := transport.ParseFeatures(f.String()); err != nil || got != f {
			t.Errorf("%v is read as %v, %v", f, got, err)
		}
	}
	for s, want := range map[string]transport.Features{"": 0, "all": transport.AllFeatures, "lending,": transport.Lending} {
		if got, err := transport.ParseFeatures(s); err != nil || got != want {
			t.Errorf("%q is read as %v, %v", s, got, err)
		}
	}
	if _, err := transport.ParseFeatures("polling,speed"); err == nil {
		t.Error("there is no feature speed")
	}
}

func TestConfigValidate(t *testing.T) {
	for _, c := range []transport.Config{
		{ReceiveBuffer: -1}, {Without: transport.AllFeatures + 1}, {Poll: -1}, {Poll: time.Hour},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	if err := (transport.Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestSilenceIsNotPolled: whoever has heard nothing sleeps at once, and does
// not keep a processor busy.
func TestSilenceIsNotPolled(t *testing.T) {
	c := open(t, udp, loopback4)
	_, err := c.ReadBatch(make([]transport.Packet, 1), time.Now().Add(20*time.Millisecond))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if n := c.Counters().WaitCalls; n > 5 {
		t.Errorf("%d waits, where one would do", n)
	}
}
