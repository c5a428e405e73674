package discovery

import (
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

func (c *Core) addDevice(name string) *node {
	n := &node{name: name, ports: map[string]*port{}, incoming: map[*claim]bool{}}
	c.devices[name] = n
	c.pending.nodes[name] = c.cause
	for _, h := range c.named[name] {
		c.renamed[h] = c.cause // a neighbour cannot have it
	}
	return n
}

// removeDevice forgets a node that was a target, as far as others do not hear it.
func (c *Core) removeDevice(n *node) {
	c.index(n, nil)
	for _, p := range n.ports {
		c.setClaims(p, nil)
		c.forgets.Set(&p.forget, core.Never)
		c.steady.Set(&p.steady, core.Never)
		c.alarms.set(c, p, nil)
		c.touch(p)
		c.rematch[p] = true
	}
	for k := range n.incoming {
		c.relook[k.from] = true
	}
	c.want(n, nil)
	c.alarms.set(c, dialOf{n}, nil)
	delete(c.devices, n.name)
	c.pending.nodes[n.name] = c.cause
	for _, h := range c.named[n.name] {
		c.renamed[h] = c.cause
	}
}

// update takes the facts of a device.
func (c *Core) update(n *node, f *Facts) {
	t := n.target
	if isCertified := t.cert != ""; n.chassis != f.Chassis || n.isCertified != isCertified {
		keys := n.keys
		c.index(n, nil) // those that may have meant it are looked at again, and those that may now
		if n.chassis != f.Chassis {
			n.since = c.now
		}
		n.chassis, n.isCertified = f.Chassis, isCertified
		c.index(n, keys)
	}
	if n.speaks != f.Speaks {
		n.speaks = f.Speaks
		for _, p := range n.ports {
			c.rematch[p] = true
		}
	}
	c.index(n, keysOf(t, f))
	c.pending.nodes[n.name] = c.cause
	ports := f.Ports[:min(len(f.Ports), c.cfg.MaxPorts)]
	moved := c.merge(n, ports)
	for _, p := range n.ports {
		if _, ok := slices.BinarySearchFunc(ports, p.name, func(f Port, name string) int { return compareNames(f.Interface, name) }); !ok {
			moved = c.unplug(p) || moved
		}
	}
	if moved {
		c.renumber(n)
	}
}

// merge brings the ports of a device up to date, and reports whether neighbours may
// now mean other ones.
func (c *Core) merge(n *node, ports []Port) (moved bool) {
	was := c.cause
	for i := range ports {
		f := &ports[i]
		p := n.ports[f.Interface]
		if p == nil {
			p = newPort(n, f.Interface)
			n.ports[f.Interface] = p
			moved = true
		}
		old := p.facts
		moved = moved || old.MAC != f.MAC || old.Number != f.Number || old.Index != f.Index
		moved = moved || p.isGone
		p.facts, p.isGone = *f, false
		p.facts.Neighbors = nil
		p.facts.Latency = steadyLatency(old.Latency, f.Latency)
		if old.Up != f.Up {
			c.cause = fmt.Sprintf("%s says that %s is %s", n.name, f.Interface, upOrDown(f.Up))
			for _, k := range p.hears {
				if f.Up {
					c.announced[k] = true
				}
			}
		}
		if old.Up != f.Up || old.Speed != f.Speed || old.MTU != f.MTU || old.Latency != p.facts.Latency ||
			!slices.Equal(old.Addresses, f.Addresses) {
			c.touch(p)
			c.rematch[p] = true // for alarms
		}
		c.listen(p, f)
		c.cause = was
	}
	return moved
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// latencyNoise is what a busy machine adds to a measured latency, easily.
const latencyNoise = 20 * time.Microsecond

// steadyLatency keeps a measured latency as long as it is about right. A busy machine only
// adds to it: a rise has to be larger than a fall.
func steadyLatency(was, is time.Duration) time.Duration {
	if is == 0 || was > 0 && is < max(4*was, was+latencyNoise) && was < 2*is {
		return was
	}
	return is
}

// unplug takes a port that the device does not have any more, and reports whether its
// number is free for others. It is kept while it is known who was at its other end.
func (c *Core) unplug(p *port) bool {
	wasGone := p.isGone
	p.isGone, p.facts.Number, p.facts.Index, p.facts.MAC = true, 0, 0, ID{}
	if p.facts.Up {
		p.facts.Up = false
		c.cause = fmt.Sprintf("%s has no %s any more", p.node.name, p.name)
		c.touch(p)
	}
	c.hush(p)
	if len(p.hears) > 0 || len(p.heard) > 0 {
		return !wasGone
	}
	c.dropPort(p)
	return true
}

func (c *Core) dropPort(p *port) {
	delete(p.node.ports, p.name)
	c.alarms.set(c, p, nil)
	c.forgets.Set(&p.forget, core.Never)
	c.steady.Set(&p.steady, core.Never)
	c.touch(p)
}

// renumber gives the ports of a device their numbers, and has everybody who may mean
// them looked at again.
func (c *Core) renumber(n *node) {
	all := make([]numbered, 0, len(n.ports))
	for _, p := range n.ports {
		x := numbered{name: p.name, given: p.facts.Number, digits: trailing(p.name), index: p.facts.Index, isGone: p.isGone}
		if p.peer != nil || len(p.hears)+len(p.heard) > 0 || p.ends != (Ends{}) {
			x.was = p.number // no link uses the others'
		}
		all = append(all, x)
	}
	c.setNumbers(n, all)
	for k := range n.incoming {
		c.relook[k.from] = true
	}
}

func (c *Core) setNumbers(n *node, all []numbered) {
	is := numbers(all)
	n.byNumber = make(map[topology.Port]*port, len(is))
	for _, p := range n.ports {
		if x := is[p.name]; p.number != x {
			p.number = x
			c.follow(p)
			if p.peer != nil {
				c.follow(p.peer)
			}
			for _, k := range p.hears {
				if k.node != nil && k.node != n {
					c.renamed[k.node] = c.cause // by its port the file may number theirs
				}
			}
		}
		n.byNumber[p.number] = p
	}
}

// listen takes what a port hears. What it does not hear any more is kept until
// somebody else is heard: a cable does not go because a neighbour is silent.
func (c *Core) listen(p *port, f *Port) {
	if !f.Up || len(f.Neighbors) == 0 {
		c.hush(p)
		return
	}
	all, more := within(f.Neighbors, p.hears, c.cfg.MaxNeighbors)
	if more {
		c.counts.Dropped += uint64(len(f.Neighbors) - len(all))
	}
	claims := make([]*claim, len(all))
	isSame := len(all) == len(p.hears)
	for i := range all {
		n := &all[i]
		at := slices.IndexFunc(p.hears, func(k *claim) bool {
			return k.neighbor.Chassis == n.Chassis && k.neighbor.Port == n.Port
		})
		if at < 0 {
			c.cause = fmt.Sprintf("%s hears %s at %s", p.node.name, n.label(), p.name)
			claims[i], isSame = &claim{from: p, neighbor: *n, since: c.now, until: core.Never}, false
			c.announced[claims[i]] = true
			continue
		}
		k := p.hears[at]
		if !k.isLive() || !k.neighbor.equal(n) {
			c.cause = fmt.Sprintf("%s hears %s at %s again", p.node.name, n.label(), p.name)
			isSame, c.announced[k] = false, true
			if k.node != nil {
				c.renamed[k.node], c.retarget[k.node] = c.cause, true
			}
		}
		if k.until, claims[i] = core.Never, k; !k.neighbor.equal(n) {
			if k.neighbor.name() != n.name() {
				p.flaps.count(c)
			}
			c.mentions(k, false)
			k.neighbor = *n
			c.mentions(k, true)
		}
	}
	c.forgets.Set(&p.forget, core.Never)
	if !isSame {
		c.setClaims(p, claims)
		c.touch(p)
		c.relook[p], c.rematch[p] = true, true
	}
}

// hush marks that a port hears nobody any more.
func (c *Core) hush(p *port) {
	for _, k := range p.hears {
		if k.isLive() {
			k.until = c.now
			c.rematch[p] = true
			if k.node != nil {
				c.renamed[k.node], c.retarget[k.node] = c.cause, true
			}
		}
	}
	if len(p.hears) > 0 && !p.forget.Running() {
		c.forgets.Set(&p.forget, c.now.Add(c.cfg.Forget))
	}
}

// setClaims replaces what a port hears.
func (c *Core) setClaims(p *port, claims []*claim) {
	for _, k := range p.hears {
		if !slices.Contains(claims, k) {
			c.mentions(k, false)
			c.point(k, nil, nil)
		}
	}
	for _, k := range claims {
		if !slices.Contains(p.hears, k) {
			c.mentions(k, true)
		}
	}
	p.hears = claims
}

// forgetClaims forgets whom a port heard, long ago.
func (c *Core) forgetClaims(p *port) {
	c.setClaims(p, nil)
	c.rematch[p] = true
	c.touch(p)
	if f := p.node.target.facts; !slices.ContainsFunc(f.Ports, func(f Port) bool { return f.Interface == p.name }) {
		c.dropPort(p)
		c.renumber(p.node)
	}
}

// touch has what is published of a port looked at again.
func (c *Core) touch(p *port) {
	c.turn++
	p.cause, p.turn = c.cause, c.turn
	c.pending.fresh[p] = true
}

// follow is touch for what follows from something else: what has happened to the port
// itself in this step stays the cause.
func (c *Core) follow(p *port) {
	if !c.pending.fresh[p] {
		c.touch(p)
	}
}

// arm has a port looked at again at a moment.
func (c *Core) arm(p *port, at core.Time) {
	if !p.steady.Running() || at < p.steady.At {
		c.steady.Set(&p.steady, at)
	}
}

// again looks at a port again.
func (c *Core) again(p *port) {
	c.pending.fresh[p] = true
	for _, k := range p.hears {
		if k.node != nil {
			c.retarget[k.node] = true
		}
	}
}

// keysOf returns what neighbours may call a target.
func keysOf(t *target, f *Facts) map[key]bool {
	all := map[key]bool{}
	if f.Chassis != (ID{}) {
		all[key{id: f.Chassis}] = true
	}
	for _, name := range []string{t.name, f.Hostname} {
		if name != "" {
			all[key{name: name}] = true
		}
	}
	if a, ok := addressOf(t.address); ok {
		all[key{address: a}] = true
	}
	for _, p := range f.Ports {
		for _, a := range p.Addresses {
			all[key{address: a.Addr()}] = true
		}
	}
	return all
}
