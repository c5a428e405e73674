package lldpdu

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/lldp"

	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

// ChassisID identifies a machine. Two are the same if they are equal.
type ChassisID struct {
	Subtype ChassisSubtype
	Value   string // the bytes: of a MAC address 6
}

// PortID identifies a port of its machine. Two are the same if they are equal.
type PortID struct {
	Subtype PortSubtype
	Value   string // the bytes: of a MAC address 6
}

// ChassisSubtype is what a ChassisID consists of.
type ChassisSubtype uint8

// The subtypes of a ChassisID.
const (
	ChassisComponent     = ChassisSubtype(lldp.ChassisIDSubtypeChassisComponenent)
	ChassisAlias         = ChassisSubtype(lldp.ChassisIDSubtypeInterfaceAlias)
	ChassisPortComponent = ChassisSubtype(lldp.ChassisIDSubtypePortComponent)
	ChassisMAC           = ChassisSubtype(lldp.ChassisIDSubtypeMACAddress)
	ChassisNetwork       = ChassisSubtype(lldp.ChassisIDSubtypeNetworkAddress)
	ChassisInterface     = ChassisSubtype(lldp.ChassisIDSubtypeInterfaceName)
	ChassisLocal         = ChassisSubtype(lldp.ChassisIDSubtypeLocallyAssigned)
)

// PortSubtype is what a PortID consists of.
type PortSubtype uint8

// The subtypes of a PortID.
const (
	PortAlias     = PortSubtype(lldp.PortIDSubtypeInterfaceAlias)
	PortComponent = PortSubtype(lldp.PortIDSubtypePortComponent)
	PortMAC       = PortSubtype(lldp.PortIDSubtypeMACAddress)
	PortNetwork   = PortSubtype(lldp.PortIDSubtypeNetworkAddress)
	PortInterface = PortSubtype(lldp.PortIDSubtypeInterfaceName)
	PortCircuit   = PortSubtype(lldp.PortIDSubtypeAgentCircuitID)
	PortLocal     = PortSubtype(lldp.PortIDSubtypeLocallyAssigned)
)

var chassisSubtypes = [...]string{
	ChassisComponent: "CHASSIS_COMPONENT", ChassisAlias: "INTERFACE_ALIAS", ChassisPortComponent: "PORT_COMPONENT",
	ChassisMAC: "MAC_ADDRESS", ChassisNetwork: "NETWORK_ADDRESS", ChassisInterface: "INTERFACE_NAME", ChassisLocal: "LOCAL",
}

var portSubtypes = [...]string{
	PortAlias: "INTERFACE_ALIAS", PortComponent: "PORT_COMPONENT", PortMAC: "MAC_ADDRESS", PortNetwork: "NETWORK_ADDRESS",
	PortInterface: "INTERFACE_NAME", PortCircuit: "AGENT_CIRCUIT_ID", PortLocal: "LOCAL",
}

// String returns the name that OpenConfig has for s, "" where it has none.
func (s ChassisSubtype) String() string { return named(chassisSubtypes[:], int(s)) }

// String returns the name that OpenConfig has for s, "" where it has none.
func (s PortSubtype) String() string { return named(portSubtypes[:], int(s)) }

func named(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return ""
}

// String returns the value as people write it: an address in its notation, a text on one
// line that is safe to print.
func (id ChassisID) String() string {
	return text(id.Value, id.Subtype == ChassisMAC, id.Subtype == ChassisNetwork)
}

// String returns the value as people write it: an address in its notation, a text on one
// line that is safe to print.
func (id PortID) String() string {
	return text(id.Value, id.Subtype == PortMAC, id.Subtype == PortNetwork)
}

func text(value string, isMAC, isNetwork bool) string {
	switch {
	case isMAC:
		return net.HardwareAddr(value).String()
	case isNetwork:
		if a, ok := address([]byte(value)); ok {
			return a.String()
		}
		return fmt.Sprintf("%x", value)
	}
	return printable.Text(value)
}

// Families of addresses, by the register of address family numbers (RFC 3232).
const (
	familyIPv4 = 1
	familyIPv6 = 2
)

// address reads an address behind the number of its family. It is not ok if the family is
// not IP.
func address(b []byte) (a netip.Addr, ok bool) {
	if len(b) == 5 && b[0] == familyIPv4 || len(b) == 17 && b[0] == familyIPv6 {
		a, ok = netip.AddrFromSlice(b[1:])
	}
	return a.Unmap(), ok
}

// appendAddress appends an address behind the number of its family.
func appendAddress(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		return append(append(b, familyIPv4), a.AsSlice()...)
	}
	return append(append(b, familyIPv6), a.AsSlice()...)
}
