package neighbor

import (
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// Core is LLDP on all ports of one machine. Its methods are not safe for concurrent use.
type Core struct {
	interval time.Duration
	ttl      uint16
	chance   core.Chance
	ports    map[PortID]*port
	closed   bool
	known    uint64 // neighbours so far
	notUp    uint64

	ticks    core.Timers[*port]
	ages     core.Timers[*neighbor]
	requests core.Timers[*port]

	changed  bool      // since Output.Changed
	notified core.Time // when that may be set again
	now      core.Time
	out      *Output
}

// port is one that is set. While it is not up it has no neighbours and no timers.
type port struct {
	id       PortID
	up       bool
	mac      [6]byte
	own      lldpdu.Announcement
	pdu      []byte // own, encoded
	tick     core.Timer[*port]
	credit   int // of announcements out of turn
	fast     int // announcements to come in fastInterval
	counters Counters

	neighbors []*neighbor
	delay     delay
}

// neighbor is one that a port hears.
type neighbor struct {
	Neighbor
	port  *port
	age   core.Timer[*neighbor]
	heard core.Time
}

// Deadline returns the next moment at which the core wants to be stepped.
func (c *Core) Deadline() core.Time {
	next := c.ticks.Next().Earlier(c.ages.Next()).Earlier(c.requests.Next())
	if c.changed {
		next = next.Earlier(c.notified)
	}
	return next
}

// Step takes inputs in order, and does what is due.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.now, c.out = now, out
	for i := range in {
		if !c.closed {
			c.take(&in[i])
		}
	}
	// After the inputs: a machine that was busy for long has heard its neighbours, but late.
	for n := c.ages.Due(now); n != nil; n = c.ages.Due(now) {
		n.Of.port.counters.Aged++
		c.forget(n.Of)
	}
	for t := c.ticks.Due(now); t != nil; t = c.ticks.Due(now) {
		p := t.Of
		p.credit = min(p.credit+1, maxCredit)
		p.delay.responses = 0
		if p.delay.peer != 0 && !p.delay.timer.Running() {
			c.request(p)
		} else {
			c.announce(p)
		}
	}
	for t := c.requests.Due(now); t != nil; t = c.requests.Due(now) {
		c.request(t.Of)
	}
	if c.changed && now >= c.notified {
		c.changed, c.notified = false, now.Add(notifyPause)
		out.Changed = true
	}
	c.out = nil
}

func (c *Core) take(in *Input) {
	p := c.ports[in.Port]
	switch in.Kind {
	case Set:
		c.set(p, in)
	case Removed:
		if p != nil {
			c.down(p, true)
			delete(c.ports, p.id)
		}
	case Close:
		for _, id := range slices.Sorted(maps.Keys(c.ports)) {
			c.down(c.ports[id], true)
		}
		c.closed = true
	case Heard:
		if p == nil || !p.up {
			c.notUp++
			return
		}
		c.heard(p, in)
	case Sent:
		if p != nil && p.delay.awaits && p.delay.nonce == in.Nonce {
			p.delay.sent, p.delay.left = in.At, true
		}
	}
}

// set takes what a port is.
func (c *Core) set(p *port, in *Input) {
	if p == nil {
		p = &port{id: in.Port}
		p.tick.Of, p.delay.timer.Of = p, p
		c.ports[in.Port] = p
	}
	own := in.Own
	own.TTL = c.ttl
	isOther := p.mac != in.MAC || p.own.Chassis != own.Chassis || p.own.Port != own.Port
	if p.up && (isOther || !in.Up) {
		c.down(p, in.Up)
	}
	if p.up && p.own.Equal(&own) {
		return
	}
	pdu, err := own.Append(nil)
	if err != nil || !in.Up {
		// The driver gives what fits; a port that does not is one that is down.
		p.mac, p.own, p.pdu = in.MAC, own, nil
		if p.up {
			c.down(p, false)
		}
		return
	}
	p.mac, p.own, p.pdu = in.MAC, own, pdu
	if !p.up {
		p.up, p.credit, p.fast = true, maxCredit, 0
	}
	c.announceNow(p)
}

// down has a port forget its neighbours and, if says, announce that it shuts down.
func (c *Core) down(p *port, says bool) {
	if !p.up {
		return
	}
	if says {
		end := lldpdu.Announcement{Chassis: p.own.Chassis, Port: p.own.Port}
		if pdu, err := end.Append(nil); err == nil {
			c.send(p, Send{PDU: pdu})
		}
	}
	for len(p.neighbors) > 0 {
		c.forget(p.neighbors[len(p.neighbors)-1])
	}
	c.ticks.Set(&p.tick, core.Never)
	p.up = false
}

// announceNow announces a port out of turn, if it has credit for that.
func (c *Core) announceNow(p *port) {
	if p.credit > 0 {
		p.credit--
		c.announce(p)
	} else if soon := c.now.Add(c.period(p)); soon < p.tick.At {
		c.ticks.Set(&p.tick, soon)
	}
}

// announce announces a port, and sets when it does so again.
func (c *Core) announce(p *port) { c.announceWith(p, lldpdu.Delay{}) }

func (c *Core) announceWith(p *port, d lldpdu.Delay) {
	c.send(p, Send{PDU: p.pdu, Delay: d})
	c.ticks.Set(&p.tick, c.now.Add(c.period(p)))
	p.fast = max(p.fast-1, 0)
}

func (c *Core) period(p *port) time.Duration {
	if p.fast > 0 {
		return min(c.interval, fastInterval)
	}
	return c.interval
}

func (c *Core) send(p *port, s Send) {
	p.counters.Announced++
	s.Port = p.id
	c.out.Sends = append(c.out.Sends, s)
}
