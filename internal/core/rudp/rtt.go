package rudp

import "time"

// roundTrip estimates the round-trip time, as RFC 6298 section 2 does, with the minimum
// and the peer's delay of RFC 9002 section 5.
type roundTrip struct {
	latest, smoothed, variance, least time.Duration
	sampled                           bool
}

const (
	granularity = time.Millisecond       // of timers, kGranularity
	initialRTT  = 50 * time.Millisecond  // without a sample
	maxAckDelay = time.Millisecond       // an acknowledgement waits so long for company
	maxProbe    = 500 * time.Millisecond // between two probes: a path that comes back is found soon
)

// sample takes in one measurement: the time from a packet to its acknowledgement, of
// which the peer has held that back for delay. Unlike in RFC 9002 any delay counts: an
// acknowledgement that is repeated, because the first was lost, may be old.
func (r *roundTrip) sample(rtt, delay time.Duration) {
	rtt = max(rtt, time.Microsecond)
	if !r.sampled {
		r.sampled = true
		rtt = max(rtt-delay, time.Microsecond)
		r.latest, r.least, r.smoothed, r.variance = rtt, rtt, rtt, rtt/2
		return
	}
	r.least = min(r.least, rtt)
	rtt = max(rtt-delay, r.least)
	r.latest = rtt
	r.variance += (max(r.smoothed-rtt, rtt-r.smoothed) - r.variance) / 4
	r.smoothed += (rtt - r.smoothed) / 8
}

// probe returns the probe timeout, RFC 9002 section 6.2.
func (r *roundTrip) probe() time.Duration {
	if !r.sampled {
		return 2 * initialRTT
	}
	return r.smoothed + max(4*r.variance, granularity) + maxAckDelay
}

// lossDelay returns how much later than others a packet may be acknowledged, RFC 9002
// section 6.1.2.
func (r *roundTrip) lossDelay() time.Duration {
	return max(max(r.latest, r.smoothed)*9/8, granularity)
}
