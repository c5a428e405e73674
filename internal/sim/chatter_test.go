package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// chatter is a node that sends numbered things to random peers on all
// transports until a time, and checks the order of what it gets.
type chatter struct {
	life  uint32
	peers []NodeID
	until core.Time
	next  core.Time
	dial  bool

	to   map[NodeID]*numbers
	from map[NodeID]*seen
	err  error
}

// numbers counts what was sent to a peer.
type numbers struct{ message, value uint32 }

// seen is what has come from a peer: of each stream the last number, and whether
// the next one may leave some out.
type seen struct {
	life           uint32
	message, value uint32
	gap, valueGap  bool
}

// value is the chatter's control value.
type value struct{ life, number uint32 }

func newChatter(life uint32, peers []NodeID, until core.Time) *chatter {
	return &chatter{life: life, peers: peers, until: until, dial: true, to: map[NodeID]*numbers{}, from: map[NodeID]*seen{}}
}

func (c *chatter) Deadline() core.Time {
	if c.next > c.until {
		return core.Never
	}
	return c.next
}

func (c *chatter) Step(now core.Time, batch []Delivery, h Handle) {
	for _, d := range batch {
		c.take(now, d, h)
	}
	if now > c.until {
		c.next = core.Never
	}
	if now < c.next {
		return
	}
	c.next = now.Add(time.Duration(h.Rand().IntN(10_000)))
	peer := c.peers[h.Rand().IntN(len(c.peers))]
	if peer == h.ID() {
		return
	}
	to := c.to[peer]
	if to == nil {
		to = &numbers{}
		c.to[peer] = to
		h.Dial(peer)
	}
	for range 1 + h.Rand().IntN(3) {
		switch h.Rand().IntN(3) {
		case 0:
			h.Send(1, Addr{peer, 2}, []byte("head"), make([]byte, h.Rand().IntN(100)))
		case 1:
			head := binary.BigEndian.AppendUint32(nil, c.life)
			if h.Write(peer, head, binary.BigEndian.AppendUint32(nil, to.message+1)) {
				to.message++
			}
		case 2:
			to.value++
			h.Notify(peer, value{c.life, to.value})
		}
	}
}

func (c *chatter) take(now core.Time, d Delivery, h Handle) {
	peer := d.From.Node
	s := c.from[peer]
	if s == nil {
		s = &seen{gap: true, valueGap: true}
		c.from[peer] = s
	}
	switch d.Kind {
	case Message:
		s.check(c, h, "message", binary.BigEndian.Uint32(d.Bytes), binary.BigEndian.Uint32(d.Bytes[4:]), &s.message, &s.gap)
	case Control:
		v := d.Value.(value)
		s.check(c, h, "value", v.life, v.number, &s.value, &s.valueGap)
	case Up:
		s.gap = true
	case Dead:
		s.gap, s.valueGap = true, true
		fallthrough
	case Refused:
		if now < c.until {
			h.Dial(peer)
		}
	case Datagram:
		if d.Port != 2 || d.From.Port != 1 || string(d.Bytes[:4]) != "head" {
			c.err = fmt.Errorf("node %d got %+v", h.ID(), d)
		}
	}
}

// check takes a number that must follow on the last one of its stream.
func (s *seen) check(c *chatter, h Handle, what string, life, number uint32, last *uint32, gap *bool) {
	if life != s.life {
		// A life that ends before anybody was connected is reported to nobody.
		if life < s.life {
			c.err = fmt.Errorf("node %d got a %s of life %d after life %d", h.ID(), what, life, s.life)
		}
		*s = seen{life: life, gap: true, valueGap: true}
	}
	if number <= *last || number != *last+1 && !*gap {
		c.err = fmt.Errorf("node %d got %s %d after %d, gap %v", h.ID(), what, number, *last, *gap)
	}
	*last, *gap = number, false
}

// crowd is a world of chatters.
type crowd struct {
	*World
	chatters []*chatter
	ids      []NodeID
	until    core.Time
}

