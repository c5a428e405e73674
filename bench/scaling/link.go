package scaling

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/sim"
)

// port is one direction of a link: what it sends, it sends in order.
type port struct {
	free   int64   // ps: when the last packet has left
	tokens float64 // bytes, of a bucket, at free
	begun  bool
}

// departure returns when the first and the last byte of so many have left, of what is there at
// a time; all in picoseconds.
func (p *port) departure(n *Network, at int64, bytes int) (first, last int64) {
	switch {
	case n.Rate == 0:
		return at, at
	case n.Burst == 0:
		first = max(at, p.free)
		p.free = first + n.serial(bytes)
		return first, p.free
	}
	if !p.begun {
		p.begun, p.tokens, p.free = true, float64(n.Burst), at
	}
	now := max(at, p.free)
	second := float64(n.Rate) / 8
	p.tokens = min(float64(n.Burst), p.tokens+float64(now-p.free)*second/1e12)
	if lack := float64(bytes) - p.tokens; lack > 0 {
		now += int64(lack / second * 1e12)
		p.tokens = float64(bytes)
	}
	p.tokens -= float64(bytes)
	p.free = now
	return now, now
}

// carrier decides when packets arrive. It is the only part that knows links.
type carrier struct {
	model *Model
	world *sim.World
	ports map[[2]sim.NodeID]*port
	hosts sim.NodeID    // nodes below are hosts, the others switches
	later time.Duration // after now, the sender hands over what it sends
}

func picoseconds(t core.Time) int64 { return int64(t) * 1000 }

// fate is for sim.World.Intercept. The sender's port number is the size of a batch's packets.
func (c *carrier) fate(_ sim.Kind, from, to sim.Addr, bytes []byte, fate *sim.Fate) {
	fate.Delay = c.arrival(from.Node, to.Node, len(bytes), int(from.Port))
}

// arrival returns how long after now so many bytes arrive, which leave after c.later.
func (c *carrier) arrival(from, to sim.NodeID, bytes, size int) time.Duration {
	key := [2]sim.NodeID{from, to}
	p := c.ports[key]
	if p == nil {
		p = &port{}
		c.ports[key] = p
	}
	n := &c.model.Network
	now := picoseconds(c.world.Now())
	at := now + 1000*int64(c.later)
	if from < c.hosts {
		at += 1000 * int64(n.Card)
	}
	first, last := p.departure(n, at, c.model.frames(bytes, size))
	arrives := last
	if n.CutThrough && to >= c.hosts {
		arrives = first + n.serial(n.Least)
	}
	arrives += 1000 * int64(n.Cable)
	if to < c.hosts {
		arrives += 1000 * int64(n.Card)
	}
	return time.Duration((arrives - now + 999) / 1000)
}
