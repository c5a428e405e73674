package agentd_test

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

func TestInterfacesAreReported(t *testing.T) {
	list := func(up bool, bytes uint64) []nic.Interface {
		return []nic.Interface{
			{Name: "port1", Up: true, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
			{Name: "port2", Up: up, Addresses: []netip.Addr{netip.MustParseAddr("10.0.1.1")}, Traffic: nic.Traffic{BytesIn: bytes}},
		}
	}
	var source nic.Fake
	source.Set(list(true, 1), nil)
	c := config()
	c.Interfaces = &source
	_, client := start(t, c)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	check := func(want, got *rpc.Interfaces) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Error(diff)
		}
	}
	step := 0
	err := client.Watch(ctx, 0, func(e rpc.AgentEvent) error {
		step++
		switch step {
		case 1:
			check(&rpc.Interfaces{List: list(true, 1)}, e.State.Interfaces)
			source.Set(list(true, 2), nil) // no change that is worth reporting
			counters, err := client.Counters(ctx)
			if err != nil {
				return err
			}
			check(&rpc.Interfaces{List: list(true, 2)}, counters.Interfaces)
			source.Set(list(false, 3), nil)
		case 2:
			check(&rpc.Interfaces{List: list(false, 3)}, e.Interfaces)
			source.Set(nil, nic.ErrUnsupported)
		case 3:
			check(&rpc.Interfaces{Unavailable: nic.ErrUnsupported.Error()}, e.Interfaces)
			state, err := client.State(ctx)
			if err != nil {
				return err
			}
			check(&rpc.Interfaces{Unavailable: nic.ErrUnsupported.Error()}, state.Interfaces)
			cancel()
		}
		return nil
	})
	if step != 3 {
		t.Errorf("it ended after %d events: %v", step, err)
	}
}

// TestProcessorIsReported, where the agent has one to report, and as long as it can.
func TestProcessorIsReported(t *testing.T) {
	var now atomic.Pointer[func() (processor.Time, error)]
	c := config()
	c.Processor = func() (processor.Time, error) { return (*now.Load())() }
	_, client := start(t, c)
	spent := processor.Time{Busy: time.Second, Total: time.Minute}
	for _, test := range []struct {
		now  processor.Time
		err  error
		want processor.Time
	}{{spent, nil, spent}, {spent, processor.ErrUnsupported, processor.Time{}}} {
		read := func() (processor.Time, error) { return test.now, test.err }
		now.Store(&read)
		if counters, err := client.Counters(testContext(t)); err != nil || counters.CPU != test.want {
			t.Errorf("%+v, %v; want %+v", counters.CPU, err, test.want)
		}
	}
	_, silent := start(t, config())
	if counters, err := silent.Counters(testContext(t)); err != nil || counters.CPU != (processor.Time{}) {
		t.Errorf("%+v, %v", counters.CPU, err)
	}
}

// TestTrafficOfEpochs: what a tree exchanges with its neighbours is reported by
// epoch, and without interfaces where the agent has none to report.
func TestTrafficOfEpochs(t *testing.T) {
	_, client := start(t, config())
	g := newGroup(t, client, 7, 2)
	g.install(t, client)
	for rank, h := range g.hosts {
		h.send(g.parent, wire.Header{
			Type: wire.Contribution, Flags: wire.Sink, Child: uint16(rank), Group: 7, Epoch: 2, Cookie: g.config.Children[rank].Cookie,
			Lowest:    uint32(rank),
			Signature: wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint32, Elements: 1, ChunkElements: 1},
		}, []byte{1, 0, 0, 0})
	}
	for _, h := range g.hosts {
		h.receive()
	}
	counters, err := client.Counters(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	const packet = wire.HeaderSize + 4
	each := switchreduce.Traffic{PacketsIn: 1, BytesIn: packet, PacketsOut: 1, BytesOut: packet}
	want := []rpc.EpochTraffic{{Group: 7, EpochTraffic: switchreduce.EpochTraffic{Epoch: 2, Children: []switchreduce.Traffic{each, each}}}}
	if diff := cmp.Diff(want, counters.Epochs); diff != "" || counters.Interfaces != nil {
		t.Errorf("%s, interfaces %v", diff, counters.Interfaces)
	}
}
