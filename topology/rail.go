package topology

import "fmt"

// RailShape is the shape of a rail-optimised fabric: hosts with one port for
// each rail (of a GPU each, say), and in each pod one leaf for each rail, to
// which that port of every host in the pod leads. Every leaf has a link to every
// spine.
type RailShape struct {
	Hosts  int // in each pod
	Rails  int // ports of a host, and leaves in each pod
	Pods   int
	Spines int // may be 0 with one pod: then a rail meets the others in hosts alone
}

// Validate reports what is out of range in s.
func (s RailShape) Validate() error {
	if s.Hosts < 1 || s.Rails < 1 || s.Pods < 1 || s.Spines < 0 || s.Spines == 0 && s.Pods > 1 {
		return fmt.Errorf("%d hosts a pod, %d rails, %d pods, %d spines: each must be at least 1: %w",
			s.Hosts, s.Rails, s.Pods, s.Spines, ErrShape)
	}
	hosts, leaves := product(s.Hosts, s.Pods), product(s.Rails, s.Pods)
	return size{
		hosts: hosts, switches: leaves + s.Spines,
		links: product(hosts, s.Rails) + product(leaves, s.Spines), ports: max(s.Hosts+s.Spines, leaves),
	}.check()
}

// Rail returns the rail-optimised fabric of a shape.
//
// Hosts h0, h1, ... lie pod by pod; port R+1 of a host in pod P leads to
// leaf-P-R. Ports of a leaf lead to its hosts and then to spine-0, spine-1 and so
// on; port P*rails+R+1 of a spine leads to leaf-P-R. Source: Wang et al.:
// Rail-only: A Low-Cost High-Performance Network for Training LLMs with Trillion
// Parameters, 2023, section II, where it is what they start from.
func Rail(s RailShape) (*Graph, error) { return DefaultEquipment().Rail(s) }

// Rail is the function Rail with this equipment.
func (e Equipment) Rail(s RailShape) (*Graph, error) {
	if err := validate(s, e); err != nil {
		return nil, fmt.Errorf("rail: %w", err)
	}
	hosts, leaves := s.Hosts*s.Pods, s.Rails*s.Pods
	leaf, spine := hosts+s.Spines, hosts
	a := newAssembly(hosts, s.Spines+leaves, hosts*s.Rails+leaves*s.Spines)
	for h := range hosts {
		for r := range s.Rails {
			a.link(h, r+1, leaf+h/s.Hosts*s.Rails+r, h%s.Hosts+1)
		}
	}
	a.mesh(leaf, leaves, s.Hosts+1, spine, s.Spines, 1)
	return a.graph(e, fmt.Sprintf("rail:%d,%d,%d,%d", s.Hosts, s.Rails, s.Pods, s.Spines), patterns{
		{prefix: "h", count: hosts},
		{prefix: "spine-", first: NodeID(spine), count: s.Spines},
		{prefix: "leaf-", first: NodeID(leaf), count: leaves, inner: []int{s.Rails}},
	}, []layerRun{{0, hosts}, {2, s.Spines}, {1, leaves}}), nil
}
