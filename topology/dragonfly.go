package topology

import "fmt"

// DragonflyShape is the shape of a dragonfly: groups of switches, any two of a
// group with a link between them, and any two groups with as many links between
// them as the global ports of a group allow.
type DragonflyShape struct {
	Hosts    int // on each switch: p
	Switches int // in each group: a
	Global   int // global ports of each switch: h
	Groups   int // g, at most a*h+1
}

// pairLinks returns the links between any two groups.
func (s DragonflyShape) pairLinks() int {
	if s.Groups == 1 {
		return 0
	}
	return s.Switches * s.Global / (s.Groups - 1)
}

// Validate reports what is out of range in s.
func (s DragonflyShape) Validate() error {
	switch {
	case s.Hosts < 1 || s.Switches < 1 || s.Global < 0 || s.Groups < 1:
		return fmt.Errorf("%d hosts and %d global ports a switch, %d switches a group, %d groups: each must be at least 1: %w",
			s.Hosts, s.Global, s.Switches, s.Groups, ErrShape)
	case s.Groups-1 > product(s.Switches, s.Global):
		return fmt.Errorf("%d groups: %d global ports of each group reach only %d others: %w",
			s.Groups, s.Switches*s.Global, s.Switches*s.Global, ErrShape)
	}
	switches := product(s.Switches, s.Groups)
	hosts := product(s.Hosts, switches)
	// Twice the links between switches: no more than this.
	ends := product(switches, s.Switches-1+s.Global)
	return size{hosts: hosts, switches: switches, links: hosts + ends/2, ports: s.Hosts + s.Switches - 1 + s.Global}.check()
}

// Dragonfly returns the dragonfly of a shape.
//
// Hosts h0, h1, ... lie group by group and switch by switch. Ports 1 to p of
// sw-G-I, switch I of group G, lead to its hosts, the next a-1 to the other
// switches of its group in ascending order, the last h to other groups. The
// global ports of a group, counted through its switches, lead to the other
// groups in ascending order, and again from the first, as often as all are
// reached (the consecutive arrangement); ports left over stay free. Sources:
// Kim, Dally, Scott, Abts: Technology-Driven, Highly-Scalable Dragonfly Topology,
// ISCA 2008, section 3; Hastings et al.: Comparing Global Link Arrangements for
// Dragonfly Networks, CLUSTER 2015.
func Dragonfly(s DragonflyShape) (*Graph, error) { return DefaultEquipment().Dragonfly(s) }

// Dragonfly is the function Dragonfly with this equipment.
func (e Equipment) Dragonfly(s DragonflyShape) (*Graph, error) {
	if err := validate(s, e); err != nil {
		return nil, fmt.Errorf("dragonfly: %w", err)
	}
	switches := s.Switches * s.Groups
	hosts := s.Hosts * switches
	groupLinks, pairs := s.Switches*(s.Switches-1)/2, s.Groups*(s.Groups-1)/2
	a := newAssembly(hosts, switches, hosts+s.Groups*groupLinks+pairs*s.pairLinks())
	a.attach(hosts, s.Hosts, hosts)
	for g := range s.Groups {
		first := hosts + g*s.Switches
		for i := range s.Switches {
			for j := i + 1; j < s.Switches; j++ {
				a.link(first+i, s.Hosts+j, first+j, s.Hosts+i+1)
			}
		}
	}
	for round := range s.pairLinks() {
		for g := range s.Groups {
			for other := g + 1; other < s.Groups; other++ {
				// The other group is the (other-1)-th of g's others, g the g-th of its.
				x, y := round*(s.Groups-1)+other-1, round*(s.Groups-1)+g
				a.link(hosts+g*s.Switches+x/s.Global, s.Hosts+s.Switches+x%s.Global,
					hosts+other*s.Switches+y/s.Global, s.Hosts+s.Switches+y%s.Global)
			}
		}
	}
	return a.graph(e, fmt.Sprintf("dragonfly:%d,%d,%d,%d", s.Hosts, s.Switches, s.Global, s.Groups), patterns{
		{prefix: "h", count: hosts},
		{prefix: "sw-", first: NodeID(hosts), count: switches, inner: []int{s.Switches}},
	}, []layerRun{{0, hosts}, {1, switches}}), nil
}
