package discovery

import (
	"math"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
	"github.com/tributary-fabric/tributary/topology"
)

// TestCapabilityOf reads what agents say that they reduce: what cannot be makes a switch
// that only forwards.
func TestCapabilityOf(t *testing.T) {
	for name, test := range map[string]struct {
		bytes, packets openconfig.Count
		want           topology.Speed
		invalid        bool
	}{
		"not known":      {},
		"both":           {bytes: openconfig.Counted(4e9), packets: openconfig.Counted(3e6), want: topology.Speed{Bytes: 4e9, Packets: 3e6}},
		"none":           {bytes: openconfig.Counted(0), want: topology.Speed{Bytes: topology.NoSpeed}},
		"line rate":      {bytes: openconfig.Counted(topology.LineRate), want: topology.Speed{Bytes: topology.LineRate}},
		"above that":     {bytes: openconfig.Counted(topology.LineRate + 1), invalid: true},
		"of 64 bits":     {packets: openconfig.Counted(math.MaxUint64), invalid: true},
		"the sign's bit": {bytes: openconfig.Counted(1 << 63), invalid: true},
	} {
		a := &openconfig.Agent{Slots: 8, Children: 2, Chunk: 64, ReduceBytes: test.bytes, ReducePackets: test.packets}
		want := topology.Capability{Slots: 8, Children: 2, Chunk: 64, Speed: test.want}
		if test.invalid {
			want = topology.Capability{}
		}
		if got := capabilityOf(a); got != want || got.CanReduce() == (test.invalid || test.want.None()) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
