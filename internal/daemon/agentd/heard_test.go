package agentd

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tributary-fabric/tributary/internal/core/neighbor"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// TestHeard: what a neighbour announces is reported in OpenConfig's notation.
func TestHeard(t *testing.T) {
	address := netip.MustParseAddr("10.0.0.2")
	for _, test := range []struct {
		is   lldpdu.Announcement
		want openconfig.Neighbor
	}{
		{
			lldpdu.Announcement{
				Chassis: lldpdu.ChassisID{Subtype: lldpdu.ChassisMAC, Value: "\x02\x00\x00\x00\x00\x01"},
				Port:    lldpdu.PortID{Subtype: lldpdu.PortInterface, Value: "eth0"}, TTL: 3, SystemName: "h0",
				Capabilities: lldpdu.Bridge | lldpdu.Station, Enabled: lldpdu.Station, Management: []netip.Addr{address},
				Tributary: lldpdu.Tributary{Role: lldpdu.Host, Name: "h0", PortNumber: 1},
			},
			openconfig.Neighbor{
				ID: "5", Chassis: "02:00:00:00:00:01", ChassisType: "MAC_ADDRESS", Port: "eth0", PortType: "INTERFACE_NAME", TTL: 3, SystemName: "h0",
				Capabilities: []openconfig.Capability{{Name: "MAC_BRIDGE"}, {Name: "STATION_ONLY", Enabled: true}}, Management: []netip.Addr{address},
				Tributary: openconfig.Tributary{Role: "host", Name: "h0", Port: 1},
			},
		},
		{
			lldpdu.Announcement{Chassis: lldpdu.ChassisID{Subtype: lldpdu.ChassisLocal, Value: "x"}, Port: lldpdu.PortID{Subtype: lldpdu.PortMAC, Value: "\x02\x00\x00\x00\x00\x02"}},
			openconfig.Neighbor{ID: "5", Chassis: "x", ChassisType: "LOCAL", Port: "02:00:00:00:00:02", PortType: "MAC_ADDRESS"},
		},
	} {
		got := heard(&neighbor.Neighbor{ID: 5, Announcement: test.is})
		if diff := cmp.Diff(test.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Error(diff)
		}
	}
}
