package rudp

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// acknowledgement is one that has come, apart.
type acknowledgement struct {
	delay  time.Duration
	limit  uint64
	ranges [maxRanges]span // numbers, the largest first
	count  int
}

// parse reads an acknowledgement of packets before number next.
func (a *acknowledgement) parse(b []byte, next uint64) error {
	a.delay = time.Duration(binary.BigEndian.Uint32(b[4:])) * time.Microsecond
	a.limit = binary.BigEndian.Uint64(b[8:])
	a.count = 0
	if a.limit > maxOffset {
		return fmt.Errorf("%w: window to %d", ErrMalformed, a.limit)
	}
	n := uint64(binary.BigEndian.Uint32(b[16:]))
	if n == 0 { // no number yet
		return nil
	}
	to := widen(next, binary.BigEndian.Uint32(b)) + 1
	if to > next || to < n {
		return fmt.Errorf("%w: packet %d acknowledged, the next is %d", ErrMalformed, to-1, next)
	}
	a.ranges[0], a.count = span{to - n, to}, 1
	for b = b[ackHead:]; len(b) > 0; b = b[ackRange:] {
		gap, n := uint64(binary.BigEndian.Uint32(b)), uint64(binary.BigEndian.Uint32(b[4:]))
		above := a.ranges[a.count-1].from
		if gap == 0 || n == 0 || gap+n > above {
			return fmt.Errorf("%w: range of %d packets, %d before %d", ErrMalformed, n, gap, above)
		}
		a.ranges[a.count] = span{above - gap - n, above - gap}
		a.count++
	}
	return nil
}

// onAck settles what the peer has got, and finds out what it has not: RFC 9002 sections
// 5 and 6.
func (c *Conn) onAck(now core.Time, a *acknowledgement) {
	if a.limit > c.send.limit {
		c.send.limit = a.limit
	}
	bytes, limited, before := 0, c.limited, c.send.settledTo()
	var newest *sentPacket
	var sample sentPacket
	for i := range a.ranges[:a.count] {
		r := a.ranges[i]
		for n := r.to; n > max(r.from, c.log.first); n-- {
			p := c.log.of(n - 1)
			if n-1 >= c.log.next || p.settled {
				continue
			}
			if newest == nil {
				sample, newest = *p, p
				if i == 0 && n == r.to {
					rtt := now.Sub(p.at)
					c.rtt.sample(rtt, a.delay)
					c.congestion.sample(n-1, c.log.next, c.rtt.latest)
				}
			}
			bytes += int(p.size)
			c.send.arrived(span{p.offset, p.offset + uint64(p.bytes)})
			c.log.settle(p)
		}
	}
	if newest == nil {
		return
	}
	c.probes, c.backoff = 0, 0
	if c.state != Closing || c.send.settledTo() > before { // a shut window is no progress
		c.progress = now
	}
	c.rate.acked(now, bytes, limited)
	c.congestion.acked(now, bytes, sample.at, c.rtt.smoothed, limited)
	c.detect(now, a.ranges[0].to-1)
	c.news |= Writable
}

// detect finds the packets that were lost: others sent later have arrived, three numbers
// or a while later.
func (c *Conn) detect(now core.Time, largest uint64) {
	c.largest = max(c.largest, largest)
	c.lossAt = core.Never
	delay := c.rtt.lossDelay()
	first, last := core.Never, core.Time(-1) // when the lost ones were sent
	for n := c.log.first; n < min(c.largest, c.log.next); n++ {
		p := c.log.of(n)
		if p.settled {
			continue
		}
		late := p.at.Add(delay)
		if c.largest-n < packetThreshold && now < late {
			c.lossAt = c.lossAt.Earlier(late)
			continue
		}
		first, last = first.Earlier(p.at), max(last, p.at)
		c.lose(p)
	}
	if last < 0 {
		return
	}
	c.congestion.lost(now, last)
	if last.Sub(first) > persistent*c.rtt.probe() && c.rtt.sampled {
		c.congestion.collapse(now)
	}
}

const (
	packetThreshold = 3
	persistent      = 3 // probe timeouts in which nothing passed, section 7.6
)

// lose gives up a packet: what is in it is sent again.
func (c *Conn) lose(p *sentPacket) {
	c.lostPackets++
	c.send.lose(span{p.offset, p.offset + uint64(p.bytes)})
	c.log.settle(p)
}

// rate measures how fast bytes are acknowledged while the window limits the sender.
type rate struct {
	since core.Time
	bytes int
	value float64 // bytes a second
}

const rateInterval = 10 * time.Millisecond

func (r *rate) acked(now core.Time, bytes int, isLimited bool) {
	if !isLimited {
		r.since, r.bytes = now, 0
		return
	}
	r.bytes += bytes
	d := now.Sub(r.since)
	if d < rateInterval {
		return
	}
	if v := float64(r.bytes) / d.Seconds(); r.value == 0 {
		r.value = v
	} else {
		r.value += (v - r.value) / 4
	}
	r.since, r.bytes = now, 0
}
