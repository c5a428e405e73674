package openconfig

import (
	"net/netip"
	"slices"
	"strconv"
)

// Count is a number that is reported also where it is zero.
type Count struct {
	N    uint64
	Said bool
}

// Counted returns n as a Count that was reported.
func Counted(n uint64) Count { return Count{N: n, Said: true} }

// Device is what a gNMI target reports of itself. Fields that are zero were not
// reported.
type Device struct {
	Name     string // host name
	BootTime uint64 // of the system, in nanoseconds since 1970
	Software string // version

	CPU                        Count               // percent of all processors that is in use
	MemoryPhysical, MemoryUsed uint64              // bytes
	MemoryFree                 uint64              // bytes, with what the system can reclaim
	Processes                  map[uint64]*Process // by number
	LLDP                       bool                // it takes part in LLDP
	Chassis, ChassisType       string              // as it announces them by LLDP
	SystemName                 string
	SystemDescription          string
	Interfaces                 map[string]*Interface // by name
	Agent                      *Agent                // nil: no switch agent of Tributary
}

// Process is a program that runs. Its times are in nanoseconds.
type Process struct {
	Name         string
	Start        uint64 // since 1970
	User, System Count  // what it has spent, in itself and in the kernel
	Memory       Count  // bytes
}

// Status is a state of an interface.
type Status string

// States of interfaces. Targets may report others.
const (
	Up   Status = "UP"
	Down Status = "DOWN"
)

// StatusOf returns Up or Down.
func StatusOf(up bool) Status {
	if up {
		return Up
	}
	return Down
}

// Interface is a network interface.
type Interface struct {
	Name        string
	Type        string // identity of a kind of interface, such as "ethernetCsmacd"
	Index       uint32
	Port        uint32 // its port number in the topology; 0: not known
	Admin, Oper Status
	LastChange  uint64 // of Oper, in nanoseconds since 1970
	MTU         uint16
	MAC         string // as in 00:00:5e:00:53:01
	Speed       uint64 // bit/s
	Addresses   []Address
	Counters    Counters
	Neighbors   []Neighbor // by LLDP
	Latency     uint64     // of the link, one way, in nanoseconds
	LLDP        bool       // it sends and receives LLDP
}

// Enabled reports whether the interface is set up.
func (i *Interface) Enabled() bool { return i.Admin == Up }

// Up reports whether the interface can carry packets.
func (i *Interface) Up() bool { return i.Oper == Up }

// Address is an address of an interface, with its network.
type Address struct {
	netip.Prefix
	Subinterface uint32
}

// Counters are what an interface has counted.
type Counters struct {
	InPackets, InBytes, InErrors, InDiscards     Count
	OutPackets, OutBytes, OutErrors, OutDiscards Count
}

// Neighbor is what an LLDP neighbour has announced, in the notation of OpenConfig.
type Neighbor struct {
	ID                   string // of the entry, free
	Chassis, ChassisType string // MAC_ADDRESS, LOCAL, ...
	Port, PortType       string // MAC_ADDRESS, INTERFACE_NAME, ...
	PortDescription      string
	SystemName           string
	SystemDescription    string
	TTL                  uint16       // seconds
	Capabilities         []Capability // of the system
	Management           []netip.Addr
	OldManagement        string // the one management address that targets of older models report; see Addresses

	Tributary Tributary
}

// Capability is something that a system can be.
type Capability struct {
	Name    string // identity, such as MAC_BRIDGE
	Enabled bool
}

// Tributary is what a neighbour of Tributary has announced beside.
type Tributary struct {
	Role      string // switch or host
	Name      string // in the fabric
	AgentPort uint16 // of its gRPC listener, at the management addresses
	Port      uint32 // port number in the topology
}

// Addresses returns the management addresses, those aside that are no IP addresses.
func (n *Neighbor) Addresses() []netip.Addr {
	if a, err := netip.ParseAddr(n.OldManagement); err == nil && !slices.Contains(n.Management, a) {
		return append(slices.Clone(n.Management), a)
	}
	return n.Management
}

// Can reports whether the system has one of the capabilities in use.
func (n *Neighbor) Can(names ...string) bool {
	return slices.ContainsFunc(n.Capabilities, func(c Capability) bool { return c.Enabled && slices.Contains(names, c.Name) })
}

// Agent is what a switch agent of Tributary reports beside. Its numbers are all
// reported, also where they are zero.
type Agent struct {
	Switch      string // name in the topology
	Version     string
	Address     string // "host:port" of its gRPC listener
	Incarnation uint64
	DataPlane   string // what reduces: software or p4
	Draining    bool
	Unusable    string // why nothing can be reserved; empty: it can

	Functions, Types               []string // that it reduces, by name
	Slots, Children, Chunk, Window uint32   // as in topology.Capability

	ReduceBytes, ReducePackets Count // of children, that it reduces in a second; 0: none

	SlotsUsed            uint32
	PacketsIn, BytesIn   uint64
	PacketsOut, BytesOut uint64
	Refused, Overflowed  uint64            // packets that the network refused to send, and that found a buffer full
	Drops                map[string]uint64 // packets by reason
	Events               map[string]uint64 // by name
	Trees                map[uint32]*Tree  // by group
}

// Tree is what the trees of one group have counted at a switch.
type Tree struct {
	PacketsIn, BytesIn   uint64
	PacketsOut, BytesOut uint64
	Dropped              uint64
}

// speeds are OpenConfig's identities for speeds of Ethernet, in bit/s.
var speeds = map[string]uint64{
	"SPEED_10MB": 10e6, "SPEED_100MB": 100e6, "SPEED_1GB": 1e9, "SPEED_2500MB": 2500e6, "SPEED_5GB": 5e9,
	"SPEED_10GB": 10e9, "SPEED_25GB": 25e9, "SPEED_40GB": 40e9, "SPEED_50GB": 50e9, "SPEED_100GB": 100e9,
	"SPEED_200GB": 200e9, "SPEED_400GB": 400e9, "SPEED_600GB": 600e9, "SPEED_800GB": 800e9, "SPEED_1600GB": 1600e9,
}

// speedName returns the identity of a speed; "" if there is none.
func speedName(speed uint64) string {
	for name, s := range speeds {
		if s == speed {
			return name
		}
	}
	return ""
}

func parseUint(s string, bits int) (uint64, error) { return strconv.ParseUint(s, 10, bits) }
