package session

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// A dumbbell is one link with a queue that drops what it has no room for, and
// flows that always have something to send: the law of the window alone,
// without numbers, trees or repair. What is lost is lost for good, and known
// after a round trip.
type dumbbell struct {
	rng    *rand.Rand
	each   time.Duration // that a packet takes on the link
	room   time.Duration // most that a packet waits
	jitter time.Duration // largest further delay of a packet, as hosts make it
	loss   float64       // by chance

	now    core.Time
	free   core.Time // when the link has sent all that waits
	flows  []*dumbbellFlow
	events eventHeap

	waited []time.Duration // of each packet since the last reset
}

// control is a law of congestion control.
type control interface {
	window() int
	acked(now core.Time, n, next uint32, rtt time.Duration)
	missed(now core.Time, n, next uint32, rtt time.Duration)
	full()
}

type dumbbellFlow struct {
	control
	base   time.Duration // round trip without a queue
	start  core.Time
	next   uint32
	flight int
	done   int // packets since the last reset
}

type event struct {
	at   core.Time
	flow int
	n    uint32
	sent core.Time
	lost bool
	kick bool // the flow begins
}

type eventHeap []event

func (h eventHeap) Len() int           { return len(h) }
func (h eventHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h eventHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)        { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any          { old := *h; e := old[len(old)-1]; *h = old[:len(old)-1]; return e }

func (d *dumbbell) add(c control, base time.Duration, start core.Time) *dumbbellFlow {
	f := &dumbbellFlow{control: c, base: base, start: start}
	d.flows = append(d.flows, f)
	heap.Push(&d.events, event{at: start, flow: len(d.flows) - 1, kick: true})
	return f
}

// run lets time pass, and then counts anew.
func (d *dumbbell) reset() {
	d.waited = d.waited[:0]
	for _, f := range d.flows {
		f.done = 0
	}
}

func (d *dumbbell) run(t time.Duration) {
	until := d.now.Add(t)
	for len(d.events) > 0 && d.events[0].at <= until {
		e := heap.Pop(&d.events).(event)
		d.now = e.at
		f := d.flows[e.flow]
		if !e.kick {
			f.flight--
			rtt := e.at.Sub(e.sent)
			if e.lost {
				f.missed(d.now, e.n, f.next, rtt)
			} else {
				f.done++
				f.acked(d.now, e.n, f.next, rtt)
			}
		}
		d.send(e.flow)
	}
	d.now = until
}

func (d *dumbbell) send(i int) {
	f := d.flows[i]
	for f.flight < f.window() {
		e := event{flow: i, n: f.next, sent: d.now}
		f.next++
		f.flight++
		d.free = max(d.free, d.now)
		wait := d.free.Sub(d.now)
		switch {
		case wait > d.room || d.rng.Float64() < d.loss:
			e.lost = true
			e.at = d.now.Add(wait + f.base)
		default:
			d.waited = append(d.waited, wait)
			d.free = d.free.Add(d.each)
			e.at = d.free.Add(f.base)
		}
		if d.jitter > 0 {
			e.at = e.at.Add(time.Duration(d.rng.Int64N(int64(d.jitter))))
		}
		heap.Push(&d.events, e)
	}
	f.full()
}

// shares returns each flow's share of what the link could carry in t.
func (d *dumbbell) shares(t time.Duration) []float64 {
	var s []float64
	for _, f := range d.flows {
		s = append(s, float64(f.done)*float64(d.each)/float64(t))
	}
	return s
}

// queue returns the mean time that a packet waited.
func (d *dumbbell) queue() time.Duration {
	var sum time.Duration
	for _, w := range d.waited {
		sum += w
	}
	return sum / time.Duration(max(len(d.waited), 1))
}

// jain is Jain's index of fairness.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	return sum * sum / (float64(len(x)) * squares)
}

// ours is the law under test.
type ours struct {
	flow
	least, mean time.Duration
}

func newOurs(most uint32) *ours { return &ours{flow: newFlow(most, DefaultTiming().Queue)} }

func (o *ours) window() int { return int(o.size) }
func (o *ours) full()       { o.round.full = true }

func (o *ours) acked(now core.Time, n, next uint32, rtt time.Duration) {
	if o.least == 0 || rtt < o.least {
		o.least = rtt
	}
	o.mean += (rtt - o.mean) / 8
	o.landed(now, n, next, rtt)
}

func (o *ours) missed(now core.Time, n, next uint32, rtt time.Duration) {
	q := short
	switch most := o.least + max(o.least, crowd); {
	case o.mean > max(most, o.limit(o.size)):
		q = standing
	case o.mean > most:
		q = passing
	}
	o.lost(now, n, next, q)
	o.landed(now, n, next, 0)
}

// cubic is TCP with CUBIC (RFC 9438), as a model: slow start, its growth with
// the friendly region, one cut a round trip.
type cubic struct {
	size, most float64
	threshold  float64
	epoch      core.Time
	until      uint32
	rtt        time.Duration
}

func newCubic() *cubic { return &cubic{size: 10, threshold: math.Inf(1)} }

func (c *cubic) window() int { return int(c.size) }
func (c *cubic) full()       {}

func (c *cubic) acked(now core.Time, n, next uint32, rtt time.Duration) {
	c.rtt += (rtt - c.rtt) / 8
	if c.size < c.threshold {
		c.size++
		return
	}
	t := now.Sub(c.epoch).Seconds()
	k := math.Cbrt(c.most * 0.3 / 0.4)
	at := t + c.rtt.Seconds()
	target := 0.4*(at-k)*(at-k)*(at-k) + c.most
	friendly := 0.7*c.most + 3*0.3/1.7*t/c.rtt.Seconds()
	switch {
	case friendly > target:
		c.size = max(c.size, friendly)
	case target > c.size:
		c.size += min(target-c.size, c.size/2) / c.size
	default:
		c.size += 0.01 / c.size
	}
}

func (c *cubic) missed(now core.Time, n, next uint32, rtt time.Duration) {
	if int32(c.until-n) > 0 {
		return
	}
	c.until = next
	c.most, c.epoch = c.size, now
	c.size = max(2, 0.7*c.size)
	c.threshold = c.size
}

// shallow is TCP on a Linux host whose own queue is the link's: however large
// its window, it has no more than two buffers of 64 KiB there (TCP small queues).
type shallow struct{ *cubic }

const smallQueue = 2 * 64 << 10 / 1514 // packets

func (s shallow) window() int { return min(s.cubic.window(), smallQueue) }
