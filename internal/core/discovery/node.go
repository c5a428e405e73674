package discovery

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// node is what may be a node of the map: a target that has a name (a device), or a
// neighbour that is none.
type node struct {
	name        string  // in the map; empty: it is left out
	target      *target // nil: it is known by its neighbours alone
	chassis     ID
	since       core.Time // when the target had its chassis first
	speaks      bool      // LLDP, so that its ends of links have to agree
	isCertified bool      // by target's certificate
	keys        map[key]bool
	ports       map[string]*port // by interface; of neighbours by their identifiers
	byNumber    map[topology.Port]*port
	incoming    map[*claim]bool // that resolve to it
	wants       map[*target]bool

	system  system // of a neighbour
	claimed string // the name that it claims
}

// port is an interface of a node.
type port struct {
	node   *node
	name   string // of the interface, or what the neighbour sends as identifier
	facts  Port   // of a device's; Neighbors is not kept here
	isGone bool   // the device does not report it any more
	number topology.Port
	hears  []*claim
	heard  []*claim // of others, that resolve to it
	peer   *port    // its link's other end; nil: it has none

	last      Link   // its link, as it was derived last; zero: none
	ends      Ends   // of the link that is published at its end; zero: none
	cause     string // of the last change of it
	turn      uint64 // of cause: later ones are larger
	flaps     damper
	steady    core.Timer[*port] // when it is looked at again, for what is held and for dials
	forget    core.Timer[*port]
	dialAfter core.Time
}

func newPort(n *node, name string) *port {
	p := &port{node: n, name: name}
	p.steady.Of, p.forget.Of = p, p
	return p
}

// system is by what a neighbour that is no device is distinguished from others: two may have one
// chassis, as machines do whose management controllers have the same address.
type system struct {
	chassis ID
	name    string
}

func (n *Neighbor) system() system { return system{n.Chassis, cmp.Or(n.Name, n.Node)} }

// claim is a neighbour as a port hears it, or heard it last.
type claim struct {
	from     *port
	neighbor Neighbor
	since    core.Time // when it was heard first
	until    core.Time // when it was not heard any more; core.Never: it is
	node     *node     // nil: none
	to       *port     // nil: which port of node, is not known
}

func (k *claim) isLive() bool { return k.until == core.Never }

// before orders claims: who was heard first, and then by what stays the same over time.
func (k *claim) before(m *claim) int {
	return cmp.Or(cmp.Compare(k.since, m.since), cmp.Compare(k.from.node.name, m.from.node.name),
		cmp.Compare(k.from.name, m.from.name), compareNeighbors(&k.neighbor, &m.neighbor))
}

// leads reports whether k says what a neighbour is, rather than m: a live one does, and of
// these the first.
func (k *claim) leads(m *claim) bool {
	return k.isLive() && !m.isLive() || k.isLive() == m.isLive() && k.before(m) < 0
}

// lead returns the claim that says what a neighbour is.
func (n *node) lead() (lead *claim) {
	for k := range n.incoming {
		if lead == nil || k.leads(lead) {
			lead = k
		}
	}
	return lead
}

// forwards reports whether a node is a switch.
func (n *node) forwards() bool {
	if n.target != nil {
		return true
	}
	k := n.lead()
	return k != nil && k.neighbor.Switch
}

// isAgent reports whether a neighbour says that an agent is there.
func (n *node) isAgent() bool {
	k := n.lead()
	return k != nil && k.neighbor.AgentPort != 0
}

// addresses returns where a switch can be reached, by what its neighbours have heard, in the
// order of when they did.
func (n *node) addresses(fallback uint16) (all []netip.AddrPort) {
	claims := make([]*claim, 0, len(n.incoming))
	for k := range n.incoming {
		if k.isLive() {
			claims = append(claims, k)
		}
	}
	slices.SortFunc(claims, (*claim).before)
	for _, k := range claims {
		tcp := cmp.Or(k.neighbor.AgentPort, fallback)
		if tcp == 0 {
			continue
		}
		for _, a := range k.neighbor.Management {
			if at := netip.AddrPortFrom(a.Unmap(), tcp); !slices.Contains(all, at) && len(all) < maxAddresses {
				all = append(all, at)
			}
		}
	}
	return all
}

// maxAddresses is the most addresses of one switch that are tried.
const maxAddresses = 8

// isNode reports whether n is one still.
func (c *Core) isNode(n *node) bool {
	if n.target != nil {
		return c.devices[n.name] == n
	}
	return c.heard[n.system] == n
}

// numbered is what a port's number in the topology follows from; 0 where there is none.
type numbered struct {
	name   string
	given  uint32        // by the port itself
	filed  topology.Port // in the operator's part
	was    topology.Port // before, if it has a link
	digits uint32        // that its name ends in
	index  uint32
	isGone bool // the switch does not have it any more
}

// numbers gives each port of a node a number: the one that it has by itself, else in the
// operator's part, else the one that its link has, else the digits that its name ends in, else
// its index, and else the lowest that is free. Of several with the same right it is the
// port that had it, then the one of the lowest index: what comes later takes no number
// from what is there. It depends on no order.
func numbers(ports []numbered) map[string]topology.Port {
	slices.SortFunc(ports, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.index-1, b.index-1), compareNames(a.name, b.name)) // index 0 is the last
	})
	all := make(map[string]topology.Port, len(ports))
	taken := make(map[topology.Port]bool, len(ports))
	take := func(p *numbered, number uint32) {
		x := topology.Port(number)
		if number >= 1 && number <= topology.MaxPort && all[p.name] == 0 && !taken[x] {
			all[p.name], taken[x] = x, true
		}
	}
	for _, right := range []func(*numbered) uint32{
		func(p *numbered) uint32 { return p.given },
		func(p *numbered) uint32 { return uint32(p.filed) },
		func(p *numbered) uint32 { return uint32(p.was) },
		func(p *numbered) uint32 { return p.digits },
		func(p *numbered) uint32 { return p.index },
	} {
		for _, had := range []bool{true, false} {
			for i := range ports {
				if p, x := &ports[i], right(&ports[i]); !p.isGone && (uint32(p.was) == x) == had {
					take(p, x)
				}
			}
		}
	}
	for i := range ports {
		if ports[i].isGone {
			take(&ports[i], uint32(ports[i].was))
		}
	}
	free := uint32(1)
	for i := range ports {
		for free <= topology.MaxPort && taken[topology.Port(free)] {
			free++
		}
		take(&ports[i], free)
	}
	return all
}

// trailing returns the number that a name ends in; 0: none.
func trailing(name string) uint32 {
	digits := len(name)
	for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	x, err := strconv.ParseUint(name[digits:], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(x)
}

// compareNames orders names as people do: h2 before h10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		i, j := run(a), run(b)
		x, y := a[:i], b[:j]
		if x != y {
			if isDigit(x[0]) && isDigit(y[0]) {
				x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
				if by := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); by != 0 {
					return by
				}
			}
			return cmp.Or(strings.Compare(a[:i], b[:j]), cmp.Compare(len(a), len(b)))
		}
		a, b = a[i:], b[j:]
	}
	return cmp.Compare(len(a), len(b))
}

// run returns the length of the digits, or of what is none, that s begins with.
func run(s string) int {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
