package neighbor

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// delay is the measurement of a link. At most one request is under way.
type delay struct {
	peer    uint64            // ID of the neighbour that is asked; 0: none
	mac     [6]byte           // its address
	timer   core.Timer[*port] // of the first requests: later ones come with announcements
	next    core.Time         // earliest of the next request, whomever it asks
	count   int               // requests to it
	nonce   uint64
	awaits  bool // a response to the request with nonce
	left    bool // that has left, at sent
	sent    core.Time
	samples [window]time.Duration // of requests, in one direction; 0: no response

	published time.Duration
	responses int // to others' requests, in this interval
}

// ask has a port measure the delay to the first of its neighbours that takes part.
func (c *Core) ask(p *port) {
	d := &p.delay
	i := slices.IndexFunc(p.neighbors, (*neighbor).isPeer)
	switch {
	case i < 0 && d.peer == 0:
	case i < 0:
		c.requests.Set(&d.timer, core.Never)
		c.measure(p, 0, [6]byte{})
	case d.peer != p.neighbors[i].ID || d.mac != p.neighbors[i].MAC:
		c.measure(p, p.neighbors[i].ID, p.neighbors[i].MAC)
		c.requests.Set(&d.timer, max(c.now, d.next))
	}
}

// measure begins anew, with another neighbour or none.
func (c *Core) measure(p *port, peer uint64, mac [6]byte) {
	d := &p.delay
	c.changed = c.changed || d.published != 0
	*d = delay{peer: peer, mac: mac, timer: d.timer, next: d.next, responses: d.responses}
}

// request announces the port with a request. The one before it has no response any more.
func (c *Core) request(p *port) {
	d := &p.delay
	d.samples[d.count%window] = 0
	c.publish(p)
	d.nonce, d.awaits, d.left = c.chance.Uint64(), true, false
	d.count++
	p.counters.Requests++
	c.announceWith(p, lldpdu.Delay{Kind: lldpdu.DelayRequest, Target: d.mac, Nonce: d.nonce})
	d.next = c.now.Add(firstInterval)
	if d.count < firstRequests {
		c.requests.Set(&d.timer, d.next)
	}
}

// delayed takes a request or a response to this port.
func (c *Core) delayed(p *port, in *Input, m *lldpdu.Delay) {
	switch {
	case m.Kind == lldpdu.DelayResponse:
		c.responded(p, in, m)
	case p.delay.responses >= mostResponses || !slices.ContainsFunc(p.neighbors, func(n *neighbor) bool { return n.MAC == in.MAC && n.isPeer() }):
		p.counters.Strangers++
	default:
		p.delay.responses++
		p.counters.Responses++
		c.send(p, Send{PDU: p.pdu, Received: in.At, Delay: lldpdu.Delay{Kind: lldpdu.DelayResponse, Target: in.MAC, Nonce: m.Nonce}})
	}
}

// responded takes a response.
func (c *Core) responded(p *port, in *Input, m *lldpdu.Delay) {
	d := &p.delay
	if !d.awaits || !d.left || m.Nonce != d.nonce || in.MAC != d.mac {
		p.counters.Unasked++
		return
	}
	d.awaits = false
	trip := in.At.Sub(d.sent) - m.Hold
	if trip < 2 {
		p.counters.Implausible++
		return
	}
	p.counters.Samples++
	d.samples[(d.count-1)%window] = trip / 2
	c.publish(p)
}

// publish takes over the least of the samples, if it differs enough from what is
// published: by more than an eighth.
func (c *Core) publish(p *port) {
	d := &p.delay
	var least time.Duration
	for _, s := range d.samples {
		if s > 0 && (least == 0 || s < least) {
			least = s
		}
	}
	if isNear := least > 0 && d.published > 0 && (least-d.published).Abs() <= d.published/8; isNear || least == d.published {
		return
	}
	d.published = least
	c.changed = true
}
