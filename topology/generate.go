package topology

import (
	"errors"
	"fmt"
)

// ErrShape is wrapped by a generator's errors about its arguments.
var ErrShape = errors.New("invalid fabric shape")

// Limits of generated fabrics: the first keeps the largest fat-tree at some
// four million hosts, the others say the same of all fabrics.
const (
	MaxFatTree = 256
	maxNodes   = 1 << 23
	maxLinks   = 1 << 25
)

// product multiplies numbers that are not negative, and stops far above what any
// fabric may have, so that sums of some products cannot overflow.
func product(factors ...int) int {
	const enough = 1 << 40
	p := 1
	for _, f := range factors {
		if f != 0 && p > enough/f {
			p = enough
			continue
		}
		p *= f
	}
	return p
}

// size is what a generated fabric will have.
type size struct {
	hosts, switches, links int
	ports                  int // of the node that has most
}

// check refuses what is too large before anything of it is made.
func (s size) check() error {
	switch {
	case s.ports > MaxPort:
		return fmt.Errorf("%d ports: a switch has at most %d: %w", s.ports, MaxPort, ErrShape)
	case s.hosts+s.switches > maxNodes || s.links > maxLinks:
		return fmt.Errorf("more than %d nodes or %d links: %w", maxNodes, maxLinks, ErrShape)
	}
	return nil
}

// The document's example switch: 18 ports to hosts and 18 to other switches.
const (
	FourSwitchesHosts = 18 // on each switch
	fourSwitchesTrunk = 6  // links between any two switches: 3 * 6 ports
)

// FatTree returns the fat-tree of k-port switches, k even, from 2 to
// MaxFatTree: k pods of k/2 edge and k/2 aggregation switches, (k/2)² core
// switches, k/2 hosts an edge switch, k³/4 hosts in all.
//
// Hosts h0, h1, ... lie pod by pod and edge by edge. Of edge-P-I and agg-P-I,
// switch I of pod P, ports 1 to k/2 lead down and the others up; agg-P-I leads
// to core-(I*k/2) to core-(I*k/2+k/2-1); port P+1 of a core leads to pod P.
// Source: Al-Fares, Loukissas, Vahdat: A Scalable, Commodity Data Center
// Network Architecture, SIGCOMM 2008, section 2.2.
func FatTree(k int) (*Graph, error) { return DefaultEquipment().FatTree(k) }

// FatTree is the function FatTree with this equipment.
func (e Equipment) FatTree(k int) (*Graph, error) {
	if k < 2 || k > MaxFatTree || k%2 != 0 {
		return nil, fmt.Errorf("fat-tree: k = %d is not an even number from 2 to %d: %w", k, MaxFatTree, ErrShape)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("fat-tree: %w", err)
	}
	half := k / 2
	s := ClosShape{Hosts: half, Leaves: half, Aggs: half, Cores: half, Pods: k}
	return e.threeTiers(s, fmt.Sprintf("fat-tree:%d", k), "edge-", nil), nil
}

// LeafSpine returns a fabric of two layers: every leaf has hostsPerLeaf hosts on
// ports 1 upward and after them one link to each spine; port L+1 of a spine
// leads to leaf-L. Each argument is at least 1; spines may be 0 with one leaf.
func LeafSpine(hostsPerLeaf, leaves, spines int) (*Graph, error) {
	return DefaultEquipment().LeafSpine(hostsPerLeaf, leaves, spines)
}

// LeafSpine is the function LeafSpine with this equipment.
func (e Equipment) LeafSpine(hostsPerLeaf, leaves, spines int) (*Graph, error) {
	if hostsPerLeaf < 1 || leaves < 1 || spines < 0 || spines == 0 && leaves > 1 {
		return nil, fmt.Errorf("leaf-spine: %d hosts a leaf, %d leaves, %d spines: each must be at least 1: %w",
			hostsPerLeaf, leaves, spines, ErrShape)
	}
	if err := (size{
		hosts: product(hostsPerLeaf, leaves), switches: leaves + spines,
		links: product(hostsPerLeaf+spines, leaves), ports: max(hostsPerLeaf+spines, leaves),
	}).check(); err != nil {
		return nil, fmt.Errorf("leaf-spine: %w", err)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("leaf-spine: %w", err)
	}
	hosts := hostsPerLeaf * leaves
	leaf, spine := hosts, hosts+leaves
	a := newAssembly(hosts, leaves+spines, hosts+leaves*spines)
	a.attach(hosts, hostsPerLeaf, leaf)
	a.mesh(leaf, leaves, hostsPerLeaf+1, spine, spines, 1)
	return a.graph(e, fmt.Sprintf("leaf-spine:%d,%d,%d", hostsPerLeaf, leaves, spines), patterns{
		{prefix: "h", count: hosts},
		{prefix: "leaf-", first: NodeID(leaf), count: leaves},
		{prefix: "spine-", first: NodeID(spine), count: spines},
	}, []layerRun{{0, hosts}, {1, leaves}, {2, spines}}), nil
}

// FourSwitches returns the document's example: switches A, B, C and D with 18
// host ports and 18 switch ports each. All are in use: h0 to h17 are on ports 1
// to 18 of A, h18 to h35 on B, and so on; the document leaves the wiring between
// the switches open, and here six links join any two of them, on ports 19 to 36.
func FourSwitches() (*Graph, error) { return DefaultEquipment().FourSwitches(FourSwitchesHosts) }

// FourSwitches is the function FourSwitches with this equipment and with so many
// hosts on each switch, from 1 to FourSwitchesHosts.
func (e Equipment) FourSwitches(hostsPerSwitch int) (*Graph, error) {
	if hostsPerSwitch < 1 || hostsPerSwitch > FourSwitchesHosts {
		return nil, fmt.Errorf("four-switches: %d hosts a switch are not within 1 and %d: %w",
			hostsPerSwitch, FourSwitchesHosts, ErrShape)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("four-switches: %w", err)
	}
	hosts := 4 * hostsPerSwitch
	a := newAssembly(hosts, 4, hosts+6*fourSwitchesTrunk)
	a.attach(hosts, hostsPerSwitch, hosts)
	// Switch x has its trunk to y at the place of y among the other three.
	port := func(x, y, i int) int {
		if y > x {
			y--
		}
		return FourSwitchesHosts + y*fourSwitchesTrunk + i + 1
	}
	for x := range 4 {
		for y := x + 1; y < 4; y++ {
			for i := range fourSwitchesTrunk {
				a.link(hosts+x, port(x, y, i), hosts+y, port(y, x, i))
			}
		}
	}
	name := "four-switches"
	if hostsPerSwitch != FourSwitchesHosts {
		name = fmt.Sprintf("four-switches:%d", hostsPerSwitch)
	}
	names := patterns{{prefix: "h", count: hosts}}
	for i, s := range []string{"A", "B", "C", "D"} {
		names = append(names, pattern{prefix: s, first: NodeID(hosts + i), count: 1, bare: true})
	}
	return a.graph(e, name, names, []layerRun{{0, hosts}, {1, 4}}), nil
}

// validate checks the two things that a generator is given.
func validate(shape interface{ Validate() error }, e Equipment) error {
	if err := shape.Validate(); err != nil {
		return err
	}
	return e.Validate()
}
