package discovery

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// FactsOf returns what a gNMI target says of itself, as far as it matters here. It keeps
// nothing of d that may change.
func FactsOf(d *openconfig.Device) *Facts {
	f := &Facts{Hostname: d.Name, Chassis: idOf(d.Chassis, d.ChassisType), Speaks: d.LLDP || d.Agent == nil && d.Chassis != ""}
	if a := d.Agent; a != nil {
		f.Agent = &Agent{Switch: a.Switch, Incarnation: a.Incarnation, Capability: capabilityOf(a)}
	}
	f.Ports = make([]Port, 0, len(d.Interfaces))
	for name, i := range d.Interfaces {
		if i.Type == "softwareLoopback" || name == "" || name == "lo" {
			continue
		}
		f.Ports = append(f.Ports, portOf(i))
		f.Speaks = f.Speaks || len(i.Neighbors) > 0
	}
	slices.SortFunc(f.Ports, func(a, b Port) int { return compareNames(a.Interface, b.Interface) })
	return f
}

func portOf(i *openconfig.Interface) Port {
	p := Port{
		Interface: i.Name, Number: i.Port, Index: i.Index, Up: i.Up() && i.Admin != openconfig.Down,
		Speed: int64(i.Speed), MTU: int(i.MTU), Latency: time.Duration(i.Latency),
	}
	spec := topology.LinkSpec{Bandwidth: max(p.Speed, 1), Latency: p.Latency}
	if spec.Validate() != nil {
		p.Speed, p.Latency = 0, 0
	}
	if i.MAC != "" {
		p.MAC = MACID(i.MAC)
	}
	for _, a := range i.Addresses {
		if a.IsValid() && a.Addr().IsGlobalUnicast() {
			p.Addresses = append(p.Addresses, a.Prefix)
		}
	}
	slices.SortFunc(p.Addresses, func(a, b netip.Prefix) int { return a.Compare(b) })
	for n := range i.Neighbors {
		p.Neighbors = append(p.Neighbors, neighborOf(&i.Neighbors[n]))
	}
	return p
}

func neighborOf(n *openconfig.Neighbor) Neighbor {
	own := &n.Tributary
	heard := Neighbor{
		Chassis: idOf(n.Chassis, n.ChassisType), Port: idOf(n.Port, n.PortType), Description: n.PortDescription,
		Name: n.SystemName, Node: own.Name, Number: own.Port, AgentPort: own.AgentPort,
		Switch: own.Role == "switch" || own.Role == "" && n.Can("MAC_BRIDGE", "ROUTER"),
	}
	for _, a := range n.Addresses() {
		if a = a.Unmap(); a.IsGlobalUnicast() || a.IsLoopback() {
			heard.Management = append(heard.Management, a.WithZone(""))
		}
	}
	heard.Management = heard.Management[:min(len(heard.Management), maxAddresses)]
	return heard
}

func idOf(value, kind string) ID {
	if kind == "MAC_ADDRESS" {
		return MACID(value)
	}
	return NameID(value)
}

// speedOf returns a speed as a topology has it.
func speedOf(n openconfig.Count) int64 {
	switch {
	case !n.Said:
		return 0 // not known
	case n.N == 0:
		return topology.NoSpeed
	}
	return int64(min(n.N, math.MaxInt64))
}

// capabilityOf returns what an agent can reduce; the zero value where it says what cannot be.
func capabilityOf(a *openconfig.Agent) topology.Capability {
	c := topology.Capability{Slots: int(a.Slots), Children: int(a.Children), Chunk: int(a.Chunk), Window: int(a.Window)}
	c.Speed = topology.Speed{Bytes: speedOf(a.ReduceBytes), Packets: speedOf(a.ReducePackets)}
	for _, name := range a.Functions {
		if f, err := reduce.ParseFunction(name); err == nil {
			c.Functions |= topology.FunctionsOf(f)
		}
	}
	for _, name := range a.Types {
		if t, err := reduce.ParseType(name); err == nil {
			c.Types |= topology.TypesOf(t)
		}
	}
	if c.Validate() != nil {
		return topology.Capability{}
	}
	return c
}
