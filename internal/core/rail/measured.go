package rail

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

const (
	fresh   = 50 * time.Millisecond // how long the lag of late counts
	refresh = time.Second           // how long a round trip without a queue counts at least
	samples = 16                    // fragments that are timed at once
)

// measured is a rail and what is known of it. Each timed fragment gives a rate, as in BBR
// (Cardwell et al., 2016): bytes acknowledged from when it was sent until it was
// acknowledged, by that time. A rate that is higher counts; one that is lower only where
// the sender did not cause it.
//
// A round trip without a queue is that of a fragment before which nothing was in flight.
// Where there was none for long, the rail drains to get one.
type measured struct {
	isUp    bool
	drains  bool    // nothing is sent until all is acknowledged
	isTimed bool    // base is known
	isRated bool    // the rate was measured with a queue, so that it is the rail's
	rate    float64 // bytes/s; 0: unknown

	base, lag     time.Duration // round trip without a queue; that of late, without the time that is due to the rate
	baseAt, lagAt core.Time     // when they were found

	sent, acked uint64    // bytes since the rail is up
	idle        uint64    // of those, until it was idle last
	ackedAt     core.Time // when something was acknowledged last, or sent on the idle rail
	trips       int       // that were timed without a queue
	passed      int       // bytes sent on other rails since something was sent on this one

	timed [samples]fragment // a ring, oldest first
	first int
	count int
}

// fragment is one that is timed.
type fragment struct {
	at      core.Time
	end     uint64    // of all bytes sent, where it ends
	size    int       // of it
	queued  int       // bytes in flight with it
	acked   uint64    // of all bytes, when it was sent
	ackedAt core.Time // at that time
	isFull  bool      // it filled the window
	isEarly bool      // nothing had been acknowledged since the rail was idle
}

func (m *measured) inFlight() int { return int(m.sent - m.acked) }

func (m *measured) isOpen(window int) bool {
	flying := m.inFlight()
	return flying == 0 || flying < window && !m.drains
}

// delay returns the round trip to expect beside the time in the queue: what was measured,
// or for how long what is in flight is due.
func (m *measured) delay(now core.Time) time.Duration {
	d := max(m.base, m.lag)
	if flying := m.inFlight(); flying > 0 {
		d = max(d, now.Sub(m.ackedAt)-m.takes(flying))
	}
	if m.count > 0 {
		f := &m.timed[m.first]
		d = max(d, now.Sub(f.at)-m.takes(f.queued))
	}
	return d
}

// takes returns how long bytes take at the rail's rate.
func (m *measured) takes(size int) time.Duration {
	if m.rate == 0 {
		return 0
	}
	return time.Duration(float64(size) / m.rate * float64(time.Second))
}

func (m *measured) send(size, window int, now core.Time) {
	if m.inFlight() == 0 {
		m.drains, m.ackedAt, m.idle = false, now, m.sent
	}
	m.sent += uint64(size)
	m.passed = 0
	f := fragment{
		at: now, end: m.sent, size: size, queued: m.inFlight(), acked: m.acked, ackedAt: m.ackedAt,
		isFull: m.inFlight() > window-size, isEarly: m.acked == m.idle,
	}
	if m.count == samples {
		return
	}
	if m.count > 0 {
		if last := &m.timed[(m.first+m.count-1)%samples]; int(f.end-last.end) < window/samples {
			return
		}
	}
	m.timed[(m.first+m.count)%samples] = f
	m.count++
}

func (m *measured) ack(size int, now core.Time) {
	m.acked += uint64(min(size, m.inFlight()))
	for m.count > 0 && m.timed[m.first].end <= m.acked {
		f := &m.timed[m.first]
		m.time(f, now)
		m.first, m.count = (m.first+1)%samples, m.count-1
	}
	m.ackedAt = now
	if m.isTimed && now.Sub(m.baseAt) > max(refresh, 100*m.base) {
		m.drains = true
	}
}

// time takes what the acknowledgement of a fragment says.
func (m *measured) time(f *fragment, now core.Time) {
	trip := now.Sub(f.at)
	if bytes := m.acked - f.acked; bytes >= probe {
		m.sample(float64(bytes), now.Sub(f.ackedAt), trip, f)
	}
	m.late(max(0, trip-m.takes(f.queued)), now)
	switch {
	case !m.isTimed || trip <= m.base:
		m.trips++
		m.setBase(trip, now)
	case f.queued == f.size && m.isRated:
		m.unqueued(max(trip-m.takes(f.size), trip/4), now)
	case f.queued == f.size:
		m.unqueued(trip, now)
	case trip <= m.base+m.base/8:
		m.baseAt = now
	}
}

// sample takes a rate. Where the window was not full, a lower one of few bytes is due to
// the delay, or to the sender. In the first round trip of a flow there is one delay more in
// it, which counts only if the rate would rise nevertheless.
func (m *measured) sample(bytes float64, span, trip time.Duration, f *fragment) {
	rate := bytes / max(span, time.Microsecond).Seconds()
	if f.isEarly && m.rate > rate {
		span = max(span-m.base, time.Microsecond)
		rate = min(m.rate, bytes/span.Seconds())
	}
	switch {
	case m.rate == 0:
		m.rate = rate
	case rate > m.rate:
		m.rate += (rate - m.rate) / 2
	case f.isFull || f.queued >= newWindow && trip > 2*m.base+3*m.takes(f.queued):
		m.fall(rate)
	}
	m.isRated = m.isRated || f.isFull && m.isTimed && trip > m.base+m.base/4
}

// fall lowers the rate: at once where it has fallen far, and else smoothly.
func (m *measured) fall(rate float64) {
	if rate < m.rate/2 {
		m.rate += (rate - m.rate) / 2
	} else {
		m.rate += (rate - m.rate) / 8
	}
}

// late takes a round trip less the time that is due to the rate.
func (m *measured) late(d time.Duration, now core.Time) {
	if d < m.lag || now.Sub(m.lagAt) > fresh {
		m.lag = d
	} else {
		m.lag += (d - m.lag) / 4
	}
	m.lagAt = now
}

// unqueued takes a round trip without a queue.
func (m *measured) unqueued(trip time.Duration, now core.Time) {
	m.trips++
	if !m.isTimed || trip <= m.base+m.base/8 || now.Sub(m.baseAt) > refresh {
		m.setBase(trip, now)
	}
}

func (m *measured) setBase(trip time.Duration, now core.Time) {
	m.isTimed, m.base, m.baseAt = true, trip, now
}

func (m *measured) ping(trip time.Duration, now core.Time) {
	switch {
	case m.inFlight() == 0:
		m.late(trip, now)
		m.unqueued(trip, now)
	case !m.isTimed || trip < m.base:
		m.setBase(trip, now)
	}
}