func newCrowd(cfg Config, n int, until time.Duration) *crowd {
	w, err := New(cfg)
	if err != nil {
		panic(err)
	}
	c := &crowd{World: w, until: core.Time(until)}
	for i := range n {
		c.ids = append(c.ids, NodeID(i))
	}
	for range n {
		c.chatters = append(c.chatters, newChatter(1, c.ids, c.until))
		w.Add("", c.chatters[len(c.chatters)-1])
	}
	return c
}

func (c *crowd) restart(id NodeID) {
	c.chatters[id] = newChatter(c.chatters[id].life+1, c.ids, c.until)
	c.chatters[id].next = c.Now()
	c.Restart(id, c.chatters[id])
}

// check returns what a chatter has found wrong, and whether what was sent is
// delivered, lost or, counted one by one, in flight.
func (c *crowd) check() error {
	for _, ch := range c.chatters {
		if ch.err != nil {
			return c.Fail(ch.err)
		}
	}
	flying := make([][transports]uint64, len(c.paths))
	for e := range c.queue.All() {
		if e.kind == datagramDue {
			flying[e.path][Datagrams]++
		}
	}
	for _, n := range c.nodes {
		for i, d := range n.inbox {
			if t, ok := d.Kind.transport(); ok {
				flying[n.paths[i]][t]++
			}
		}
	}
	var total [transports]Traffic
	for i, p := range c.paths {
		for _, s := range p.streams {
			if s == nil {
				continue
			}
			for _, it := range s.items() {
				if t, ok := it.kind.transport(); ok {
					flying[i][t]++
				}
			}
		}
		for t, traffic := range p.traffic {
			if got, want := traffic.InFlight(), flying[i][t]; got != want {
				return c.Fail(fmt.Errorf("%d to %d: %d of transport %d in flight by the counters, %d by count", p.from, p.to, got, t, want))
			}
			total[t].Sent.Packets += traffic.Sent.Packets
			total[t].Sent.Bytes += traffic.Sent.Bytes
			total[t].Doubled.Packets += traffic.Doubled.Packets
			total[t].Doubled.Bytes += traffic.Doubled.Bytes
			total[t].Delivered.Packets += traffic.Delivered.Packets
			total[t].Delivered.Bytes += traffic.Delivered.Bytes
			total[t].Lost.Packets += traffic.Lost.Packets
			total[t].Lost.Bytes += traffic.Lost.Bytes
		}
	}
	for t := range Transport(transports) {
		if total[t] != c.Total(t) {
			return c.Fail(fmt.Errorf("transport %d: the paths add up to %+v, the total is %+v", t, total[t], c.Total(t)))
		}
		var sent, taken Count
		for _, id := range c.ids {
			s, d := c.NodeTraffic(id, t)
			sent.Packets, sent.Bytes = sent.Packets+s.Packets, sent.Bytes+s.Bytes
			taken.Packets, taken.Bytes = taken.Packets+d.Packets, taken.Bytes+d.Bytes
		}
		if sent != total[t].Sent || taken != total[t].Delivered {
			return c.Fail(fmt.Errorf("transport %d: the nodes add up to %+v and %+v, the paths to %+v", t, sent, taken, total[t]))
		}
	}
	return nil
}

// fault does one of the faults that a world knows, as the two numbers say.
func (c *crowd) fault(kind, which int) {
	n := len(c.ids)
	a, b := NodeID(which%n), NodeID((which/n+which%n+1)%n)
	switch kind % 8 {
	case 0:
		c.Crash(a)
	case 1:
		c.restart(a)
	case 2:
		c.Cut(a, b)
	case 3:
		c.Repair(a, b)
	case 4:
		c.Partition(c.ids[:which%n])
	case 5:
		c.Heal()
	case 6:
		c.Break(a, b)
	case 7:
		c.Pause(a, time.Duration(which%50)*time.Microsecond)
	}
}
