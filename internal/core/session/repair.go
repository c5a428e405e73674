package session

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// gap is how many numbers a result must be ahead of the oldest chunk for the
// latter to be asked for early: fewer are common reordering.
const gap = 3

// repair is the timer of the oldest chunk in flight.
type repair struct {
	timing Timing

	at     core.Time // next probe, or end of the wait for an answer
	asked  core.Time // when the last probe for the present chunk was sent; 0: none was
	tries  int       // probes sent since the last answer
	period time.Duration
	hasty  bool // a gap has brought the present chunk's probe forward
	wanted bool // the present chunk was sent again

	// Smoothed round trip and its variation (RFC 6298), from answers to
	// probes that were sent once.
	srtt, rttvar time.Duration

	// The fastest of the last results, from sending to result, in two spans of
	// samples each. A window may take longer than a round trip; the slower
	// results tell of late members and losses, and not of that.
	before, fastest time.Duration // 0: no sample
	samples         int

	idleAt core.Time // next idle probe
}

func newRepair(t Timing) repair {
	return repair{timing: t, at: core.Never, idleAt: core.Never}
}

// span is how many results make one span of samples.
const span = 64

// took notes how long an undisturbed chunk took.
func (r *repair) took(d time.Duration) {
	d = min(max(d, 1), r.timing.Max)
	if r.fastest == 0 || d < r.fastest {
		r.fastest = d
	}
	if r.samples++; r.samples == span {
		r.before, r.fastest, r.samples = r.fastest, 0, 0
	}
}

// pace returns the time that the fastest of the last results took, 0 without
// any.
func (r *repair) pace() time.Duration {
	if r.fastest == 0 || r.before > 0 && r.before < r.fastest {
		return r.before
	}
	return r.fastest
}

// timeout returns the time after which an answer is missed.
func (r *repair) timeout() time.Duration {
	t := r.timing.Initial
	if r.srtt > 0 {
		t = r.srtt + 4*r.rttvar
	}
	return min(max(t, 2*r.pace(), r.timing.Min), r.timing.Max)
}

// patience returns how long a chunk may be behind later ones.
func (r *repair) patience() time.Duration { return max(r.timing.Gap, r.pace()/4) }

// progress starts the wait for a new oldest chunk, which was sent at the
// moment sent. Where the one before had to be asked for, those behind it were
// often lost with it: then the wait counts from sent, and is short for those
// that are overdue. It is not over at once, because a whole window of results
// may be on its way after a pause.
func (r *repair) progress(now, sent core.Time) {
	repaired := r.wanted || r.tries > 0 || r.asked > 0 && now.Sub(r.asked) <= r.timeout()
	r.period = r.timeout()
	r.tries, r.hasty, r.wanted, r.asked = 0, false, false, 0
	r.at = now.Add(r.period)
	if repaired {
		r.at = max(now.Add(r.patience()), sent.Add(r.period))
	}
}

// gap brings the probe forward, once, when later results have come. The wait
// that is left lets packets pass that only took another queue, as between two
// processors of one machine (RFC 8985 waits so, too).
func (r *repair) gap(now core.Time) {
	if !r.hasty && r.tries == 0 {
		r.hasty = true
		r.at = r.at.Earlier(now.Add(r.patience()))
	}
}

// again starts the wait anew after the chunk was asked for and sent again.
func (r *repair) again(now core.Time) {
	r.answered(now)
	r.wanted = true
	r.at = now.Add(r.timeout())
}

// deadline returns when the timer is due.
func (r *repair) deadline() core.Time {
	return r.at.Earlier(r.idleAt)
}

// rest stops the timer: nothing is in flight.
func (r *repair) rest() {
	r.at, r.tries, r.hasty, r.wanted, r.asked = core.Never, 0, false, false, 0
}

// sent notes that a packet went out, which renews the leases.
func (r *repair) sent(now core.Time, idle time.Duration) {
	r.idleAt = core.Never
	if idle > 0 {
		r.idleAt = now.Add(idle)
	}
}

// probed notes a probe and when to miss its answer: each further one without
// an answer is waited for twice as long.
func (r *repair) probed(now core.Time) {
	r.asked = now
	r.at = now.Add(min(r.timeout()<<min(r.tries, 16), r.timing.Max))
	r.tries++
}

// answered notes that the parent has said something of the oldest chunk.
func (r *repair) answered(now core.Time) {
	if r.tries == 1 {
		r.measure(max(now.Sub(r.asked), 1))
	}
	r.tries = 0
}

// heard doubles the period once for each answer.
func (r *repair) heard(now core.Time) {
	if r.tries == 0 {
		return // the late answer to a probe that was given up, or a duplicate
	}
	r.answered(now)
	r.period = min(2*r.period, r.timing.Quiet)
	r.at = now.Add(r.period)
}

func (r *repair) measure(rtt time.Duration) {
	if r.srtt == 0 {
		r.srtt, r.rttvar = rtt, rtt/2
		return
	}
	r.rttvar += ((r.srtt - rtt).Abs() - r.rttvar) / 4
	r.srtt += (rtt - r.srtt) / 8
}

// repair probes for the oldest chunk when that is due, or for nothing, to renew
// the leases.
func (s *Session) repair(now core.Time, out *Output) {
	if s.frozen {
		return
	}
	oldest := s.at(s.base)
	if s.base == s.created || !oldest.pending() || !oldest.sent {
		s.timer.rest()
		s.idle(now, out)
		return
	}
	if s.timer.at == core.Never {
		s.timer.progress(now, oldest.sentAt)
	}
	if int32(s.top-1-s.base) >= gap {
		s.timer.gap(now)
	}
	if now < s.timer.at {
		s.idle(now, out) // the wait for a late member may be longer than a lease
		return
	}
	if s.link.Probes > 0 && s.timer.tries >= s.link.Probes {
		s.lose(s.base, false, out)
		return
	}
	s.counters.Probes++
	s.probe(s.base, 0, out)
	s.timer.probed(now)
	s.timer.sent(now, s.link.Idle)
}

// idle renews the leases along the tree when nothing was sent for a while.
func (s *Session) idle(now core.Time, out *Output) {
	if s.link.Idle <= 0 {
		return
	}
	if s.timer.idleAt == core.Never {
		s.timer.sent(now, s.link.Idle)
	}
	if now >= s.timer.idleAt {
		s.probe(s.base, wire.Idle, out)
		s.timer.sent(now, s.link.Idle)
	}
}

func (s *Session) probe(n uint32, flags wire.Flags, out *Output) {
	h := s.header(wire.Probe, n)
	h.Flags = flags
	send := Send{To: s.link.Parent}
	h.Put(send.Head[:])
	out.Sends = append(out.Sends, send)
}

// lose reports the tree as lost and stops speaking to it; Enter goes on.
func (s *Session) lose(n uint32, said bool, out *Output) {
	if s.link.Probes == 0 {
		return // a link that is never lost
	}
	out.Loss = &Loss{Epoch: s.link.Epoch, Chunk: n, Said: said}
	s.frozen = true
}
