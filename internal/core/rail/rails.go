package rail

import (
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// MaxWindow is the most bytes in flight on a rail, where Rails.Ceiling sets no other.
const MaxWindow = 8 << 20

const (
	minWindow = 128 << 10 // bytes
	newWindow = 64 << 10  // of a rail of unknown rate, until something was acknowledged
	unknown   = 12.5e6    // bytes/s of a rail of unknown rate, where that of no rail is known
	queueing  = 50 * time.Millisecond
	probe     = 4 << 10 // the least bytes of a fragment that measures a rate
	share     = 32      // a rail that is passed over gets a fragment when as many have passed
	small     = 64 << 10
	slack     = 200 * time.Microsecond // by which a small fragment may arrive later than by another rail
	noise     = 5 * time.Microsecond   // of delays
	explores  = 16                     // one in as many small fragments may take another rail, to measure it
)

// Rails chooses, for each fragment to one peer, the rail on which it arrives first. A rail
// here is the path of a pair of rails, by a number below MaxRails. It measures rate and
// delay of each by what is acknowledged, and bounds what is in flight on it. The zero value
// has no rails. Nothing allocates.
//
// A fragment arrives when what is in flight before it has passed, at the rail's rate, and
// half a round trip later. So small fragments take the rail with the lowest delay, and
// large flows all rails by their rates. Small ones stay on a rail as long as that is about
// as good as any: then the answers of the other side, which does likewise, carry the
// acknowledgements. The window of a rail is twice its rate times its
// delay; 128 KiB or two fragments if that is more, unless the rail would take over 50 ms for
// those.
//
// A rail that is slow in acknowledging gets less at once. It goes on getting every 32nd
// fragment if it is idle, so that its rate is known when it recovers.
type Rails struct {
	Ceiling int // most bytes in flight on a rail; 0: MaxWindow

	rails   [MaxRails]measured
	largest int // bytes of a fragment that was sent
	smalls  int // fragments, small ones
}

// Up adds a rail, of a bandwidth in bit/s from which measuring begins; 0: unknown. A rail
// that is there begins anew.
func (r *Rails) Up(i int, bandwidth uint64) {
	r.rails[i] = measured{isUp: true, rate: float64(bandwidth) / 8}
}

// Down takes a rail away, with what is in flight on it.
func (r *Rails) Down(i int) { r.rails[i] = measured{} }

// IsUp reports whether there is a rail.
func (r *Rails) IsUp(i int) bool { return r.rails[i].isUp }

// Choose returns the rail on which a fragment of that many bytes arrives first, of those
// whose window is open. There is none where all windows are full: ask again when something
// was acknowledged, or a rail came up.
func (r *Rails) Choose(size int, now core.Time) (i int, ok bool) {
	return r.ChooseOf(size, math.MaxInt, now)
}

// ChooseOf is as Choose, for a fragment at the head of rest bytes that wait, itself
// included. It returns none also where all of them may arrive by the rails whose windows
// are full, before the fragment does on any whose window is open. Then ask again after some
// milliseconds, too: rails that are waited for may have become slow.
func (r *Rails) ChooseOf(size, rest int, now core.Time) (i int, ok bool) {
	best, least, full := -1, 0.0, false
	for i := range r.rails {
		m := &r.rails[i]
		switch {
		case !m.isUp:
		case !m.isOpen(r.window(m)):
			full = true
		case r.isDue(m, size, rest):
			return i, true
		default:
			if at := r.arrival(m, size, now); best < 0 || at < least {
				best, least = i, at
			}
		}
	}
	if best < 0 || full && least > r.finish(max(size, rest), now) {
		return 0, false
	}
	if size <= small {
		return r.stay(best, least, size, now), true
	}
	return best, true
}

// stay returns the rail that a small fragment takes where it arrives first on best, which may
// be by chance: the delay of a rail that is in use has all that holds up the other side in it.
// Of rails that are about as good it is the first, here and there.
func (r *Rails) stay(best int, least float64, size int, now core.Time) int {
	if !r.rails[best].isTimed {
		return best
	}
	if r.smalls++; r.smalls%explores == 0 {
		if i := r.stale(now); i >= 0 {
			return i
		}
	}
	lowest := r.rails[best].base
	for i := range r.rails {
		if m := &r.rails[i]; m.isTimed {
			lowest = min(lowest, m.base)
		}
	}
	for i := range r.rails {
		m := &r.rails[i]
		if m.isTimed && m.isOpen(r.window(m)) && m.base <= lowest+lowest/4+noise && r.arrival(m, size, now) <= least+slack.Seconds() {
			return i
		}
	}
	return best
}

// stale returns an idle rail whose delay was measured few times, or long ago, and may be as low
// as that of others; -1: there is none.
func (r *Rails) stale(now core.Time) int {
	for i := range r.rails {
		m := &r.rails[i]
		if m.isTimed && m.inFlight() == 0 && m.base < slack && (m.trips < 8 || now.Sub(m.baseAt) > refresh) {
			return i
		}
	}
	return -1
}

// finish returns in how many seconds bytes arrive if they flow like a fluid, over all rails
// on which something arrives by then.
func (r *Rails) finish(bytes int, now core.Time) float64 {
	at := math.Inf(1)
	for {
		volume, rates := float64(bytes), 0.0
		for i := range r.rails {
			m := &r.rails[i]
			if begin := r.arrival(m, 0, now); m.isUp && begin < at {
				rate := r.rate(m)
				volume += rate * begin
				rates += rate
			}
		}
		last := at
		if at = volume / rates; at >= last {
			return last
		}
	}
}

// isDue reports whether an idle rail was passed over for so long that it is to be measured
// again; not by the last of what waits, which might be late by that.
func (r *Rails) isDue(m *measured, size, rest int) bool {
	return m.inFlight() == 0 && size >= probe && m.passed >= share*size && size <= rest/8
}

// arrival returns in how many seconds bytes arrive that are sent now, or as soon as the
// window opens.
func (r *Rails) arrival(m *measured, size int, now core.Time) float64 {
	return (float64(m.inFlight())+float64(size))/r.rate(m) + m.delay(now).Seconds()/2
}

// rate returns a rail's rate in bytes/s. One that is unknown is taken for as slow as the
// slowest that is known.
func (r *Rails) rate(m *measured) float64 {
	if m.rate > 0 {
		return m.rate
	}
	lowest := math.Inf(1)
	for i := range r.rails {
		if o := &r.rails[i]; o.rate > 0 {
			lowest = min(lowest, o.rate)
		}
	}
	if math.IsInf(lowest, 1) {
		return unknown
	}
	return lowest
}

// window returns how many bytes may be in flight on a rail.
func (r *Rails) window(m *measured) int {
	if m.rate == 0 {
		return newWindow
	}
	ceiling := r.Ceiling
	if ceiling == 0 {
		ceiling = MaxWindow
	}
	pipe := m.rate * m.base.Seconds()
	w := max(2*pipe, min(float64(max(minWindow, 2*r.largest)), m.rate*queueing.Seconds()))
	if pipe > float64(r.largest)/16 { // a second fragment follows before the first is acknowledged
		w = max(w, float64(r.largest+1))
	}
	return int(min(w, float64(ceiling)))
}

// Sent notes that a fragment was sent on a rail, be it the one that was chosen or not.
func (r *Rails) Sent(i, size int, now core.Time) {
	m := &r.rails[i]
	if !m.isUp {
		return
	}
	r.largest = max(r.largest, size)
	m.send(size, r.window(m), now)
	for j := range r.rails {
		if o := &r.rails[j]; j != i && o.passed < share<<20 {
			o.passed += size
		}
	}
}

// Acked notes that bytes sent on a rail were acknowledged, in the order of sending.
func (r *Rails) Acked(i, size int, now core.Time) {
	if m := &r.rails[i]; m.isUp {
		m.ack(size, now)
	}
}

// Delay notes a round trip on a rail that something small took, such as a ping.
func (r *Rails) Delay(i int, trip time.Duration, now core.Time) {
	if m := &r.rails[i]; m.isUp {
		m.ping(trip, now)
	}
}

// Measured is what is known of a rail.
type Measured struct {
	Rate     uint64        // bit/s; 0: unknown
	Delay    time.Duration // of a round trip without a queue; 0: unknown
	InFlight int           // bytes
	Window   int           // most bytes in flight
}

// Measured returns what is known of a rail.
func (r *Rails) Measured(i int) Measured {
	m := &r.rails[i]
	if !m.isUp {
		return Measured{}
	}
	return Measured{Rate: uint64(8 * m.rate), Delay: m.base, InFlight: m.inFlight(), Window: r.window(m)}
}
