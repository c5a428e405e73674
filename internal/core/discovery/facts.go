package discovery

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// ID is a chassis or port identifier of LLDP in one spelling: those of MAC addresses
// are equal whatever the letters' case and the separators.
type ID struct {
	MAC   bool
	Value string
}

// NameID returns the identifier that is a text.
func NameID(text string) ID { return ID{Value: text} }

// MACID returns the identifier that is a MAC address.
func MACID(mac string) ID {
	mac = strings.ToLower(mac)
	return ID{MAC: true, Value: strings.NewReplacer("-", ":", ".", ":").Replace(mac)}
}

func (i ID) compare(j ID) int {
	switch {
	case i.MAC == j.MAC:
		return strings.Compare(i.Value, j.Value)
	case i.MAC:
		return 1
	}
	return -1
}

// Facts are what a target says of itself.
type Facts struct {
	Hostname string
	Chassis  ID   // zero: not known
	Speaks   bool // LLDP
	Agent    *Agent
	Ports    []Port // by interface
}

func (f *Facts) equal(g *Facts) bool {
	return f.Hostname == g.Hostname && f.Chassis == g.Chassis && f.Speaks == g.Speaks &&
		(f.Agent == g.Agent || f.Agent != nil && g.Agent != nil && *f.Agent == *g.Agent) &&
		slices.EqualFunc(f.Ports, g.Ports, Port.equal)
}

// Agent is what the agent of a switch says of itself.
type Agent struct {
	Switch      string
	Incarnation uint64
	Capability  topology.Capability
}

// Port is one interface of a target.
type Port struct {
	Interface string
	Number    uint32 // in the topology; 0: not known
	Index     uint32 // of the interface; 0: not known
	Up        bool
	MAC       ID // zero: not known
	Speed     int64
	MTU       int
	Latency   time.Duration // of the link, one way; 0: not known
	Addresses []netip.Prefix
	Neighbors []Neighbor
}

func (p Port) equal(q Port) bool {
	return p.Interface == q.Interface && p.Number == q.Number && p.Index == q.Index && p.Up == q.Up && p.MAC == q.MAC &&
		p.Speed == q.Speed && p.MTU == q.MTU && p.Latency == q.Latency && slices.Equal(p.Addresses, q.Addresses) &&
		slices.EqualFunc(p.Neighbors, q.Neighbors, func(n, m Neighbor) bool { return n.equal(&m) })
}

// Neighbor is what a port has heard of the other end.
type Neighbor struct {
	Chassis     ID
	Port        ID
	Description string // of the port
	Name        string // of the system
	Node        string // in the topology, by Tributary's own TLV; empty: it is none of Tributary's
	Switch      bool   // it forwards
	Number      uint32 // of the port in the topology; 0: not known
	AgentPort   uint16 // TCP, at the management addresses; 0: there is no agent
	Management  []netip.Addr
}

// name returns what the neighbour calls itself, label what it is known by without that.
func (n *Neighbor) name() string { return cmp.Or(n.Node, n.Name) }

func (n *Neighbor) label() string { return cmp.Or(n.name(), n.Chassis.Value) }

func (n *Neighbor) equal(m *Neighbor) bool {
	return n.Chassis == m.Chassis && n.Port == m.Port && n.Description == m.Description && n.Name == m.Name &&
		n.Node == m.Node && n.Switch == m.Switch && n.Number == m.Number && n.AgentPort == m.AgentPort &&
		slices.Equal(n.Management, m.Management)
}

// compareNeighbors orders what one port hears.
func compareNeighbors(n, m *Neighbor) int {
	return cmp.Or(n.Chassis.compare(m.Chassis), n.Port.compare(m.Port))
}

// within returns neighbours without repetitions and no more than limit, those of
// Tributary first, then those that are heard already, the first of them first. Of several
// that one system sends by programs of its own, one is kept.
func within(all []Neighbor, heard []*claim, limit int) (kept []Neighbor, more bool) {
	since := func(n *Neighbor) core.Time {
		for _, k := range heard {
			if compareNeighbors(&k.neighbor, n) == 0 {
				return k.since
			}
		}
		return core.Never
	}
	foreign := func(n *Neighbor) int {
		if n.Node == "" {
			return 1
		}
		return 0
	}
	kept = slices.Clone(all)
	slices.SortStableFunc(kept, func(n, m Neighbor) int {
		return cmp.Or(cmp.Compare(foreign(&n), foreign(&m)), cmp.Compare(since(&n), since(&m)), compareNeighbors(&n, &m))
	})
	unique := kept[:0]
	for _, n := range kept {
		if !slices.ContainsFunc(unique, func(m Neighbor) bool {
			return n.Chassis == m.Chassis && n.Port == m.Port || n.Name != "" && (n.Name == m.Name || n.Name == m.Node)
		}) {
			unique = append(unique, n)
		}
	}
	if len(unique) > limit {
		return unique[:limit], true
	}
	return unique, false
}
