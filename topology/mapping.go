package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// Mapping maps the numbers of one graph to those of another that describes the same
// fabric at another time: nodes by name and kind, links by the names and ports of
// both ends. It holds no tables; a look-up is one by name.
type Mapping struct{ from, to *Graph }

// NewMapping returns the mapping from one graph to another.
func NewMapping(from, to *Graph) Mapping { return Mapping{from, to} }

// From returns the graph whose numbers are mapped.
func (m Mapping) From() *Graph { return m.from }

// To returns the graph whose numbers they are mapped to.
func (m Mapping) To() *Graph { return m.to }

// Inverse returns the mapping the other way.
func (m Mapping) Inverse() Mapping { return Mapping{m.to, m.from} }

// At returns the number of n in the other graph; NoNode and false: it is not there.
func (m Mapping) At(n NodeID) (NodeID, bool) {
	if !m.from.HasNode(n) {
		return NoNode, false
	}
	if m.from == m.to {
		return n, true
	}
	to, ok := m.to.Lookup(m.from.Name(n))
	if !ok || m.to.Kind(to) != m.from.Kind(n) {
		return NoNode, false
	}
	return to, true
}

// Link returns the number of l in the other graph; NoLink and false: it is not
// there. Its ends may stand the other way round.
func (m Mapping) Link(l LinkID) (LinkID, bool) {
	if !m.from.HasLink(l) {
		return NoLink, false
	}
	if m.from == m.to {
		return l, true
	}
	ends := m.from.Link(l).Ends
	a, known := m.At(ends[0].Node)
	if !known {
		return NoLink, false
	}
	b, known := m.At(ends[1].Node)
	if !known {
		return NoLink, false
	}
	return m.to.linkBetween(End{a, ends[0].Port}, End{b, ends[1].Port})
}

// linkBetween returns the link that has these two ends.
func (g *Graph) linkBetween(a, b End) (LinkID, bool) {
	l, ok := g.LinkAt(a.Node, a.Port)
	if !ok || g.Across(l, a.Node) != b.Node || *g.portOf(l, b.Node) != b.Port {
		return NoLink, false
	}
	return l, true
}

// LookupLink returns the link of a name as LinkName writes it, its ends in either
// order.
func (g *Graph) LookupLink(name string) (LinkID, bool) {
	a, rest, ok := strings.Cut(name, ":")
	if !ok {
		return NoLink, false
	}
	port, rest, ok := strings.Cut(rest, "--")
	if !ok {
		return NoLink, false
	}
	b, other, _ := strings.Cut(rest, ":")
	x, okA := g.end(a, port)
	y, okB := g.end(b, other)
	if !okA || !okB {
		return NoLink, false
	}
	return g.linkBetween(x, y)
}

func (g *Graph) end(name, port string) (End, bool) {
	n, ok := g.Lookup(name)
	p, small := decimal(port, MaxPort+1)
	return End{n, Port(p)}, ok && small
}

// EndName names an end of a link by node and port, such as "leaf-0:5".
func (g *Graph) EndName(e End) string { return g.Name(e.Node) + ":" + strconv.Itoa(int(e.Port)) }

// Overlay returns o, of the mapping's first graph, as an overlay of the second: it
// has the state, capability and load of every node and link that is in both. Its
// version is one above that of o.
func (m Mapping) Overlay(o *Overlay) (*Overlay, error) {
	if o.graph != m.from {
		return nil, fmt.Errorf("carry overlay: %w", ErrOtherGraph)
	}
	var changes []Change
	node := func(n NodeID, c func(NodeID) Change) {
		if to, ok := m.At(n); ok {
			changes = append(changes, c(to))
		}
	}
	link := func(l LinkID, c func(LinkID) Change) {
		if to, ok := m.Link(l); ok {
			changes = append(changes, c(to))
		}
	}
	v := o.View()
	for n := range v.NodesDown() {
		node(n, func(n NodeID) Change { return NodeState(n, false) })
	}
	for l := range v.LinksDown() {
		link(l, func(l LinkID) Change { return LinkState(l, false) })
	}
	empty := NewOverlay(m.from)
	empty.caps.differ(&o.caps, func(i int) {
		n := m.from.Switch(i)
		node(n, func(to NodeID) Change { return SwitchCapability(to, v.Capability(n)) })
	})
	empty.nodeUse.differ(&o.nodeUse, func(i int) {
		node(NodeID(i), func(to NodeID) Change { return NodeUtilization(to, v.NodeUtilization(NodeID(i))) })
	})
	empty.linkUse.differ(&o.linkUse, func(i int) {
		for l := LinkID(8 * i); l < LinkID(8*i+8) && m.from.HasLink(l); l++ {
			if use := v.LinkUtilization(l); use > 0 {
				link(l, func(to LinkID) Change { return LinkUtilization(to, use) })
			}
		}
	})
	next, err := NewOverlay(m.to).With(changes...)
	if err != nil {
		return nil, err
	}
	carried := *next
	carried.version = o.version + 1
	return &carried, nil
}
