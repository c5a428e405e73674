package topology

import "fmt"

// ClosShape is the shape of a three-tier Clos fabric: pods of leaves and
// aggregation switches, each leaf with a link to every aggregation switch of its
// pod, and planes of cores above: aggregation switch I of every pod has a link
// to every core of plane I.
type ClosShape struct {
	Hosts  int // on each leaf
	Leaves int // in each pod
	Aggs   int // aggregation switches in each pod, and planes of cores
	Cores  int // in each plane; may be 0 with one pod
	Pods   int
}

// Validate reports what is out of range in s.
func (s ClosShape) Validate() error {
	if s.Hosts < 1 || s.Leaves < 1 || s.Aggs < 1 || s.Pods < 1 || s.Cores < 0 || s.Cores == 0 && s.Pods > 1 {
		return fmt.Errorf("%d hosts a leaf, %d leaves and %d aggregation switches a pod, %d cores a plane, %d pods: each must be at least 1: %w",
			s.Hosts, s.Leaves, s.Aggs, s.Cores, s.Pods, ErrShape)
	}
	return size{
		hosts: product(s.Hosts, s.Leaves, s.Pods), switches: product(s.Leaves, s.Pods) + product(s.Aggs, s.Pods) + product(s.Aggs, s.Cores),
		links: product(s.Hosts, s.Leaves, s.Pods) + product(s.Leaves, s.Aggs, s.Pods) + product(s.Aggs, s.Cores, s.Pods),
		ports: max(s.Hosts+s.Aggs, s.Leaves+s.Cores, s.Pods),
	}.check()
}

// Oversubscription returns how much more bandwidth a leaf has to its hosts than
// upwards, and an aggregation switch to its leaves than to its cores: 1 is none,
// and the second is 0 where there are no cores.
func (s ClosShape) Oversubscription() (leaf, agg float64) {
	leaf = float64(s.Hosts) / float64(s.Aggs)
	if s.Cores > 0 {
		agg = float64(s.Leaves) / float64(s.Cores)
	}
	return leaf, agg
}

// Clos returns the three-tier Clos fabric of a shape.
//
// Hosts h0, h1, ... lie pod by pod and leaf by leaf. Ports of leaf-P-I lead to
// its hosts and then to agg-P-0, agg-P-1 and so on; those of agg-P-I to the
// leaves of pod P and then to core-I-0, core-I-1 and so on; port P+1 of a core
// leads to pod P. Source: Clos: A Study of Non-Blocking Switching Networks, Bell
// System Technical Journal 1953, folded as in data centres with planes.
func Clos(s ClosShape) (*Graph, error) { return DefaultEquipment().Clos(s) }

// Clos is the function Clos with this equipment.
func (e Equipment) Clos(s ClosShape) (*Graph, error) {
	if err := validate(s, e); err != nil {
		return nil, fmt.Errorf("clos: %w", err)
	}
	return e.threeTiers(s, fmt.Sprintf("clos:%d,%d,%d,%d,%d", s.Hosts, s.Leaves, s.Aggs, s.Cores, s.Pods), "leaf-", []int{s.Cores}), nil
}

// threeTiers makes a fabric of a shape that is valid; leafName is how its leaves'
// names begin, and numbering the radices of its cores' numbers.
func (e Equipment) threeTiers(s ClosShape, fabric, leafName string, numbering []int) *Graph {
	leaves, aggs, cores := s.Leaves*s.Pods, s.Aggs*s.Pods, s.Aggs*s.Cores
	hosts := s.Hosts * leaves
	leaf, agg, core := hosts+cores+aggs, hosts+cores, hosts
	a := newAssembly(hosts, cores+aggs+leaves, hosts+leaves*s.Aggs+aggs*s.Cores)
	a.attach(hosts, s.Hosts, leaf)
	for p := range s.Pods {
		a.mesh(leaf+p*s.Leaves, s.Leaves, s.Hosts+1, agg+p*s.Aggs, s.Aggs, 1)
	}
	for i := range aggs {
		a.mesh(agg+i, 1, s.Leaves+1, core+i%s.Aggs*s.Cores, s.Cores, i/s.Aggs+1)
	}
	names := patterns{{prefix: "h", count: hosts}}
	if cores > 0 {
		names = append(names, pattern{prefix: "core-", first: NodeID(core), count: cores, inner: numbering})
	}
	names = append(names,
		pattern{prefix: "agg-", first: NodeID(agg), count: aggs, inner: []int{s.Aggs}},
		pattern{prefix: leafName, first: NodeID(leaf), count: leaves, inner: []int{s.Leaves}})
	return a.graph(e, fabric, names, []layerRun{{0, hosts}, {3, cores}, {2, aggs}, {1, leaves}})
}
