package world

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	tcpHeader = 7 // bytes by which the simulation knows a packet of the stream,
	tcpAck    = 5 // and an acknowledgement
	tcpPacket = sharedChunk + wire.HeaderSize
	tcpWait   = 300 * time.Millisecond
)

// tcpSink acknowledges every packet by its number.
type tcpSink struct{}

func (tcpSink) Deadline() core.Time { return core.Never }

func (tcpSink) Step(_ core.Time, batch []sim.Delivery, h sim.Handle) {
	for i := range batch {
		h.Send(0, batch[i].From, batch[i].Bytes[:tcpAck], nil)
	}
}

// tcpNode is a TCP sender with CUBIC (RFC 9438) as a model: slow start, growth
// with the friendly region, one cut a round trip, no fast convergence.
type tcpNode struct {
	to              sim.Addr
	next, due       uint32 // numbers to be sent and to be acknowledged
	size, threshold float64
	most            float64
	cutAt           core.Time
	until           uint32
	rtt             time.Duration
	sent            map[uint32]core.Time
	acked           int
	heardAt         core.Time
	ended           bool
	small           uint32 // packets on their way at most, by what its host lets into its queue; 0: any
}

func (t *tcpNode) Deadline() core.Time {
	if t.next == t.due {
		return core.Never
	}
	return t.heardAt.Add(tcpWait)
}

func (t *tcpNode) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	if t.sent == nil {
		t.sent = map[uint32]core.Time{}
	}
	for i := range batch {
		if batch[i].Kind == sim.Datagram {
			t.acknowledged(now, binary.BigEndian.Uint32(batch[i].Bytes))
		}
	}
	if len(batch) > 0 {
		t.heardAt = now
	} else if now >= t.heardAt.Add(tcpWait) { // all that was sent is lost
		t.due, t.heardAt = t.next, now
		t.threshold, t.size = t.size/2, 10
	}
	room := uint32(t.size)
	if t.small > 0 {
		room = min(room, t.small)
	}
	for !t.ended && t.next-t.due < room {
		var b [tcpHeader]byte
		binary.BigEndian.PutUint32(b[:], t.next)
		t.sent[t.next] = now
		t.next++
		h.Send(0, t.to, b[:], nil)
	}
}

// acknowledged takes the acknowledgement of number n: what is missing before it
// is lost, since the link keeps the order.
func (t *tcpNode) acknowledged(now core.Time, n uint32) {
	if wire.Newer(t.due, n) {
		return
	}
	isLost := n != t.due
	for ; t.due != n; t.due++ {
		delete(t.sent, t.due)
	}
	t.due++
	t.rtt += (now.Sub(t.sent[n]) - t.rtt) / 8
	delete(t.sent, n)
	t.acked++
	switch {
	case isLost && !wire.Newer(t.until, n):
		t.until, t.cutAt, t.most = t.next, now, t.size
		t.size = max(2, 0.7*t.size)
		t.threshold = t.size
	case t.size < t.threshold:
		t.size++
	default:
		t.grow(now)
	}
}

func (t *tcpNode) grow(now core.Time) {
	since := now.Sub(t.cutAt).Seconds()
	at := since + t.rtt.Seconds() - math.Cbrt(t.most*0.3/0.4)
	target := 0.4*at*at*at + t.most
	friendly := 0.7*t.most + 3*0.3/1.7*since/t.rtt.Seconds()
	if friendly > target {
		t.size = max(t.size, friendly)
	} else if target > t.size {
		t.size += min(target-t.size, t.size/2) / t.size
	}
}
