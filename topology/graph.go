package topology

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"time"
	"unsafe"
)

// NodeID numbers the nodes of one graph densely: hosts from 0, then switches.
type NodeID int32

// LinkID numbers the links of one graph densely from 0.
type LinkID int32

// NoNode and NoLink stand where there is no node or link.
const (
	NoNode NodeID = -1
	NoLink LinkID = -1
)

// Port is a port's number on its node, from 1.
type Port uint16

// Kind is what a node is.
type Kind uint8

// The kinds of node.
const (
	Host   Kind = 1
	Switch Kind = 2
)

// String returns "host" or "switch".
func (k Kind) String() string {
	switch k {
	case Host:
		return "host"
	case Switch:
		return "switch"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// End is where a link ends.
type End struct {
	Node NodeID
	Port Port
}

// LinkSpec is what a link carries, in each direction.
type LinkSpec struct {
	Bandwidth int64         // bit/s
	Latency   time.Duration // one way, the far node's port included
}

// Link is a cable between the ports of two nodes.
type Link struct {
	Ends [2]End
	LinkSpec
}

// Graph is a fabric. It never changes.
type Graph struct {
	fabric string
	hosts  int32 // nodes below are hosts, the others switches
	names  namer

	// Compressed sparse rows: the links at node n are
	// adjacent[offset[n]:offset[n+1]], by ascending port of n.
	offset   []int32
	adjacent []LinkID

	// By link. Few links differ in what they carry, so that is kept once.
	ends  [][2]NodeID
	ports [][2]Port
	spec  []uint32 // index in specs
	specs []LinkSpec
	// By link, the addresses of its ends; nil if no link has any.
	addresses [][2]netip.Addr

	layers  []uint8  // by node
	caps    []uint32 // by switch, index in capSets
	capSets []Capability

	hostSpeed  Speed            // of all hosts but
	hostSpeeds map[NodeID]Speed // these; nil: there are none
}

// Fabric returns the fabric's name: of a generated one its specification, such
// as "fat-tree:4".
func (g *Graph) Fabric() string { return g.fabric }

// Nodes returns the number of nodes: every NodeID is below it.
func (g *Graph) Nodes() int { return len(g.offset) - 1 }

// Hosts returns the number of hosts: they are the nodes 0 up to it.
func (g *Graph) Hosts() int { return int(g.hosts) }

// AllHosts returns all hosts.
func (g *Graph) AllHosts() []NodeID {
	all := make([]NodeID, g.hosts)
	for i := range all {
		all[i] = NodeID(i)
	}
	return all
}

// Switches returns the number of switches.
func (g *Graph) Switches() int { return g.Nodes() - g.Hosts() }

// Links returns the number of links: every LinkID is below it.
func (g *Graph) Links() int { return len(g.ends) }

// HasNode reports whether n is a node of this graph.
func (g *Graph) HasNode(n NodeID) bool { return n >= 0 && int(n) < g.Nodes() }

// HasLink reports whether l is a link of this graph.
func (g *Graph) HasLink(l LinkID) bool { return l >= 0 && int(l) < g.Links() }

// IsHost reports whether n is a host.
func (g *Graph) IsHost(n NodeID) bool { return n >= 0 && int32(n) < g.hosts }

// IsSwitch reports whether n is a switch.
func (g *Graph) IsSwitch(n NodeID) bool { return int32(n) >= g.hosts && int(n) < g.Nodes() }

// Kind returns whether n is a host or a switch.
func (g *Graph) Kind(n NodeID) Kind {
	if int32(n) < g.hosts {
		return Host
	}
	return Switch
}

// Switch returns the i-th switch, i from 0 to Switches()-1.
func (g *Graph) Switch(i int) NodeID { return NodeID(int(g.hosts) + i) }

// SwitchIndex is the inverse of Switch: dense over the switches alone.
func (g *Graph) SwitchIndex(n NodeID) int { return int(int32(n) - g.hosts) }

// Name returns the name of n, which is unique in the graph.
func (g *Graph) Name(n NodeID) string {
	if !g.HasNode(n) {
		return "node(" + strconv.Itoa(int(n)) + ")"
	}
	return g.names.name(n)
}

// Lookup returns the node of that name.
func (g *Graph) Lookup(name string) (NodeID, bool) { return g.names.lookup(name) }

// Layer returns the row of a drawing in which n belongs: 0 for hosts, 1 for
// switches with hosts (leaves, edges), and so on upwards to Layers()-1.
func (g *Graph) Layer(n NodeID) int { return int(g.layers[n]) }

// Layers returns the number of layers, that of the hosts included.
func (g *Graph) Layers() int {
	if len(g.layers) == 0 {
		return 0
	}
	return int(slices.Max(g.layers)) + 1
}

// Capability returns what switch n was built with; the zero value for a host.
// What holds at a moment is View.Capability.
func (g *Graph) Capability(n NodeID) Capability {
	if !g.IsSwitch(n) {
		return Capability{}
	}
	return g.capSets[g.caps[g.SwitchIndex(n)]]
}

// Speed returns the speed at which host or switch n reduces, as it was built with.
// What holds of a switch at a moment is in View.Capability.
func (g *Graph) Speed(n NodeID) Speed {
	if !g.IsHost(n) {
		return g.Capability(n).Speed
	}
	if s, other := g.hostSpeeds[n]; other {
		return s
	}
	return g.hostSpeed
}

// Adjacent returns the links at n by ascending port. The caller must not change
// the slice.
func (g *Graph) Adjacent(n NodeID) []LinkID { return g.adjacent[g.offset[n]:g.offset[n+1]] }

// Degree returns the number of links at n.
func (g *Graph) Degree(n NodeID) int { return int(g.offset[n+1] - g.offset[n]) }

// Across returns the node at the other end of link l than n.
func (g *Graph) Across(l LinkID, n NodeID) NodeID {
	ends := &g.ends[l]
	if ends[0] == n {
		return ends[1]
	}
	return ends[0]
}

// Link returns link l.
func (g *Graph) Link(l LinkID) Link {
	return Link{
		Ends: [2]End{
			{Node: g.ends[l][0], Port: g.ports[l][0]},
			{Node: g.ends[l][1], Port: g.ports[l][1]},
		},
		LinkSpec: g.specs[g.spec[l]],
	}
}

// AllLinks iterates over the links in ascending order.
func (g *Graph) AllLinks() iter.Seq2[LinkID, Link] {
	return func(yield func(LinkID, Link) bool) {
		for l := range g.ends {
			if !yield(LinkID(l), g.Link(LinkID(l))) {
				return
			}
		}
	}
}

// LinkAt returns the link at a port of n.
func (g *Graph) LinkAt(n NodeID, port Port) (LinkID, bool) {
	links := g.Adjacent(n)
	i := sort.Search(len(links), func(i int) bool { return *g.portOf(links[i], n) >= port })
	if i == len(links) || *g.portOf(links[i], n) != port {
		return NoLink, false
	}
	return links[i], true
}

// PortAt returns the port at which link l ends at node n, which is one of its ends.
func (g *Graph) PortAt(l LinkID, n NodeID) Port { return *g.portOf(l, n) }

// LinkName names l by its two ends, such as "h0:1--edge-0-0:1".
func (g *Graph) LinkName(l LinkID) string {
	if !g.HasLink(l) {
		return "link(" + strconv.Itoa(int(l)) + ")"
	}
	a, b := g.Link(l).Ends[0], g.Link(l).Ends[1]
	return fmt.Sprintf("%s:%d--%s:%d", g.Name(a.Node), a.Port, g.Name(b.Node), b.Port)
}

// Bytes returns the memory that the graph holds, in bytes.
func (g *Graph) Bytes() int {
	return int(unsafe.Sizeof(*g)) + len(g.fabric) + g.names.bytes() +
		sliceBytes(g.offset) + sliceBytes(g.adjacent) + sliceBytes(g.ends) + sliceBytes(g.ports) +
		sliceBytes(g.spec) + sliceBytes(g.specs) + sliceBytes(g.addresses) + sliceBytes(g.layers) + sliceBytes(g.caps) + sliceBytes(g.capSets) + 32*len(g.hostSpeeds)
}

func sliceBytes[T any](s []T) int {
	var x T
	return cap(s) * int(unsafe.Sizeof(x))
}

// Equal reports whether two graphs describe the same fabric with the same
// numbers of nodes and links.
func Equal(a, b *Graph) bool {
	if a.fabric != b.fabric || a.Hosts() != b.Hosts() || a.Nodes() != b.Nodes() || a.Links() != b.Links() ||
		!slices.Equal(a.layers, b.layers) {
		return false
	}
	for n := range NodeID(a.Nodes()) {
		if a.Name(n) != b.Name(n) || a.Capability(n) != b.Capability(n) || a.Speed(n) != b.Speed(n) {
			return false
		}
	}
	for l := range LinkID(a.Links()) {
		if a.Link(l) != b.Link(l) {
			return false
		}
		for _, end := range a.ends[l] {
			if a.AddressAt(l, end) != b.AddressAt(l, end) {
				return false
			}
		}
	}
	return true
}
