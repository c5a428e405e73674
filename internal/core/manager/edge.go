package manager

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// errNoAddress: a node has no data address of its own, and the topology none on
// a link of its tree.
var errNoAddress = errors.New("the node listens on all its addresses, and the topology reports none of the right family on this link")

// reach returns where node n is reached, and sends from, over link l. A node
// with a data address of its own is reached there, however that is routed. One
// whose data address is unspecified listens on all it has: then it is the one
// on that very link, so that a tree's packets take the links that were chosen.
// It is the zero AddrPort where the topology has no such address.
func (c *Core) reach(data netip.AddrPort, l topology.LinkID, n topology.NodeID) netip.AddrPort {
	if !data.Addr().IsUnspecified() {
		return data
	}
	a := c.graph.AddressAt(l, n)
	if a.Is4() != data.Addr().Is4() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a, data.Port())
}

// upperLinks returns, of each edge that leads over several links, the one at the
// parent's end: of a vertex by its index, of a member by -1-rank. nil: there is
// no such edge.
func upperLinks(t *pathsel.Tree) map[int32]topology.LinkID {
	if len(t.Routes) == 0 {
		return nil
	}
	upper := make(map[int32]topology.LinkID, len(t.Routes))
	for _, r := range t.Routes {
		key := r.Vertex
		if key < 0 {
			key = -1 - r.Rank
		}
		upper[key] = r.Links[len(r.Links)-1]
	}
	return upper
}

// vertexUpper returns the link at the parent's end of the edge of a vertex.
func (t *tree) vertexUpper(i int) topology.LinkID {
	if l, ok := t.upper[int32(i)]; ok {
		return l
	}
	return t.plan.Tree.Vertices[i].Up
}

// leafUpper returns the link at the leaf switch's end of a member's edge.
func (t *tree) leafUpper(rank uint32) topology.LinkID {
	if l, ok := t.upper[-1-int32(rank)]; ok {
		return l
	}
	return t.plan.Tree.Leaves[rank].Link
}

// parentOf returns where vertex i reaches its parent; zero for the root.
func (c *Core) parentOf(t *tree, i int) netip.AddrPort {
	v := &t.plan.Tree.Vertices[i]
	if v.Parent < 0 {
		return netip.AddrPort{}
	}
	up := &t.sites[v.Parent]
	return c.reach(up.addr, t.vertexUpper(i), up.on.node)
}

// childAt returns where its parent reaches vertex i.
func (c *Core) childAt(t *tree, i int32) netip.AddrPort {
	s := &t.sites[i]
	return c.reach(s.addr, t.plan.Tree.Vertices[i].Up, s.on.node)
}

// memberAt returns where its leaf switch reaches a member.
func (c *Core) memberAt(t *tree, rank uint32) netip.AddrPort {
	leaf := &t.plan.Tree.Leaves[rank]
	return c.reach(t.members[rank], leaf.Link, leaf.Host)
}

// leafOf returns where a member reaches its leaf switch.
func (c *Core) leafOf(t *tree, rank uint32) netip.AddrPort {
	leaf := &t.plan.Tree.Leaves[rank]
	s := &t.sites[leaf.Vertex]
	return c.reach(s.addr, t.leafUpper(rank), s.on.node)
}

// unreachable returns the first edge of t, once its members are known, that
// lacks an address at one of its ends, or nil.
func (c *Core) unreachable(t *tree) *Refusal {
	for i := range t.sites {
		v := &t.plan.Tree.Vertices[i]
		if v.Parent < 0 {
			continue
		}
		if !c.childAt(t, int32(i)).IsValid() {
			return c.noAddress(t.sites[i].on.node, v.Up)
		}
		if !c.parentOf(t, i).IsValid() {
			return c.noAddress(t.sites[v.Parent].on.node, t.vertexUpper(i))
		}
	}
	for rank := range t.members {
		leaf := &t.plan.Tree.Leaves[rank]
		if !c.leafOf(t, uint32(rank)).IsValid() {
			return c.noAddress(t.sites[leaf.Vertex].on.node, t.leafUpper(uint32(rank)))
		}
		if !c.memberAt(t, uint32(rank)).IsValid() {
			return c.noAddress(leaf.Host, leaf.Link)
		}
	}
	return nil
}

// noAddress refuses a tree with a link on which n has no address. A switch is
// avoided in this round.
func (c *Core) noAddress(n topology.NodeID, l topology.LinkID) *Refusal {
	why := &Refusal{
		Reason: ErrNoTree, Resource: "address",
		Cause: fmt.Errorf("%s on link %s: %w", c.graph.Name(n), c.graph.LinkName(l), errNoAddress),
	}
	if c.graph.IsSwitch(n) {
		why.Switch = c.graph.Name(n)
	}
	return why
}
