package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// GridShape is the shape of a fabric whose switches have coordinates: a torus,
// or a HyperX.
type GridShape struct {
	Hosts int   // on each switch
	Sides []int // switches along each dimension, 1 to MaxDimensions of them
}

// MaxDimensions is the most dimensions of a GridShape.
const MaxDimensions = 16

// Validate reports what is out of range in s, as a torus and as a HyperX.
func (s GridShape) Validate() error {
	if s.Hosts < 1 || len(s.Sides) < 1 || len(s.Sides) > MaxDimensions {
		return fmt.Errorf("%d hosts a switch, %d dimensions: at least 1 host, 1 to %d dimensions: %w",
			s.Hosts, len(s.Sides), MaxDimensions, ErrShape)
	}
	ports := s.Hosts
	for _, side := range s.Sides {
		if side < 2 {
			return fmt.Errorf("a side of %d switches: it must have at least 2: %w", side, ErrShape)
		}
		// Those of a HyperX: a torus has no more.
		ports = min(ports+side-1, maxNodes)
	}
	switches := product(s.Sides...)
	return size{
		hosts: product(s.Hosts, switches), switches: switches,
		links: product(s.Hosts, switches) + product(switches, ports-s.Hosts)/2, ports: ports,
	}.check()
}

// specification returns the fabric's name.
func (s GridShape) specification(generator string) string {
	var b strings.Builder
	b.WriteString(generator + ":" + strconv.Itoa(s.Hosts))
	for _, side := range s.Sides {
		b.WriteString("," + strconv.Itoa(side))
	}
	return b.String()
}

// grid begins a fabric on a grid with its hosts and their links.
func (s GridShape) grid(linksBetweenSwitches int) (a *assembly, names patterns, runs []layerRun) {
	switches := product(s.Sides...)
	hosts := s.Hosts * switches
	a = newAssembly(hosts, switches, hosts+linksBetweenSwitches)
	a.attach(hosts, s.Hosts, hosts)
	return a, patterns{
		{prefix: "h", count: hosts},
		{prefix: "sw-", first: NodeID(hosts), count: switches, inner: s.Sides[1:]},
	}, []layerRun{{0, hosts}, {1, switches}}
}

// Torus returns the torus of a shape: along each dimension every switch has a
// link to the next one, and the last to the first; on a side of two it is one
// link and not two.
//
// Hosts h0, h1, ... lie switch by switch; switches are sw-X-Y-... by their
// coordinates, of which the last counts fastest. The first ports of a switch
// lead to its hosts; then it has two a dimension, to the next and to the one
// before, and of a side of two the second stays free. Source: Dally: Performance
// Analysis of k-ary n-cube Interconnection Networks, IEEE Transactions on
// Computers 1990.
func Torus(s GridShape) (*Graph, error) { return DefaultEquipment().Torus(s) }

// Torus is the function Torus with this equipment.
func (e Equipment) Torus(s GridShape) (*Graph, error) {
	if err := validate(s, e); err != nil {
		return nil, fmt.Errorf("torus: %w", err)
	}
	switches, links := product(s.Sides...), 0
	for _, side := range s.Sides {
		if side == 2 {
			links += switches / 2
		} else {
			links += switches
		}
	}
	a, names, runs := s.grid(links)
	stride := switches
	for d, side := range s.Sides {
		stride /= side
		port := s.Hosts + 2*d + 1
		for i := range switches {
			at := i / stride % side
			switch {
			case at < side-1:
				a.link(a.hosts+i, port, a.hosts+i+stride, backPort(port, side))
			case side > 2:
				a.link(a.hosts+i, port, a.hosts+i-at*stride, backPort(port, side))
			}
		}
	}
	return a.graph(e, s.specification("torus"), names, runs), nil
}

// backPort returns the port to the switch before, where port is to the next: the
// same on a side of two.
func backPort(port, side int) int {
	if side == 2 {
		return port
	}
	return port + 1
}

// HyperX returns the HyperX of a shape: along each dimension every switch has a
// link to all others that differ from it in this coordinate alone. With one
// dimension it is a full mesh, with sides of two a hypercube.
//
// Hosts and switches are named as in a torus. The first ports of a switch lead
// to its hosts; then come those of each dimension, to the others in ascending
// order. Source: Ahn et al.: HyperX: Topology, Routing, and Packaging of
// Efficient Large-Scale Networks, SC 2009, section 2.
func HyperX(s GridShape) (*Graph, error) { return DefaultEquipment().HyperX(s) }

// HyperX is the function HyperX with this equipment.
func (e Equipment) HyperX(s GridShape) (*Graph, error) {
	if err := validate(s, e); err != nil {
		return nil, fmt.Errorf("hyperx: %w", err)
	}
	switches, ends := product(s.Sides...), 0
	for _, side := range s.Sides {
		ends += switches * (side - 1)
	}
	a, names, runs := s.grid(ends / 2)
	stride, port := switches, s.Hosts
	for _, side := range s.Sides {
		stride /= side
		for i := range switches {
			at := i / stride % side
			for other := at + 1; other < side; other++ {
				a.link(a.hosts+i, port+other, a.hosts+i+(other-at)*stride, port+at+1)
			}
		}
		port += side - 1
	}
	return a.graph(e, s.specification("hyperx"), names, runs), nil
}
