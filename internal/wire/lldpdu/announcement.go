package lldpdu

import (
	"net/netip"
	"slices"
	"strings"
)

// EtherType is that of frames with an LLDPDU.
const EtherType = 0x88cc

// Multicast is the address that frames are sent to: that of the nearest bridge, which no
// bridge forwards.
var Multicast = [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Bounds of an LLDPDU.
const (
	MaxSize       = 1500 // bytes of an LLDPDU
	MaxText       = 255  // bytes of a text or an identifier, by the standard
	MaxManagement = 8    // management addresses; further ones are discarded
)

// Announcement is what an LLDPDU announces. Empty fields are not in it.
type Announcement struct {
	Chassis           ChassisID
	Port              PortID
	TTL               uint16 // seconds; 0: the port shuts down, and the other fields mean nothing
	PortDescription   string
	SystemName        string
	SystemDescription string
	Capabilities      Capabilities // of the system
	Enabled           Capabilities // those in use
	Management        []netip.Addr // without zones and repetitions
	Tributary         Tributary
}

// Tributary is what a node of Tributary adds, in TLVs of its own.
type Tributary struct {
	Role       Role
	Name       string // of the node in the fabric; empty only if Role is None
	AgentPort  uint16 // of the agent's gRPC listener, at the management addresses; 0: none
	PortNumber uint32 // of the port in the topology; 0: not known
}

// Role is what a node of Tributary is in the fabric.
type Role uint8

// The roles.
const (
	None Role = iota // no node of Tributary
	Switch
	Host
)

var roles = [...]string{"none", "switch", "host"}

// String returns the role's name.
func (r Role) String() string { return roles[min(int(r), len(roles)-1)] }

// Equal reports whether two announcements are the same.
func (a *Announcement) Equal(b *Announcement) bool {
	return a.Chassis == b.Chassis && a.Port == b.Port && a.TTL == b.TTL &&
		a.PortDescription == b.PortDescription && a.SystemName == b.SystemName && a.SystemDescription == b.SystemDescription &&
		a.Capabilities == b.Capabilities && a.Enabled == b.Enabled && a.Tributary == b.Tributary &&
		slices.Equal(a.Management, b.Management)
}

// Capabilities is a set of what a system can be.
type Capabilities uint16

// The capabilities of IEEE 802.1AB, table 8-4.
const (
	Other Capabilities = 1 << iota
	Repeater
	Bridge
	AccessPoint
	Router
	Telephone
	DOCSIS
	Station
	CustomerVLAN
	ServiceVLAN
	TwoPortRelay
)

var capabilities = [...]string{
	"other", "repeater", "bridge", "access-point", "router", "telephone", "docsis", "station",
	"customer-vlan", "service-vlan", "two-port-relay",
}

// Has reports whether one of the capabilities in any is in c.
func (c Capabilities) Has(any Capabilities) bool { return c&any != 0 }

// String returns the names of the capabilities that the standard has.
func (c Capabilities) String() string {
	var names []string
	for i, name := range capabilities {
		if c>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
