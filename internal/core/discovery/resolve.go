package discovery

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"github.com/tributary-fabric/tributary/topology"
)

// key is one thing that neighbours may call a device: one of the fields.
type key struct {
	id      ID
	name    string
	address netip.Addr
}

func addressOf(hostport string) (netip.Addr, bool) {
	a, err := netip.ParseAddrPort(hostport)
	return a.Addr(), err == nil
}

// index makes keys those by which a device is known.
func (c *Core) index(n *node, keys map[key]bool) {
	for k := range n.keys {
		if !keys[k] {
			c.known[k] = slices.DeleteFunc(c.known[k], func(m *node) bool { return m == n })
			if len(c.known[k]) == 0 {
				delete(c.known, k)
			}
			c.rekeyed(n, k)
		}
	}
	for k := range keys {
		if !n.keys[k] {
			c.known[k] = append(c.known[k], n)
			c.rekeyed(n, k)
		}
	}
	n.keys = keys
}

// rekeyed takes that a key became one of n's, or is not any more.
func (c *Core) rekeyed(n *node, k key) {
	c.lookAgain(n, k)
	if k.id != (ID{}) {
		c.judgeChassis(k.id)
	}
}

// lookAgain has those looked at again who may mean n by a key. Many may have one address,
// as those behind the same translation do, or by a container network.
func (c *Core) lookAgain(n *node, k key) {
	for p := range c.mention[k] {
		if !c.relook[p] && slices.ContainsFunc(p.hears, func(m *claim) bool { return n.mayBe(&m.neighbor) }) {
			c.relook[p] = true
		}
	}
}

// mentions records by what a claim may mean a device, or that it does so no more.
func (c *Core) mentions(k *claim, on bool) {
	for _, key := range k.neighbor.keys() {
		if on {
			if c.mention[key] == nil {
				c.mention[key] = map[*port]int{}
			}
			c.mention[key][k.from]++
			continue
		}
		if c.mention[key][k.from]--; c.mention[key][k.from] == 0 {
			delete(c.mention[key], k.from)
		}
		if len(c.mention[key]) == 0 {
			delete(c.mention, key)
		}
	}
}

func (n *Neighbor) keys() []key {
	all := make([]key, 0, 3+len(n.Management))
	all = append(all, key{id: n.Chassis})
	for _, name := range []string{n.Node, n.Name} {
		if name != "" {
			all = append(all, key{name: name})
		}
	}
	for _, a := range n.Management {
		all = append(all, key{address: a})
	}
	return all
}

// resolveAll finds whom the claims of a port mean.
func (c *Core) resolveAll(p *port) {
	for _, k := range p.hears {
		n := c.resolve(k)
		var to *port
		if n != nil {
			to = c.portOf(n, &k.neighbor)
		}
		if n != k.node || to != k.to {
			c.point(k, n, to)
			c.rematch[p] = true
		}
	}
}

// point makes node and to what a claim means.
func (c *Core) point(k *claim, n *node, to *port) {
	if old := k.to; old != nil {
		old.heard = slices.DeleteFunc(old.heard, func(m *claim) bool { return m == k })
		c.rematch[old] = true
		if old.node.target == nil && len(old.heard) == 0 {
			delete(old.node.ports, old.name)
			c.follow(old)
		}
	}
	if old := k.node; old != nil && old != n {
		delete(old.incoming, k)
		c.renamed[old], c.retarget[old] = c.cause, true
	}
	k.node, k.to = n, to
	if n != nil && !n.incoming[k] {
		n.incoming[k] = true
		c.renamed[n], c.retarget[n] = c.cause, true
	}
	if to != nil {
		to.heard = append(to.heard, k)
		to.node.ports[to.name] = to
		c.rematch[to] = true
	}
}

