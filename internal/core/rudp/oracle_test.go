package rudp

import (
	"fmt"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// oracle keeps, byte by byte and number by number, what has come to a host, and what that
// may therefore say and hand on.
type oracle struct {
	numbers map[uint32]bool
	bytes   map[uint64]byte
	ready   uint64
	limit   uint64 // the largest window that was advertised
}

func newOracle() *oracle { return &oracle{numbers: map[uint32]bool{}, bytes: map[uint64]byte{}} }

// came notes a datagram.
func (o *oracle) came(b []byte) {
	if k, _, err := KindOf(b); err != nil || k != Data {
		return
	}
	p, err := parseData(b)
	if err != nil || p.flags&flagCounts == 0 {
		return
	}
	o.numbers[p.number] = true
	for i, x := range p.body {
		o.bytes[p.offset+uint64(i)] = x
	}
	for {
		if _, isThere := o.bytes[o.ready]; !isThere {
			return
		}
		o.ready++
	}
}

// says reports what a host may not say.
func (o *oracle) says(h *host, b []byte) error {
	k, _, err := KindOf(b)
	if err != nil || k != Data {
		return err
	}
	p, err := parseData(b)
	if err != nil {
		return err
	}
	if len(b) > h.datagram {
		return fmt.Errorf("a datagram of %d bytes, at most are %d", len(b), h.datagram)
	}
	if end := p.offset + uint64(len(p.body)); len(p.body) > 0 && end > h.send.limit {
		return fmt.Errorf("bytes to %d, the window ends at %d", end, h.send.limit)
	}
	if len(p.ack) == 0 {
		return nil
	}
	var a acknowledgement
	if err := a.parse(p.ack, h.receive.next()); err != nil {
		return err
	}
	for _, r := range a.ranges[:a.count] {
		for n := r.from; n < r.to; n++ {
			if !o.numbers[uint32(n)] {
				return fmt.Errorf("packet %d acknowledged, which has not come", n)
			}
		}
	}
	if a.limit < o.limit {
		return fmt.Errorf("the window shrinks from %d to %d", o.limit, a.limit)
	}
	o.limit = a.limit
	return nil
}

// agrees reports where a host is not as its oracle.
func (o *oracle) agrees(h *host) error {
	if h.receive.ready != o.ready {
		return fmt.Errorf("ready to %d, want %d", h.receive.ready, o.ready)
	}
	for at := h.receive.buffer.first; at < h.receive.ready; {
		part := h.receive.buffer.slice(at, h.receive.ready)
		for i, x := range part {
			if o.bytes[at+uint64(i)] != x {
				return fmt.Errorf("byte %d is %d, want %d", at+uint64(i), x, o.bytes[at+uint64(i)])
			}
		}
		at += uint64(len(part))
	}
	return nil
}

// invariants reports what a connection breaks of what always holds.
func invariants(c *Conn, now core.Time) error {
	flying := 0
	for n := c.log.first; n < c.log.next && len(c.log.ring) > 0; n++ {
		if p := c.log.of(n); !p.settled {
			flying += int(p.size)
		} else if n == c.log.first {
			return fmt.Errorf("packet %d is settled, and the first", n)
		}
	}
	s, r := &c.send, &c.receive
	switch {
	case c.state == Ended:
		return nil
	case flying != c.log.inFlight:
		return fmt.Errorf("%d bytes in flight, %d counted", flying, c.log.inFlight)
	case s.buffer.len() > s.most:
		return fmt.Errorf("%d bytes to send, at most %d", s.buffer.len(), s.most)
	case r.buffer.len() > r.most:
		return fmt.Errorf("%d bytes to read, at most %d", r.buffer.len(), r.most)
	case s.next < s.buffer.first || s.next > s.end():
		return fmt.Errorf("next %d is not in %d to %d", s.next, s.buffer.first, s.end())
	case len(r.numbers) > maxRanges:
		return fmt.Errorf("%d ranges of numbers", len(r.numbers))
	case c.congestion.window < leastWindow*c.congestion.mss || math.IsNaN(c.congestion.window) || math.IsInf(c.congestion.window, 0):
		return fmt.Errorf("a window of %v bytes", c.congestion.window)
	case c.rtt.sampled && (c.rtt.smoothed <= 0 || c.rtt.variance < 0 || c.rtt.least > c.rtt.latest):
		return fmt.Errorf("round trips %+v", c.rtt)
	}
	for _, l := range s.lost {
		if l.from < s.buffer.first || l.to > s.next || s.acked.has(l) {
			return fmt.Errorf("to be sent again: %v, of %d to %d", l, s.buffer.first, s.next)
		}
	}
	for i, a := range s.acked {
		if a.from <= s.buffer.first && !(i == 0 && a.from == s.buffer.end) && a.to > s.buffer.first {
			return fmt.Errorf("acknowledged, and kept: %v of %d", a, s.buffer.first)
		}
	}
	// What is not there must be on its way, or the timers must see to it.
	owes := s.buffer.len() > 0 || s.closed && !s.done()
	if d := c.Deadline(); owes && c.state != Calling && d == core.Never {
		return fmt.Errorf("bytes are not acknowledged, and nothing is due")
	} else if d != core.Never && d > now.Add(time.Hour) {
		return fmt.Errorf("deadline in %v", d.Sub(now))
	}
	return nil
}

// watch holds both hosts against their oracles, and the applications' bytes against those
// that were sent.
func (w *world) watch(t interface{ Fatalf(string, ...any) }, xs ...*transfer) {
	oracles := map[*host]*oracle{}
	for _, h := range w.hosts {
		oracles[h] = newOracle()
	}
	w.arrive = func(h *host, b []byte) {
		if h.Conn != nil && h.State() != Calling && h.State() != Ended {
			oracles[h].came(b)
		}
	}
	w.sniff = func(h *host, b []byte) {
		if h.Conn == nil {
			return
		}
		if err := oracles[h].says(h, b); err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
	}
	w.check = func(h *host) {
		if err := invariants(h.Conn, w.now); err != nil {
			t.Fatalf("%s: %v; %+v", h.name, err, h.Stats())
		}
		if h.State() != Ended && w.steps%16 == 0 {
			if err := oracles[h].agrees(h); err != nil {
				t.Fatalf("%s: %v", h.name, err)
			}
		}
	}
}
