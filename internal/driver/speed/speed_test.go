package speed

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/topology"
)

// TestQuartile has rounds of known times measured: of those that were disturbed few, and
// the first, do not count.
func TestQuartile(t *testing.T) {
	rounds := func(took ...time.Duration) Round {
		i := -1
		return func() (time.Duration, error) {
			i++
			return took[i%len(took)], nil
		}
	}
	const ms = time.Millisecond
	r, err := Measure(0, 64, 1000, rounds(9*ms, ms, ms, ms, 9*ms, ms, ms, ms), rounds(90*ms, 2*ms, 2*ms, 2*ms, 2*ms, 2*ms, 2*ms, 2*ms))
	if err != nil || r.Speed.Packets != 64_000 || r.Speed.Bytes != 32_000_000 || r.Calm() {
		t.Errorf("%+v, %v: a round in four took nine times as long", r, err)
	}
	quiet, err := Measure(0, 64, 1000, rounds(ms), rounds(2*ms))
	if err != nil || !quiet.Calm() || quiet.Disturbed != 0 || quiet.Better(r) || r.Better(quiet) || !quiet.Better(Result{}) {
		t.Errorf("%+v, %v", quiet, err)
	}
	one, two := Result{topology.Speed{Bytes: 100, Packets: 10}, 0.5}, Result{topology.Speed{Bytes: 105, Packets: 20}, 0.1}
	if best := one.Best(two); best.Speed != (topology.Speed{Bytes: 105, Packets: 20}) || !best.Better(one) || best.Better(two) || two.Best(one) != best {
		t.Errorf("%+v", best)
	}
	broken := errors.New("broken")
	if _, err := Measure(0, 1, 1, rounds(ms), func() (time.Duration, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if r, err := Measure(0, 1, 1, rounds(0), rounds(0)); err != nil || r.Speed.Packets < 9e8 {
		t.Errorf("rounds that take no time: %+v, %v", r, err)
	}
}

// TestHost measures this machine, once.
func TestHost(t *testing.T) {
	h := Host() // not known where it took too long
	if h.Bytes < 0 || h != Host() || h.Packets != 0 || h.Validate() != nil {
		t.Errorf("%v, and %v", h, Host())
	}
	t.Log(h)
	n, err := newNode()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if took, err := n.round(); err != nil || took <= 0 {
			t.Fatalf("%v, %v", took, err)
		}
	}
	if c := n.core.Counters(); c.Results != 3*Window || c.Dropped() != 0 {
		t.Errorf("%d results, %d packets dropped", c.Results, c.Dropped())
	}
	if err := n.close(); err != nil {
		t.Error(err)
	}
	if _, err := n.round(); err == nil {
		t.Error("a node without connections is measured")
	}
}

// TestStream has a core take what a stream sends, of any payload.
func TestStream(t *testing.T) {
	for _, s := range []*Stream{Small(), NewStream(Payload), NewStream(63)} {
		var from [Children]netip.AddrPort
		for i := range from {
			from[i] = netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i+1))
		}
		c, out := switchreduce.New(), switchreduce.Output{}
		c.Step(0, []switchreduce.Input{{Kind: switchreduce.Install, Config: s.Config(from)}}, &out)
		for range 5 {
			var in []switchreduce.Input
			for i, packets := range s.Next() {
				in = append(in, switchreduce.Input{Kind: switchreduce.Packet, From: from[i], Packet: packets, Size: s.Size()})
			}
			out.Reset()
			c.Step(1, in, &out)
		}
		if n := c.Counters(); n.Results != 5*Window || n.Dropped() != 0 || len(out.Sends) != Children*Window {
			t.Errorf("packets of %d bytes: %d results, %d dropped", s.Size(), n.Results, n.Dropped())
		}
	}
}

func BenchmarkHost(b *testing.B) {
	for b.Loop() {
		if _, err := measureHost(hostBudget); err != nil {
			b.Fatal(err)
		}
	}
}
