package rudp

import (
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Constants of RFC 9438.
const (
	cubicC    = 0.4
	cubicBeta = 0.7
	cubicAimd = 3 * (1 - cubicBeta) / (1 + cubicBeta) // alpha of section 4.3

	initialWindow = 10 // packets, RFC 9002 section 7.2
	leastWindow   = 2
)

// cubic is the congestion window: CUBIC of RFC 9438, with the slow start of RFC 9406,
// which ends when delays rise. All windows are bytes.
type cubic struct {
	mss    float64 // a full packet with its headers
	window float64
	limit  float64 // slow start ends here: ssthresh

	peak  float64   // W_max
	aimd  float64   // W_est
	k     float64   // seconds from epoch to peak
	epoch core.Time // of the present growth; 0: it has not begun

	recovery core.Time // losses of packets sent before this are the same event
	losses   uint64    // events

	slow hystart
}

func newCubic(mss int) cubic {
	return cubic{mss: float64(mss), window: float64(initialWindow * mss), limit: math.Inf(1), recovery: -1, slow: newHystart()}
}

// resize changes the size of a packet before anything was sent.
func (c *cubic) resize(mss int) { c.mss, c.window = float64(mss), float64(initialWindow*mss) }

func (c *cubic) slowStart() bool { return c.window < c.limit }

// acked grows the window for bytes that were acknowledged, where the window was what
// limited the sender.
func (c *cubic) acked(now core.Time, bytes int, sentAt core.Time, rtt time.Duration, isLimited bool) {
	if sentAt <= c.recovery {
		return
	}
	if !isLimited {
		c.epoch = 0 // section 5.8: time without use is not time to grow
		return
	}
	if c.slowStart() {
		c.window += float64(bytes) / c.slow.divisor()
		return
	}
	if c.epoch == 0 {
		c.epoch = now
		c.aimd = c.window
		c.peak = max(c.peak, c.window)
		c.k = math.Cbrt((c.peak - c.window) / c.mss / cubicC)
	}
	t := now.Sub(c.epoch).Seconds()
	target := c.at(t + rtt.Seconds())
	alpha := cubicAimd
	if c.aimd >= c.peak {
		alpha = 1
	}
	c.aimd += alpha * c.mss * float64(bytes) / c.window
	if c.at(t) < c.aimd { // the region where Reno is faster
		c.window = max(c.window, c.aimd)
		return
	}
	target = min(max(target, c.window), 1.5*c.window)
	c.window += (target - c.window) * float64(bytes) / c.window
}

// at returns W_cubic(t).
func (c *cubic) at(t float64) float64 {
	d := t - c.k
	return cubicC*d*d*d*c.mss + c.peak
}

// lost shrinks the window for the loss of a packet, once for all that were sent before.
func (c *cubic) lost(now, sentAt core.Time) {
	if sentAt <= c.recovery {
		return
	}
	c.recovery, c.epoch = now, 0
	c.losses++
	if c.window < c.peak { // fast convergence, section 4.7
		c.peak = c.window * (1 + cubicBeta) / 2
	} else {
		c.peak = c.window
	}
	c.window = max(c.window*cubicBeta, leastWindow*c.mss)
	c.limit = c.window
}

// collapse begins anew, because nothing has passed for long: RFC 9002 section 7.6.
func (c *cubic) collapse(now core.Time) {
	c.limit = max(c.window*cubicBeta, leastWindow*c.mss)
	c.window = leastWindow * c.mss
	c.peak, c.epoch, c.recovery = 0, 0, now
	c.slow = newHystart()
}

// hystart ends slow start early, RFC 9406.
type hystart struct {
	end         uint64        // the round ends when this number is acknowledged
	before, now time.Duration // the least round-trip times of the last and of this round
	samples     int           // of this round
	careful     bool          // conservative slow start
	base        time.Duration // the least when that began
	rounds      int           // since then
}

const (
	hystartSamples = 8
	hystartRounds  = 5
	hystartSlower  = 4
	noRTT          = time.Duration(math.MaxInt64)
)

func newHystart() hystart { return hystart{before: noRTT, now: noRTT} }

func (h *hystart) divisor() float64 {
	if h.careful {
		return hystartSlower
	}
	return 1
}

// sample takes a round-trip time in, of a packet whose number was acknowledged while next
// is the next to be sent.
func (c *cubic) sample(number, next uint64, rtt time.Duration) {
	h := &c.slow
	if !c.slowStart() {
		return
	}
	if number >= h.end {
		if h.careful {
			if h.rounds++; h.rounds >= hystartRounds {
				c.limit, c.epoch = c.window, 0
				return
			}
		}
		h.end, h.before, h.now, h.samples = next, h.now, noRTT, 0
	}
	h.now = min(h.now, rtt)
	if h.samples++; h.samples < hystartSamples || h.before == noRTT {
		return
	}
	switch {
	case h.careful && h.now < h.base:
		h.careful = false
	case !h.careful && h.now >= h.before+min(max(h.before/8, 4*time.Millisecond), 16*time.Millisecond):
		h.careful, h.base, h.rounds = true, h.now, 0
	}
}
