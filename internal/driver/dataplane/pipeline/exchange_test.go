package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
)

// TestExchanges reports by epoch and neighbour what the target has counted since it
// was asked first, in bytes of UDP payloads.
func TestExchanges(t *testing.T) {
	target := newTarget(t)
	b := newBench(t, configOf(target.Address()))
	b.usable()
	b.tree(1, 7)
	b.installs(1, epochOf(7, 2, 8))
	const parent, first, second = 0, 1, 2
	target.Count(p4.CounterReceived, first, 5, 5000) // of an earlier epoch in these cells
	b.counted()
	target.Count(p4.CounterReceived, first, 2, 2*(framing+1000))
	target.Count(p4.CounterSent, second, 3, 3*(framing+900))
	target.Count(p4.CounterShortened, second, 4, 0)
	target.Count(p4.CounterSent, parent, 1, framing+1000)
	target.Count(p4.CounterForged, second, 6, 0)
	target.Count(p4.CounterReceived, p4.Neighbours+first, 9, 9000) // of no epoch
	// What the target hands over comes in there, and what is made of it leaves here.
	c := epochOf(7, 2, 8)
	for child := range 2 {
		if err := target.Punt(contribution(c, child, float32(child)), uint64(child+1), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := target.PacketsOut(testContext(t)); err != nil { // the partial
		t.Fatal(err)
	}
	want := []rpc.EpochTraffic{{Group: 7, EpochTraffic: switchreduce.EpochTraffic{
		Epoch: 2,
		Children: []switchreduce.Traffic{
			{PacketsIn: 2, BytesIn: 2000},
			{PacketsOut: 7, BytesOut: 2700 + 4*wire.HeaderSize, Forged: 6},
		},
		Parent: &switchreduce.Traffic{PacketsOut: 2, BytesOut: 1000 + wire.HeaderSize + 4},
	}}}
	if diff := cmp.Diff(want, b.counted().Epochs); diff != "" {
		t.Error(diff)
	}
}
