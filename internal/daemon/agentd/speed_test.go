package agentd

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/speed"
	"github.com/tributary-fabric/tributary/topology"
)

func startBare(t *testing.T, change func(*Config)) *Daemon {
	t.Helper()
	c := Config{Switch: "s", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1")}
	if change != nil {
		change(&c)
	}
	d, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// TestSpeedIsReported has the real measurement reach a watcher, unless the speed is
// given.
func TestSpeedIsReported(t *testing.T) {
	d := startBare(t, func(c *Config) { c.Measure = true })
	found := errors.New("found")
	err := d.Watch(t.Context(), 0, func(e rpc.AgentEvent) error {
		if e.State != nil && e.State.Capability.Speed.Bytes > 0 && e.State.Capability.Speed.Packets > 0 {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Error(err)
	}
	given := topology.Speed{Bytes: 7}
	for _, c := range []Config{{Measure: true, Capability: topology.Capability{Slots: 8, Children: 2, Chunk: 64, Speed: given}}, {Measure: true}, {}} {
		d := startBare(t, func(to *Config) { to.Measure, to.Capability = c.Measure, c.Capability })
		if s, err := d.State(t.Context()); err != nil || s.Capability != c.Capability {
			t.Errorf("%+v, %v; want %+v", s.Capability, err, c.Capability)
		}
	}
}

// TestBestMeasurementCounts has measurements disturbed: they are repeated, the best
// counts, and one while a tree is there is none.
func TestBestMeasurementCounts(t *testing.T) {
	d := startBare(t, nil)
	speedNow := func() int64 {
		s, err := d.State(t.Context())
		if err != nil {
			t.Error(err)
		}
		return s.Capability.Speed.Bytes
	}
	var before []int64 // what was published before each measurement
	d.settle(measurer{pauses: make([]time.Duration, 9), take: func() (speed.Result, error) {
		before = append(before, speedNow())
		n := len(before) - 1
		switch n {
		case 1:
			return speed.Result{}, errors.New("packets were lost")
		case 4: // a tree comes while it is measured, and stays
			reserve := agent.Prepare{Incarnation: d.core.Incarnation(), Group: 1, Epoch: 2, Children: 2, Window: 8, ChunkBytes: 64}
			if _, err := d.Prepare(t.Context(), reserve); err != nil {
				t.Error(err)
			}
		}
		return speed.Result{Speed: topology.Speed{Bytes: []int64{50, 0, 90, 70, 999}[n]}, Disturbed: []float64{2, 0, 1, 3, 0}[n]}, nil
	}})
	if want := []int64{0, 50, 50, 90, 90}; !slices.Equal(before, want) || speedNow() != 90 {
		t.Errorf("published before each measurement: %v, want %v; at last %d", before, want, speedNow())
	}
	taken := 0
	calm := startBare(t, nil)
	calm.settle(measurer{pauses: make([]time.Duration, 9), take: func() (speed.Result, error) {
		taken++
		return speed.Result{Speed: topology.Speed{Bytes: 5}}, nil
	}})
	if taken != leastTaken {
		t.Errorf("%d measurements, all of them calm", taken)
	}
}

// TestMeasurementEndsWithTheAgent closes an agent that waits for quieter times.
func TestMeasurementEndsWithTheAgent(t *testing.T) {
	d := startBare(t, nil)
	first := make(chan struct{}, 1)
	d.post.Go(func() {
		d.settle(measurer{pauses: []time.Duration{time.Hour}, take: func() (speed.Result, error) {
			first <- struct{}{}
			return speed.Result{Speed: topology.Speed{Bytes: 1}, Disturbed: 9}, nil
		}})
	})
	<-first
	d.Close()
}
