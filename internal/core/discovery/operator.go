package discovery

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/topology"
)

// part is the operator's part of the map. Of a link it says speed and latency, and of
// a switch the capability, where these are not the defaults of a topology file.
type part struct {
	graph *topology.Graph
	at    map[End]topology.LinkID
}

func newPart(g *topology.Graph) *part {
	f := &part{graph: g, at: make(map[End]topology.LinkID, 2*g.Links())}
	for l := range g.AllLinks() {
		for _, e := range f.ends(l) {
			f.at[e] = l
		}
	}
	return f
}

func (f *part) ends(l topology.LinkID) Ends {
	link := f.graph.Link(l)
	return endsOf(End{f.graph.Name(link.Ends[0].Node), link.Ends[0].Port}, End{f.graph.Name(link.Ends[1].Node), link.Ends[1].Port})
}

// link returns the link at an end; false: the file does not say.
func (f *part) link(e End) (topology.LinkID, bool) {
	if f == nil {
		return topology.NoLink, false
	}
	l, ok := f.at[e]
	return l, ok
}

// far returns the port of the node of that name that the file has linked to an end; 0:
// none.
func (f *part) far(e End, name string) topology.Port {
	l, ok := f.link(e)
	if !ok {
		return 0
	}
	ends := f.ends(l)
	far := ends[0]
	if far == e {
		far = ends[1]
	}
	if far.Node != name {
		return 0
	}
	return far.Port
}

// fileNode and fileLink own the alarms about what the file says.
type (
	fileNode string
	fileLink Ends
)

// operate makes g the operator's part.
func (c *Core) operate(g *topology.Graph) {
	if c.file != nil {
		c.touchFile()
		for n := range topology.NodeID(c.file.graph.Nodes()) {
			c.alarms.set(c, fileNode(c.file.graph.Name(n)), nil)
		}
		for l := range c.file.graph.AllLinks() {
			c.alarms.set(c, fileLink(c.file.ends(l)), nil)
		}
		c.file = nil
	}
	if g != nil {
		c.file = newPart(g)
		c.touchFile()
	}
	for name, n := range c.devices {
		c.pending.nodes[name] = c.cause
		for _, p := range n.ports {
			c.follow(p)
		}
	}
	for _, n := range c.heard {
		c.renamed[n] = c.cause // their ports may have numbers in the file
		for _, p := range n.ports {
			c.follow(p)
		}
	}
}

// touchFile has all that the file says looked at again.
func (c *Core) touchFile() {
	for n := range topology.NodeID(c.file.graph.Nodes()) {
		c.pending.nodes[c.file.graph.Name(n)] = c.cause
	}
	for l := range c.file.graph.AllLinks() {
		c.pending.links[c.file.ends(l)] = c.cause
	}
}

// portAt returns the port of an end; nil: the wire has none.
func (c *Core) portAt(e End) *port {
	n := c.nodeAt(e.Node)
	if n == nil {
		return nil
	}
	p := n.byNumber[e.Port]
	if p == nil || n.ports[p.name] != p {
		return nil
	}
	return p
}

// nodeAt returns the node that has a name on the wire; nil: none.
func (c *Core) nodeAt(name string) *node {
	if n := c.devices[name]; n != nil {
		return n
	}
	for _, n := range c.named[name] {
		if n.name == name {
			return n
		}
	}
	return nil
}

// apply merges the operator's link into what the wire says of it. wired is whether the
// wire has the same link, saysSpeed whether its speed is known from there.
func (f *part) apply(l topology.LinkID, link *Link, wired, saysSpeed bool) (differs bool) {
	of := f.graph.Link(l)
	link.From |= File
	spec := of.LinkSpec
	if def := topology.DefaultLink(); wired {
		if spec.Bandwidth == def.Bandwidth {
			spec.Bandwidth = link.Bandwidth
		}
		if spec.Latency == def.Latency {
			spec.Latency = link.Latency
		}
		differs = saysSpeed && spec.Bandwidth != link.Bandwidth
	}
	link.LinkSpec = spec
	var said [2]netip.Addr
	for _, e := range of.Ends {
		at := 0
		if (End{f.graph.Name(e.Node), e.Port}) == link.Ends[1] {
			at = 1
		}
		said[at] = f.graph.AddressAt(l, e.Node)
	}
	if said[0].IsValid() {
		differs = differs || wired && link.Addresses[0].IsValid() && link.Addresses != said
		link.Addresses = said
	}
	return differs
}

// contradictions reports where the file says something else of an end of a device than
// the wire.
func (c *Core) contradictions(p *port) (found []Alarm) {
	for _, k := range p.hears {
		if !k.isLive() || k.node == nil || k.node.name == "" || k.to == nil || c.file == nil {
			continue
		}
		ends := endsOf(p.end(), k.to.end())
		for _, e := range ends {
			if l, ok := c.file.link(e); ok && c.file.ends(l) != ends {
				found = append(found, c.alarm(FileLink, p.place(), k.to.place(),
					"the wire has %v, the operator's file %v", ends, c.file.ends(l)))
				break
			}
		}
	}
	return found
}

// end returns the port as an end of a link.
func (p *port) end() End { return End{p.node.name, p.number} }
