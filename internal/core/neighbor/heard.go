package neighbor

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// heard takes an LLDPDU.
func (c *Core) heard(p *port, in *Input) {
	p.counters.Heard++
	a, discarded, err := lldpdu.Decode(in.Data)
	if err != nil {
		p.counters.Malformed++
		return
	}
	c.announced(p, in, &a, discarded)
	if d, ok := lldpdu.DecodeDelay(in.Data); ok && d.Target == p.mac && a.TTL > 0 {
		c.delayed(p, in, &d)
	}
}

// announced takes what a neighbour has announced.
func (c *Core) announced(p *port, in *Input, a *lldpdu.Announcement, discarded int) {
	p.counters.TLVs += uint64(discarded)
	loop := a.Chassis == p.own.Chassis
	if loop {
		p.counters.Looped++
	}
	i := slices.IndexFunc(p.neighbors, func(n *neighbor) bool { return n.Chassis == a.Chassis && n.Port == a.Port })
	switch {
	case a.TTL == 0 && i >= 0:
		c.forget(p.neighbors[i])
	case a.TTL == 0:
	case i >= 0:
		n := p.neighbors[i]
		if !n.Equal(a) || n.MAC != in.MAC {
			n.Announcement, n.MAC = *a, in.MAC
			c.changed = true
			c.ask(p)
		}
		c.refresh(n)
	case c.room(p):
		c.known++
		n := &neighbor{Neighbor: Neighbor{ID: c.known, MAC: in.MAC, Loop: loop, Announcement: *a}, port: p}
		n.age.Of = n
		p.neighbors = append(p.neighbors, n)
		c.changed = true
		c.refresh(n)
		c.ask(p)
		p.fast = fastCount
		c.announceNow(p)
	default:
		p.counters.Crowded++
	}
}

// room reports whether a port may have another neighbour, after it has displaced a stale
// one if need be.
func (c *Core) room(p *port) bool {
	if len(p.neighbors) < MostNeighbors {
		return true
	}
	var stale *neighbor
	for _, n := range p.neighbors {
		if n.heard.Add(StaleAfter) <= c.now && (stale == nil || n.heard < stale.heard) {
			stale = n
		}
	}
	if stale == nil {
		return false
	}
	p.counters.Displaced++
	c.forget(stale)
	return true
}

// refresh notes that a neighbour was heard.
func (c *Core) refresh(n *neighbor) {
	n.heard = c.now
	c.ages.Set(&n.age, c.now.Add(time.Duration(n.TTL)*time.Second))
}

// forget removes a neighbour from its port's.
func (c *Core) forget(n *neighbor) {
	p := n.port
	p.neighbors = slices.DeleteFunc(p.neighbors, func(o *neighbor) bool { return o == n })
	c.ages.Set(&n.age, core.Never)
	c.changed = true
	c.ask(p)
}

// isPeer reports whether a neighbour takes part in measuring the delay of the link.
func (n *neighbor) isPeer() bool { return !n.Loop && n.Tributary.Role != lldpdu.None }
