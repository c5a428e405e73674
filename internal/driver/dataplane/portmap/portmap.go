package portmap

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/p4"
)

// ErrSpec is wrapped by the errors of Check.
var ErrSpec = errors.New("portmap: invalid port")

// Spec says which interfaces are ports of the target. What is zero comes from the
// interface, and the address also from the manager.
type Spec struct {
	Interface string // its name, or a pattern such as "leaf-0-eth*"; empty: none, then all else is given
	Number    uint16
	Addr      netip.Addr
	MAC       p4.MAC
}

// Pattern reports whether s may be about several interfaces.
func (s *Spec) Pattern() bool { return strings.ContainsAny(s.Interface, `*?[\`) }

// Check reports what is wrong with s.
func (s *Spec) Check() error {
	if s.Interface == "" {
		if s.Number == 0 || !s.Addr.IsValid() || s.MAC == (p4.MAC{}) {
			return fmt.Errorf("%w: without an interface it needs number, address and mac", ErrSpec)
		}
		return nil
	}
	if _, err := path.Match(s.Interface, ""); err != nil {
		return fmt.Errorf("%w: interface %q is no pattern: %w", ErrSpec, s.Interface, err)
	}
	if s.Pattern() && (s.Number != 0 || s.Addr.IsValid() || s.MAC != (p4.MAC{})) {
		return fmt.Errorf("%w: %q is a pattern, and number, address and mac are of one port", ErrSpec, s.Interface)
	}
	return nil
}

// Route is one that a manager has assigned: what is for the prefix leaves by a port,
// to the next hop.
type Route struct {
	Prefix netip.Prefix
	Port   uint16
	Next   netip.Addr
}

// Assignment is what a manager knows of a switch from its map.
type Assignment struct {
	Addresses map[uint16]netip.Addr // by port
	Routes    []Route
}

// Known is all that a Network is made of.
type Known struct {
	Specs      []Spec
	Routes     []p4.Route // by hand
	Interfaces []nic.Interface
	Assigned   Assignment
	// MAC returns the hardware address of a neighbour on an interface.
	MAC func(port string, next netip.Addr) (p4.MAC, bool)
}

// Port is a port of the target.
type Port struct {
	p4.Port          // its address is invalid where nobody says it
	Interface string // empty: not known
}

// Hop is a next hop.
type Hop struct {
	Port  Port
	Addr  netip.Addr
	Known bool // its hardware address is
}

// Network is the ports and routes of a target.
type Network struct {
	Ports    []Port // by number
	Routes   []p4.Route
	Hops     []Hop    // of assigned routes
	Problems []string // why something of the settings is left out
}

// Of returns the network that all this makes.
func Of(k Known) Network {
	var n Network
	n.ports(&k)
	n.routes(&k)
	return n
}

// Addressed returns the ports that have an address, as a p4.State has them.
func (n *Network) Addressed() []p4.Port {
	var all []p4.Port
	for _, p := range n.Ports {
		if p.Addr.IsValid() {
			all = append(all, p.Port)
		}
	}
	return all
}

// Seen returns the interfaces of ports as a manager looks for them, by the ports'
// addresses, which the system need not have on them.
func (n *Network) Seen(all []nic.Interface) []nic.Interface {
	var seen []nic.Interface
	for _, i := range all {
		p := slices.IndexFunc(n.Ports, func(p Port) bool { return p.Interface == i.Name })
		if p >= 0 && n.Ports[p].Addr.IsValid() {
			i.Addresses, i.Bits = []netip.Addr{n.Ports[p].Addr}, nil
			seen = append(seen, i)
		}
	}
	return seen
}

// SetDown returns the names of those interfaces of ports that are set down.
func (n *Network) SetDown(all []nic.Interface) (names []string) {
	for _, i := range all {
		if !i.Enabled && slices.ContainsFunc(n.Ports, func(p Port) bool { return p.Interface == i.Name }) {
			names = append(names, i.Name)
		}
	}
	return names
}

// ports takes the ports: those that are named before those of patterns.
func (n *Network) ports(k *Known) {
	for _, patterns := range []bool{false, true} {
		for i := range k.Specs {
			if s := &k.Specs[i]; s.Pattern() == patterns {
				n.portsOf(s, k)
			}
		}
	}
	slices.SortFunc(n.Ports, func(a, b Port) int { return int(a.Number) - int(b.Number) })
}

func (n *Network) portsOf(s *Spec, k *Known) {
	if s.Interface == "" {
		n.add(Port{Port: p4.Port{Number: s.Number, Addr: s.Addr, MAC: s.MAC}}, false)
		return
	}
	found := false
	for _, i := range k.Interfaces {
		if is, _ := path.Match(s.Interface, i.Name); !is && s.Interface != i.Name {
			continue
		}
		found = true
		if slices.ContainsFunc(n.Ports, func(p Port) bool { return p.Interface == i.Name }) {
			continue // an earlier entry is about it
		}
		p := Port{Interface: i.Name}
		switch {
		case s.Number != 0:
			p.Number = s.Number
		case i.Port != 0:
			p.Number = uint16(min(i.Port, p4.Ports+1))
		default:
			p.Number = numberIn(i.Name)
		}
		if p.MAC = s.MAC; p.MAC == (p4.MAC{}) && len(i.MAC) == len(p.MAC) {
			p.MAC = p4.MAC(i.MAC)
		}
		p.Addr = s.Addr
		for _, a := range i.Addresses {
			if !p.Addr.IsValid() && a.Is4() {
				p.Addr = a
			}
		}
		if a := k.Assigned.Addresses[p.Number]; !p.Addr.IsValid() && a.Is4() {
			p.Addr = a
		}
		n.add(p, s.Pattern())
	}
	if !found {
		n.problem("there is no interface %s", s.Interface)
	}
}

// add takes a port unless its number or address is another's. One that only a
// pattern has found need not be a port.
func (n *Network) add(p Port, found bool) {
	switch {
	case p.Number == 0 && found:
		return
	case p.Number == 0 || p.Number > p4.Ports:
		n.problem("interface %s: port %d, want 1 to %d: give its number", p.Interface, p.Number, p4.Ports)
		return
	case slices.ContainsFunc(n.Ports, func(q Port) bool { return q.Number == p.Number }):
		n.problem("interface %s is left out: another one is port %d", p.Interface, p.Number)
		return
	case p.Addr.IsValid() && slices.ContainsFunc(n.Ports, func(q Port) bool { return q.Addr == p.Addr }):
		n.problem("port %d has an address of another port, %v", p.Number, p.Addr)
		p.Addr = netip.Addr{}
	}
	n.Ports = append(n.Ports, p)
}

func (n *Network) problem(format string, args ...any) {
	n.Problems = append(n.Problems, fmt.Sprintf(format, args...))
}

// numberIn returns the number that a name ends in; 0 if it ends in none, or in one
// that no port has.
func numberIn(name string) uint16 {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	number, _ := strconv.ParseUint(digits, 10, 16)
	return uint16(number)
}

// routes takes the routes by hand, and of those that were assigned what these leave
// and what can be.
func (n *Network) routes(k *Known) {
	ports := n.Addressed()
	room := p4.Routes - len(ports)
	taken := map[netip.Prefix]bool{}
	for _, p := range ports {
		taken[netip.PrefixFrom(p.Addr, p.Addr.BitLen())] = true
	}
	for _, r := range k.Routes {
		if !slices.ContainsFunc(ports, func(p p4.Port) bool { return p.Number == r.Port }) {
			n.problem("the route to %v is left out: its port %d has no address", r.Prefix, r.Port)
			continue
		}
		if !taken[r.Prefix] && len(n.Routes) < room {
			taken[r.Prefix] = true
			n.Routes = append(n.Routes, r)
		}
	}
	left := 0
	hops := map[Hop]bool{}
	for _, r := range k.Assigned.Routes {
		at := slices.IndexFunc(n.Ports, func(p Port) bool { return p.Number == r.Port && p.Addr.IsValid() })
		if at < 0 || taken[r.Prefix] || !r.Prefix.IsValid() || !r.Prefix.Addr().Is4() || r.Prefix != r.Prefix.Masked() {
			continue
		}
		taken[r.Prefix] = true
		mac, known := k.MAC(n.Ports[at].Interface, r.Next)
		hop := Hop{Port: n.Ports[at], Addr: r.Next, Known: known}
		if !hops[hop] {
			hops[hop], n.Hops = true, append(n.Hops, hop)
		}
		switch {
		case !known:
		case len(n.Routes) >= room:
			left++
		default:
			n.Routes = append(n.Routes, p4.Route{Prefix: r.Prefix, Port: r.Port, MAC: mac})
		}
	}
	if left > 0 {
		n.problem("%d routes are left out: the program has room for %d, own addresses included", left, p4.Routes)
	}
}
