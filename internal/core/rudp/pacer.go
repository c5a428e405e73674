package rudp

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// pacer spreads packets over the round trip, RFC 9002 section 7.7: a bucket of bytes
// that fills at a rate a little above window/RTT.
type pacer struct {
	tokens float64
	at     core.Time
	rate   float64 // bytes a second; 0: unknown, as without a round-trip time
	most   float64
}

const (
	paceGain      = 1.25
	paceGainStart = 2 // slow start doubles the window each round
	paceBurst     = 10
	paceQuantum   = time.Millisecond // a burst may last so long
)

// fill follows the window and takes the time in.
func (p *pacer) fill(now core.Time, c *cubic, rtt *roundTrip) {
	if !rtt.sampled {
		p.rate = 0
		return
	}
	gain := float64(paceGain)
	if c.slowStart() {
		gain = paceGainStart
	}
	isNew := p.rate == 0
	p.rate = gain * c.window / rtt.smoothed.Seconds()
	p.most = max(paceBurst*c.mss, p.rate*paceQuantum.Seconds())
	p.tokens = min(p.most, p.tokens+p.rate*now.Sub(p.at).Seconds())
	if isNew {
		p.tokens = p.most
	}
	p.at = now
}

// allows reports whether a packet may leave.
func (p *pacer) allows() bool { return p.rate == 0 || p.tokens > 0 }

func (p *pacer) sent(bytes int) {
	if p.rate > 0 {
		p.tokens -= float64(bytes)
	}
}

// next returns when half a burst may leave.
func (p *pacer) next() core.Time {
	return p.at.Add(time.Duration((p.most/2-p.tokens)/p.rate*1e9) + 1)
}
