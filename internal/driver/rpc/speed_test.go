package rpc

import (
	"errors"
	"math"
	"strings"
	"testing"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/topology"
)

// TestForgedSpeeds reads speeds as agents and hosts may claim them.
func TestForgedSpeeds(t *testing.T) {
	for claimed, want := range map[uint64]int64{0: topology.NoSpeed, 1: 1, topology.LineRate: topology.LineRate, topology.LineRate + 1: 0, 1 << 63: 0, math.MaxUint64: 0} {
		for _, m := range []*pb.Speed{{Bytes: &claimed}, {Packets: &claimed}} {
			var of, host reader
			c := of.capability(&pb.Capability{Slots: 1, Speed: m})
			w := host.watch(&pb.Watch{Group: 1, DataAddress: "10.0.0.1:5", Speed: m})
			if want == 0 {
				for _, err := range []error{of.err, host.err} {
					if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "speed") {
						t.Errorf("%d is taken: %v", claimed, err)
					}
				}
				continue
			}
			is := topology.Speed{Bytes: want}
			if m.Packets != nil {
				is = topology.Speed{Packets: want}
			}
			if c.Speed != is || w.Speed != is || of.err != nil || host.err != nil {
				t.Errorf("%d: %v, %v; %v, %v", claimed, c.Speed, of.err, w.Speed, host.err)
			}
		}
	}
}
