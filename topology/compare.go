package topology

import (
	"fmt"
	"net/netip"
	"strings"
)

// Kinds of a Difference.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
	Moved   = "moved" // a link that one of its ends still has, to another node or port
)

// Difference is one thing in which two graphs differ, by name.
type Difference struct {
	Kind string // Added, Removed, Changed or Moved
	What string // "fabric", "host", "switch" or "link"
	Name string // of the node, or of the link as LinkName writes it; of one that moved the end that stays
	Was  string // of one that changed or moved: what it was, for people
	Is   string // likewise: what it is
}

// String says it in a line.
func (d Difference) String() string {
	text := fmt.Sprintf("%s %s %s", d.What, d.Name, d.Kind)
	if d.Was != "" || d.Is != "" {
		text += fmt.Sprintf(" from %s to %s", d.Was, d.Is)
	}
	return text
}

// Compare returns in what graph is differs from was: hosts, switches and links in
// the order of their numbers, what is gone before what is new. Numbers do not count.
func Compare(was, is *Graph) []Difference {
	if was == is {
		return nil
	}
	c := comparison{was: was, is: is, ahead: table(NewMapping(was, is)), back: table(NewMapping(is, was))}
	if was.fabric != is.fabric {
		c.changed("fabric", quoted(is.fabric), quoted(was.fabric), quoted(is.fabric))
	}
	c.nodes()
	c.links()
	return c.all
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// comparison has the mappings of nodes as tables: it needs those of all nodes, and of each
// several times.
type comparison struct {
	was, is     *Graph
	ahead, back []NodeID
	all         []Difference
}

func table(m Mapping) []NodeID {
	all := make([]NodeID, m.from.Nodes())
	for n := range all {
		all[n], _ = m.At(NodeID(n))
	}
	return all
}

// link returns the link of another graph that link l of g is, by a table of g's nodes.
func link(g *Graph, l LinkID, table []NodeID, other *Graph) (LinkID, bool) {
	ends := g.Link(l).Ends
	a, b := table[ends[0].Node], table[ends[1].Node]
	if a == NoNode || b == NoNode {
		return NoLink, false
	}
	return other.linkBetween(End{a, ends[0].Port}, End{b, ends[1].Port})
}

func (c *comparison) add(kind, what, name string) {
	c.all = append(c.all, Difference{Kind: kind, What: what, Name: name})
}

func (c *comparison) changed(what, name, was, is string) {
	c.all = append(c.all, Difference{Kind: Changed, What: what, Name: name, Was: was, Is: is})
}

func (c *comparison) nodes() {
	was, is := c.was, c.is
	for n := range NodeID(was.Nodes()) {
		to := c.ahead[n]
		switch {
		case to == NoNode:
			c.add(Removed, was.Kind(n).String(), was.Name(n))
		case was.Capability(n) != is.Capability(to):
			before, after := differing(was.Capability(n).fields(), is.Capability(to).fields())
			c.changed("switch", was.Name(n), before, after)
		case was.Speed(n) != is.Speed(to):
			c.changed("host", was.Name(n), "speed "+was.Speed(n).String(), "speed "+is.Speed(to).String())
		}
	}
	for n := range NodeID(is.Nodes()) {
		if c.back[n] == NoNode {
			c.add(Added, is.Kind(n).String(), is.Name(n))
		}
	}
}

func (c *comparison) links() {
	was, is := c.was, c.is
	moved := map[LinkID]bool{} // of is
	for l := range LinkID(was.Links()) {
		to, ok := link(was, l, c.ahead, is)
		if !ok {
			if stays, now, ok := c.movedTo(l); ok && !moved[now] {
				moved[now] = true
				c.all = append(c.all, c.move(l, stays, now))
			} else {
				c.add(Removed, "link", was.LinkName(l))
			}
			continue
		}
		if was.specs[was.spec[l]] != is.specs[is.spec[to]] || was.addresses != nil || is.addresses != nil {
			if before, after := differing(was.linkFields(l, l, was), is.linkFields(to, l, was)); before != after {
				c.changed("link", was.LinkName(l), before, after)
			}
		}
	}
	for l := range LinkID(is.Links()) {
		if _, ok := link(is, l, c.back, was); !ok && !moved[l] {
			c.add(Added, "link", is.LinkName(l))
		}
	}
}

// movedTo returns the end of l that stays, and the link that has it now; the ends of
// a host are looked at first.
func (c *comparison) movedTo(l LinkID) (stays int, now LinkID, ok bool) {
	ends := c.was.Link(l).Ends
	order := [2]int{0, 1}
	if c.was.IsHost(ends[1].Node) {
		order = [2]int{1, 0}
	}
	for _, end := range order {
		if n := c.ahead[ends[end].Node]; n != NoNode {
			if now, ok := c.is.LinkAt(n, ends[end].Port); ok {
				if _, was := link(c.is, now, c.back, c.was); !was {
					return end, now, true
				}
			}
		}
	}
	return 0, NoLink, false
}

// move is a link whose other end is elsewhere now.
func (c *comparison) move(l LinkID, stays int, now LinkID) Difference {
	was, is := c.was, c.is
	before := was.Link(l)
	n := c.ahead[before.Ends[stays].Node]
	other := is.Link(now).Ends[1-is.endOf(now, n)]
	d := Difference{
		Kind: Moved, What: "link", Name: was.EndName(before.Ends[stays]),
		Was: was.EndName(before.Ends[1-stays]), Is: is.EndName(other),
	}
	if d.Was == d.Is { // the node is of another kind now
		d.Was = was.Kind(before.Ends[1-stays].Node).String() + " " + d.Was
		d.Is = is.Kind(other.Node).String() + " " + d.Is
	}
	return d
}

// fields are what a capability says, for people.
func (c Capability) fields() []string {
	return []string{
		"functions " + c.Functions.String(), "types " + c.Types.String(), fmt.Sprint("slots ", c.Slots),
		fmt.Sprint("children ", c.Children), fmt.Sprint("chunk ", c.Chunk), fmt.Sprint("window ", c.Window),
		"speed " + c.Speed.String(), fmt.Sprint("plain ", c.Plain),
	}
}

// linkFields are what a link says, for people, its ends in the order of link as of
// graph in.
func (g *Graph) linkFields(l, as LinkID, in *Graph) []string {
	spec := g.Link(l).LinkSpec
	fields := []string{"bandwidth " + unitText(spec.Bandwidth), "latency " + latencyText(spec.Latency), "no addresses"}
	var at [2]netip.Addr
	for i, end := range in.Link(as).Ends {
		n, _ := g.Lookup(in.Name(end.Node))
		at[i] = g.AddressAt(l, n)
	}
	if at[0].IsValid() {
		fields[2] = fmt.Sprintf("addresses %v and %v", at[0], at[1])
	}
	return fields
}

// differing returns those of both lists that are not the same.
func differing(was, is []string) (before, after string) {
	var a, b []string
	for i := range was {
		if was[i] != is[i] {
			a, b = append(a, was[i]), append(b, is[i])
		}
	}
	return strings.Join(a, ", "), strings.Join(b, ", ")
}
