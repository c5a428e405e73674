package manager

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/topology"
)

// ErrAddress: a member names a data address that is not shown to be its host's. Nothing is
// sent there.
var ErrAddress = errors.New("manager: a member's data address is not its host's")

// foreign returns why g can have no tree: a member has an address that is not known to be
// its host's. A tree would send results there, and take what comes from there for the
// member's.
//
//	the data address is               it is the host's
//	unspecified                       the address of the tree's link counts, which is the topology's
//	one that the topology gives it    yes
//	where its session comes from      yes, under the host's certificate
//	of this machine (loopback)        without certificates, or where its session comes from there
//	another, and the topology has     no
//	some for the host, or has this
//	one for another node
//	another                           without certificates, where nobody can prove anything
func (c *Core) foreign(g *group) *Refusal {
	for rank := range g.members {
		if why := c.foreignAt(g, rank); why != "" {
			return &Refusal{
				Reason: ErrNoTree, Resource: "address",
				Cause: fmt.Errorf("rank %d, %s, has the data address %v: %w: %s", rank, g.spec.Members[rank], g.members[rank].addr, ErrAddress, why),
			}
		}
	}
	return nil
}

// foreignAt returns why a member's data address is not its host's; empty: it is.
func (c *Core) foreignAt(g *group, rank int) string {
	m, host := &g.members[rank], g.hosts[rank]
	a := m.addr.Addr()
	if host == topology.NoNode || !m.addr.IsValid() || a.IsUnspecified() || a == m.proven {
		return ""
	}
	hasOwn := false
	for _, l := range c.graph.Adjacent(host) {
		own := c.graph.AddressAt(l, host)
		if own == a {
			return ""
		}
		hasOwn = hasOwn || own.IsValid()
	}
	other := c.addressed(a)
	switch {
	case a.IsLoopback() && (!c.cfg.Certified || m.proven.IsLoopback()):
		return ""
	case hasOwn:
		return "the topology has the links " + c.linkNames(host)
	case other != topology.NoNode:
		return fmt.Sprintf("the topology has it for %s", c.graph.Name(other))
	case !c.cfg.Certified:
		return ""
	}
	return fmt.Sprintf("its session comes from %v: have its service use that one, or give its link addresses in the topology", m.proven)
}

// addressed returns the node that has an address in the topology, or NoNode.
func (c *Core) addressed(a netip.Addr) topology.NodeID {
	if c.holdersOf != c.graph {
		c.holdersOf, c.holders = c.graph, map[netip.Addr]topology.NodeID{}
		for l, link := range c.graph.AllLinks() {
			for _, end := range link.Ends {
				if at := c.graph.AddressAt(l, end.Node); at.IsValid() {
					c.holders[at] = end.Node
				}
			}
		}
	}
	if n, ok := c.holders[a]; ok {
		return n
	}
	return topology.NoNode
}
