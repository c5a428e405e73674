package lldpdu

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ofLldpd is what all frames of the captures have.
func ofLldpd(change func(a *Announcement)) Announcement {
	a := Announcement{
		Chassis: ChassisID{ChassisMAC, "\x02\x00\x00\x00\x00\x0a"}, Port: PortID{PortInterface, "v0"},
		TTL: 120, PortDescription: "uplink", SystemName: "deb1", SystemDescription: "Debian",
		Capabilities: Bridge | AccessPoint | Router | Station, Enabled: Station,
		Management: []netip.Addr{netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00::1")},
	}
	change(&a)
	return a
}

// behind are the TLVs of IEEE 802.3 that end lldpd's frames.
const behind = "fe0900120f030100000000fe0900120f0100800000360000"

// captured are LLDPDUs that Debian's lldpd 1.0.16 sent, and one as SONiC sends it: hex
// without the Ethernet header, and what they announce.
var captured = map[string]struct {
	pdu  string
	want Announcement
}{
	"interface name": {
		"02070402000000000a0403057630060200780a04646562310c0644656269616e0e04009c0080" +
			"100c05010a090001020000000300" + "101811" + "02fd000000000000000000000000000001" + "020000000300" + "080675706c696e6b" + behind,
		ofLldpd(func(*Announcement) {}),
	},
	"port identifier is a MAC address": {
		"02070402000000000a04070302000000000a060200780a04646562310c0644656269616e0e04009c0080" +
			"100c05010a090001020000000300" + "101811" + "02fd000000000000000000000000000001" + "020000000300" + "08027630" + behind,
		ofLldpd(func(a *Announcement) {
			a.Port, a.PortDescription = PortID{PortMAC, "\x02\x00\x00\x00\x00\x0a"}, "v0"
		}),
	},
	"port identifier is local": {
		"02070402000000000a040b07706f72742d736576656e060200780a04646562310c0644656269616e0e04009c0080" +
			"100c05010a090001020000000300" + "101811" + "02fd000000000000000000000000000001" + "020000000300" + "0805736576656e" + behind,
		ofLldpd(func(a *Announcement) { a.Port, a.PortDescription = PortID{PortLocal, "port-seven"}, "seven" }),
	},
	"shutdown": {
		"02070402000000000a0403057630060200000000",
		Announcement{Chassis: ChassisID{ChassisMAC, "\x02\x00\x00\x00\x00\x0a"}, Port: PortID{PortInterface, "v0"}},
	},
}

func TestCaptured(t *testing.T) {
	for name, c := range captured {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(c.pdu)
			if err != nil {
				t.Fatal(err)
			}
			a, discarded, err := Decode(b)
			if err != nil || discarded != 0 {
				t.Fatalf("%v, %d discarded", err, discarded)
			}
			if diff := cmp.Diff(c.want, a, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestText is the notation of identifiers.
func TestText(t *testing.T) {
	for _, c := range []struct {
		id   interface{ String() string }
		want string
	}{
		{ChassisID{ChassisMAC, "\x02\x00\x00\x00\x00\x0a"}, "02:00:00:00:00:0a"},
		{PortID{PortMAC, "\x02\x00"}, "02:00"},
		{ChassisID{ChassisNetwork, "\x01\x0a\x00\x00\x01"}, "10.0.0.1"},
		{PortID{PortNetwork, "\x02\xfd" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"}, "fd00::1"},
		{PortID{PortNetwork, "\x06\x01\x02"}, "060102"},
		{PortID{PortInterface, "eth0\x1b"}, `eth0\x1b`},
		{ChassisID{ChassisLocal, "leaf0"}, "leaf0"},
		{ChassisMAC, "MAC_ADDRESS"}, {PortCircuit, "AGENT_CIRCUIT_ID"}, {PortSubtype(99), ""}, {ChassisSubtype(0), ""},
		{Switch, "switch"}, {Role(9), "host"}, {Bridge | Router | 1<<15, "bridge,router"},
	} {
		if got := c.id.String(); got != c.want {
			t.Errorf("%#v is written %q, want %q", c.id, got, c.want)
		}
	}
}
