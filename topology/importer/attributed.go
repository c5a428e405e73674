package importer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// attributedGraph is a graph of GML or GraphML: nodes and edges with attributes
// by name, of which those of the Internet Topology Zoo have a meaning here.
type attributedGraph struct {
	*draft
	title        string
	directed     bool
	nodes, edges []element
	places       []place // by draft node
}

// element is a node or an edge.
type element struct {
	id             string
	line           int
	attributes     map[string]string
	source, target string // of an edge, nodes by ID
	ports          [2]string
}

// place is where a node is, in degrees.
type place struct {
	known               bool
	latitude, longitude float64
}

// Light in glass goes 200 km in a millisecond; the Earth's radius is its mean.
const (
	kilometre   = 5 * time.Microsecond
	earthRadius = 6371.0 // km
)

// read fills the draft.
func (z *attributedGraph) read() {
	if z.report.Fabric == "" {
		z.report.Fabric = fabricName(z.title)
	}
	for _, n := range z.nodes {
		z.node(n)
	}
	forward := map[[2]int]int{} // links by direction that their opposites may repeat
	for _, e := range z.edges {
		z.edge(e, forward)
	}
}

func (z *attributedGraph) node(e element) {
	if e.id == "" {
		z.fail(e.line, fmt.Errorf("a node without an id: give it one: %w", ErrSyntax))
		return
	}
	n := node{id: e.id, label: e.first("label", "name"), line: e.line, kind: topology.Switch}
	switch what := strings.ToLower(e.first("type", "kind", "role")); {
	case what == "host" || what == "server":
		n.kind = topology.Host
	case e.attributes["Internal"] == "0":
		n.plain = true
		z.note(e.line, Changed, "nodes of other networks", CannotReduce, "switches that only forward")
	case e.attributes["hyperedge"] == "1":
		n.plain = true
		z.note(e.line, Changed, "links of more than two ends", CannotReduce, "switches that only forward")
	}
	if _, ok := z.add(n); !ok {
		return
	}
	latitude, err1 := strconv.ParseFloat(e.attributes["Latitude"], 64)
	longitude, err2 := strconv.ParseFloat(e.attributes["Longitude"], 64)
	known := err1 == nil && err2 == nil && math.Abs(latitude) <= 90 && math.Abs(longitude) <= 360
	z.places = append(z.places, place{known, latitude, longitude})
}

// first returns the first of these attributes that is there.
func (e element) first(names ...string) string {
	for _, name := range names {
		if text := e.attributes[name]; text != "" {
			return text
		}
	}
	return ""
}

func (z *attributedGraph) edge(e element, forward map[[2]int]int) {
	l := link{line: e.line}
	for end, id := range []string{e.source, e.target} {
		at, ok := z.byID[id]
		if !ok {
			z.fail(e.line, fmt.Errorf("an edge to node %q, which is not there: add it, or remove the edge: %w", short(id), ErrReference))
			return
		}
		l.ends[end], l.ports[end] = at, portOf(e.ports[end])
	}
	if z.directed {
		back := [2]int{l.ends[1], l.ends[0]}
		if forward[back] > 0 {
			forward[back]--
			z.note(e.line, Skipped, "edges back", Repeated, "")
			return
		}
		forward[l.ends]++
	}
	var ok bool
	if l.spec, ok = z.spec(e, l.ends); ok {
		z.links = append(z.links, l)
	}
}

// spec reads what a link carries: LinkSpeedRaw in bit/s, or LinkSpeed and
// LinkSpeedUnits, or a LinkLabel such as 10 Gbps; and, between two places, the
// time that light takes.
func (z *attributedGraph) spec(e element, ends [2]int) (topology.LinkSpec, bool) {
	spec, given := z.cfg.Equipment.Link, true
	bits, err := 0.0, error(nil)
	switch raw, speed, units := e.attributes["LinkSpeedRaw"], e.attributes["LinkSpeed"], e.attributes["LinkSpeedUnits"]; {
	case raw != "":
		bits, err = strconv.ParseFloat(raw, 64)
	case speed != "" && multiples[units] != 0:
		bits, err = strconv.ParseFloat(speed, 64)
		bits *= multiples[units]
	default:
		bits, given = labelled(e.attributes["LinkLabel"])
	}
	switch {
	case err != nil || !given:
		z.assume(e.line, NoSpeed)
	default:
		var ok bool
		if spec.Bandwidth, ok = z.bandwidth(e.line, bits); !ok {
			return spec, false
		}
	}
	a, b := z.places[ends[0]], z.places[ends[1]]
	if !a.known || !b.known {
		z.assume(e.line, NoLatency)
		return spec, true
	}
	spec.Latency += time.Duration(a.distance(b) * float64(kilometre))
	z.note(e.line, Assumed, "latencies", Distance, "5 µs a kilometre")
	return spec, true
}

// distance returns the kilometres between two places, along the surface.
func (a place) distance(b place) float64 {
	const degree = math.Pi / 180
	sinLatitude := math.Sin((b.latitude - a.latitude) * degree / 2)
	sinLongitude := math.Sin((b.longitude - a.longitude) * degree / 2)
	h := sinLatitude*sinLatitude + math.Cos(a.latitude*degree)*math.Cos(b.latitude*degree)*sinLongitude*sinLongitude
	return 2 * earthRadius * math.Asin(math.Sqrt(min(h, 1)))
}