// resolve returns whom a claim means: a device by its chassis, of several the one that
// it names; else a device by its name or address, unless its chassis is another; else a
// neighbour that is no device. nil: it does not say who it is.
func (c *Core) resolve(k *claim) *node {
	n := &k.neighbor
	if n.Chassis != (ID{}) {
		if d := best(c.known[key{id: n.Chassis}], n); d != nil {
			return d
		}
	}
	for _, name := range []string{n.Node, n.Name} {
		if d := c.devices[name]; d != nil && d.mayBe(n) {
			return d
		}
		if d := only(c.known[key{name: name}], n); name != "" && d != nil {
			return d
		}
	}
	for _, a := range n.Management {
		if d := only(c.known[key{address: a}], n); d != nil {
			return d
		}
	}
	if n.Chassis == (ID{}) || n.name() == "" && !n.Switch {
		return nil
	}
	h := c.heard[n.system()]
	if h == nil {
		h = &node{system: n.system(), chassis: n.Chassis, ports: map[string]*port{}, incoming: map[*claim]bool{}}
		c.heard[n.system()] = h
	}
	return h
}

// best returns which of the devices that report one chassis a neighbour means: the one
// that it names, else the one that has it by right.
func best(all []*node, n *Neighbor) (best *node) {
	for _, d := range all {
		if best == nil || d.precedes(best, n) {
			best = d
		}
	}
	return best
}

// precedes reports whether n is meant by b, rather than m: by its name, else by a
// certificate, else because it was the first to report the chassis.
func (n *node) precedes(m *node, b *Neighbor) bool {
	switch {
	case n.isCalled(b) != m.isCalled(b):
		return n.isCalled(b)
	case n.isCertified != m.isCertified:
		return n.isCertified
	}
	return cmp.Or(cmp.Compare(n.since, m.since), cmp.Compare(n.name, m.name)) < 0
}

// isCalled reports whether b has the name of the device n.
func (n *node) isCalled(b *Neighbor) bool {
	return b != nil && (n.keys[key{name: b.Node}] || n.keys[key{name: b.Name}])
}

// chassisOf owns the alarm about a chassis that several devices report.
type chassisOf ID

func (c *Core) judgeChassis(id ID) {
	all := c.known[key{id: id}]
	var found []Alarm
	if first := best(all, nil); len(all) > 1 {
		others := slices.DeleteFunc(slices.Clone(all), func(d *node) bool { return d == first })
		found = append(found, c.alarm(SameChassis, Place{Node: first.name}, Place{Node: best(others, nil).name},
			"%d switches report chassis %s; their neighbours are distinguished by names alone", len(all), id.Value))
	}
	c.alarms.set(c, chassisOf(id), found)
}

// only returns the one device that n may be; nil: there is none, or several.
func only(all []*node, n *Neighbor) (found *node) {
	for _, d := range all {
		if d.mayBe(n) {
			if found != nil {
				return nil
			}
			found = d
		}
	}
	return found
}

// mayBe reports whether the chassis that a neighbour sends leaves it open that it is n.
func (n *node) mayBe(b *Neighbor) bool {
	return n.chassis == ID{} || n.chassis.MAC != b.Chassis.MAC || n.chassis == b.Chassis
}

// portOf returns which port of n a neighbour means; nil: it cannot be found.
func (c *Core) portOf(n *node, b *Neighbor) *port {
	if n.target == nil {
		name := b.Port.Value
		if p := n.ports[name]; p != nil {
			return p
		}
		return newPort(n, name)
	}
	if p := n.byNumber[topology.Port(b.Number)]; p != nil && b.Number != 0 && b.Number == p.facts.Number {
		return p
	}
	if !b.Port.MAC {
		if p := n.ports[b.Port.Value]; p != nil {
			return p
		}
	} else if p := n.unique(func(p *port) bool { return p.facts.MAC == b.Port }); p != nil {
		return p
	}
	if p := n.ports[b.Description]; p != nil {
		return p
	}
	if index, err := strconv.ParseUint(b.Port.Value, 10, 32); err == nil && !b.Port.MAC && index > 0 {
		return n.unique(func(p *port) bool { return uint64(p.facts.Index) == index })
	}
	return nil
}

