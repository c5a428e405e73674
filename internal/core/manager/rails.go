package manager

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// railAt returns the rail of a member's host at an address; nil: there is none.
func (m *member) railAt(a netip.Addr) *Rail {
	if i := slices.IndexFunc(m.rails, func(r Rail) bool { return r.Address == a }); i >= 0 {
		return &m.rails[i]
	}
	return nil
}

// railOf says which rail of a member's host is at a tree's link, for people.
func (c *Core) railOf(g *group, t *tree, rank uint32) string {
	leaf := &t.plan.Tree.Leaves[rank]
	if leaf.Link == topology.NoLink || leaf.Host == topology.NoNode {
		return "" // it has left the fabric
	}
	a := c.graph.AddressAt(leaf.Link, leaf.Host)
	r := g.members[rank].railAt(a)
	switch {
	case !a.IsValid() || r == nil:
		return ""
	case r.Fault != "":
		return fmt.Sprintf("%s (%v), which is down: %s", r.Name, a, r.Fault)
	}
	return fmt.Sprintf("%s (%v)", r.Name, a)
}

// memberFrom returns the data address of a member for a tree: unspecified where it has a
// rail at the end of the tree's link.
func (c *Core) memberFrom(g *group, t *tree, rank uint32) netip.AddrPort {
	m, leaf := &g.members[rank], &t.plan.Tree.Leaves[rank]
	a := c.graph.AddressAt(leaf.Link, leaf.Host)
	switch {
	case !m.onlyRails || m.railAt(a) == nil:
		return m.addr
	case a.Is4():
		return netip.AddrPortFrom(netip.IPv4Unspecified(), m.addr.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), m.addr.Port())
}

// railFault returns why a member's packets cannot take a link of its host; empty: they
// can. Where no link of the host has the address of a rail, the member's data address
// alone counts.
func (c *Core) railFault(g *group, rank uint32, l topology.LinkID) string {
	m, host := &g.members[rank], g.hosts[rank]
	if len(m.rails) == 0 || host == topology.NoNode {
		return ""
	}
	a := c.graph.AddressAt(l, host)
	if !a.IsValid() {
		return ""
	}
	if r := m.railAt(a); r != nil {
		if r.Fault == "" {
			return ""
		}
		return fmt.Sprintf("rail %s (%v) of %s, rank %d, is down: %s", r.Name, a, c.graph.Name(host), rank, r.Fault)
	}
	if m.onlyRails && (m.addr.Addr().IsUnspecified() || c.linked(m, host)) {
		return fmt.Sprintf("the topology has %v for %s, rank %d, on link %s, where there is no rail; its rails are %s", a, c.graph.Name(host), rank, c.graph.LinkName(l), m.railNames())
	}
	return ""
}

// linked reports whether a link of the member's host has the address of a rail.
func (c *Core) linked(m *member, host topology.NodeID) bool {
	return slices.ContainsFunc(c.graph.Adjacent(host), func(l topology.LinkID) bool { return m.railAt(c.graph.AddressAt(l, host)) != nil })
}

func (m *member) railNames() string {
	names := make([]string, len(m.rails))
	for i, r := range m.rails {
		names[i] = fmt.Sprintf("%s (%v)", r.Name, r.Address)
	}
	return strings.Join(names, ", ")
}

// shutRails keeps the links off a plan that members' packets cannot take.
func (c *Core) shutRails(g *group, req *pathsel.Request) {
	for rank := range g.members {
		m := &g.members[rank]
		if len(m.rails) == 0 {
			continue
		}
		for _, l := range c.graph.Adjacent(g.hosts[rank]) {
			if c.railFault(g, uint32(rank), l) == "" {
				continue
			}
			req.ExcludeLinks = append(req.ExcludeLinks, l)
			g.round.impaired = g.round.impaired || m.railAt(c.graph.AddressAt(l, g.hosts[rank])) != nil
		}
	}
	slices.Sort(req.ExcludeLinks)
}

// cutOff returns why a member's packets can take no link; nil: each member's can.
func (c *Core) cutOff(g *group) error {
	for rank := range g.members {
		why := ""
		for _, l := range c.graph.Adjacent(g.hosts[rank]) {
			if why = c.railFault(g, uint32(rank), l); why == "" {
				break
			}
		}
		if why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// railed takes the rails of a member's host. Trees over one that is down are given up by
// moved; one that is back moves none by itself, as with all that comes up. The trees of
// others have nothing to do with it.
func (c *Core) railed(g *group, rank uint32, rails []Rail, only bool) {
	m := &g.members[rank]
	before, onlyBefore := m.rails, m.onlyRails
	m.rails, m.onlyRails = rails, only
	if onlyBefore == only && slices.EqualFunc(before, rails, sameRail) {
		return // or the text of a fault is another, which is for people
	}
	c.changed = true
	g.retryAfterRails(c.now.Add(c.cfg.RetryMin))
	others := onlyBefore != only || !slices.EqualFunc(before, rails, func(x, y Rail) bool { return x.Name == y.Name && x.Address == y.Address })
	if others && !c.quiet.Running() {
		c.timers.Set(&c.quiet, c.now.Add(c.cfg.Settle)) // no later for it: a host could keep all from being reviewed
	}
	c.compareRails(g, rank, before)
	if !only || len(g.absent) > 0 {
		return
	}
	host := g.hosts[rank]
	links := c.graph.Adjacent(host)
	for _, r := range rails {
		if !slices.ContainsFunc(links, func(l topology.LinkID) bool { return c.graph.AddressAt(l, host) == r.Address }) {
			c.note(g, "rail %s (%v) of %s, rank %d, is on no link: the topology has %s", r.Name, r.Address, c.graph.Name(host), rank, c.linkNames(host))
		}
	}
	for _, l := range links {
		if a := c.graph.AddressAt(l, host); m.railAt(a) == nil {
			if why := c.railFault(g, rank, l); why != "" {
				c.note(g, "%s", why)
			}
		}
	}
}

// sameRail reports whether two reports of a rail have trees take the same links.
func sameRail(x, y Rail) bool {
	return x.Name == y.Name && x.Address == y.Address && (x.Fault == "") == (y.Fault == "")
}

// retryAfterRails has a group that was refused try again, for whatever reason it was: the
// rails of its members are what the fabric is to others.
func (g *group) retryAfterRails(at core.Time) {
	if g.blocked {
		g.blocked, g.starved = false, nil
		g.notBefore = max(g.notBefore, at)
	}
}

// linkNames lists the links of a host, and its addresses there, for people.
func (c *Core) linkNames(host topology.NodeID) string {
	var names []string
	for _, l := range c.graph.Adjacent(host) {
		name := c.graph.LinkName(l)
		if a := c.graph.AddressAt(l, host); a.IsValid() {
			name += fmt.Sprintf(" (%v)", a)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