// unique returns the one port of which is holds; nil: there is none, or several.
func (n *node) unique(is func(*port) bool) (found *port) {
	for _, p := range n.ports {
		if is(p) {
			if found != nil {
				return nil
			}
			found = p
		}
	}
	return found
}

// rename finds out what a neighbour that is no device is called, and which numbers its
// ports have.
func (c *Core) rename(n *node) {
	if n.target != nil {
		return
	}
	if c.heard[n.system] != n {
		return
	}
	lead := n.lead()
	claimed := ""
	if lead == nil {
		delete(c.heard, n.system)
		c.want(n, nil)
		c.alarms.set(c, n, nil)
		c.alarms.set(c, dialOf{n}, nil)
	} else if claimed = lead.neighbor.name(); claimed == "" {
		claimed = "switch-" + safe(n.chassis.Value)
	}
	if n.claimed != claimed {
		before := n.claimed
		n.claimed = claimed
		if before != "" {
			c.named[before] = slices.DeleteFunc(c.named[before], func(m *node) bool { return m == n })
			c.elect(before)
		}
		if claimed != "" {
			c.named[claimed] = append(c.named[claimed], n)
		}
	}
	if lead == nil {
		c.setName(n, "")
		return
	}
	c.elect(claimed)
	all := make([]numbered, 0, len(n.ports))
	for _, p := range n.ports {
		x := numbered{name: p.name, was: p.number}
		for _, k := range p.heard {
			x.given = max(x.given, k.neighbor.Number)
			x.filed = max(x.filed, c.file.far(k.from.end(), claimed))
			name := p.name
			if k.neighbor.Port.MAC {
				name = k.neighbor.Description
			}
			x.digits = max(x.digits, trailing(name))
		}
		all = append(all, x)
	}
	c.setNumbers(n, all)
	if n.name != "" {
		c.pending.nodes[n.name] = c.cause
	}
}

// safe returns an identifier with what no name may have replaced.
func safe(text string) string {
	b := []byte(text)
	for i, x := range b {
		if !isDigit(x) && (x|0x20 < 'a' || x|0x20 > 'z') {
			b[i] = '-'
		}
	}
	return string(b)
}

// elect decides which of the neighbours that have one name is in the map: none if a
// device has it, and else who was heard first.
func (c *Core) elect(name string) {
	var best *node
	var since *claim
	for _, n := range c.named[name] {
		if lead := n.lead(); lead != nil && (best == nil || lead.leads(since)) {
			best, since = n, lead
		}
	}
	if len(c.named[name]) == 0 {
		delete(c.named, name)
	}
	device := c.devices[name]
	for _, n := range c.named[name] {
		lead := n.lead()
		if lead == nil {
			continue
		}
		is, found := "", []Alarm(nil)
		switch {
		case topology.CheckName(name) != nil:
			found = append(found, c.alarm(BadName, lead.from.place(), Place{}, "the neighbour's name %q cannot be a node's", name))
		case device != nil:
			found = append(found, c.alarm(SameName, lead.from.place(), Place{Node: device.name, Port: device.target.address},
				"a neighbour with chassis %s has the name of switch %s, whose chassis is %s; it is left out", n.chassis.Value, name, device.chassis.Value))
		case n != best:
			found = append(found, c.alarm(SameName, lead.from.place(), since.from.place(),
				"two neighbours have the name %s, with chassis %s and %s; the former is left out", name, n.chassis.Value, best.chassis.Value))
		default:
			is = name
		}
		c.setName(n, is)
		c.alarms.set(c, n, found)
	}
}

func (c *Core) setName(n *node, name string) {
	if n.name == name {
		return
	}
	for _, old := range []string{n.name, name} {
		if old != "" {
			c.pending.nodes[old] = c.cause
		}
	}
	n.name = name
	for _, p := range n.ports {
		c.follow(p)
		c.rematch[p] = true
	}
}
