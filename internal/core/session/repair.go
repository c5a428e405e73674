package session

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// gap is how many packets later than a chunk's last one a contribution must
// have been sent whose result shows that the chunk is behind: fewer are common
// reordering.
const gap = 3

// care is what a member has done about one chunk in flight. Contributions and
// probes take turns, in the order in which they are sent.
type care struct {
	reported uint64    // turn of the last contribution; see repair.newest
	spoken   uint64    // turn of the last contribution or probe
	asked    core.Time // when the last probe was sent; 0: none was
	due      core.Time // of the next probe; core.Never: not before it is behind or overdue
	had      uint64    // results that the member had when due was last set
	tries    int32     // probes since the parent's last answer
	heards   int32     // answers heard since the last contribution
	behind   bool      // results show that it is late
	again    bool      // it was contributed again
	astray   bool      // it was asked for, and does not count as on its way
}

// repair is what a member knows of the way to the root and back, and when it
// asks for what.
type repair struct {
	timing Timing

	turn   uint64 // of the last packet
	newest uint64 // newest turn of a contribution whose result is here

	at       core.Time // probe for the oldest chunk, if nothing reports it before; core.Never: nothing is in flight
	due      core.Time // next probe
	repaired bool      // the last oldest chunk had to be asked for
	silence

	// Smoothed round trip and its variation (RFC 6298), from answers to
	// probes that were sent once.
	srtt, rttvar time.Duration

	// The fastest of the last results, from sending to result, in two spans of
	// samples each. A window may take longer than a round trip; the slower
	// results report late members and losses, and not of that.
	before, fastest time.Duration // 0: no sample
	samples         int
	least           time.Duration // of all results of the epoch; 0: no sample
	mean            time.Duration // of the last results, smoothed

	idleAt core.Time // next idle probe
}

func newRepair(t Timing) repair {
	return repair{timing: t, at: core.Never, due: core.Never, idleAt: core.Never}
}

// span is how many results make one span of samples.
const span = 64

// took notes how long an undisturbed chunk took.
func (r *repair) took(d time.Duration) {
	d = min(max(d, 1), r.timing.Max)
	if r.fastest == 0 || d < r.fastest {
		r.fastest = d
	}
	if r.least == 0 || d < r.least {
		r.least, r.mean = d, max(r.mean, d)
	}
	r.mean += (d - r.mean) / 8
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

// crowd is what a way without a queue may take more than the fastest result.
const crowd = time.Millisecond

// queue judges how the last results compare with the fastest one, and with the
// delay that the window may bring about.
func (r *repair) queue(limit time.Duration) queue {
	switch most := r.least + max(r.least, crowd); {
	case r.pace() > max(most, limit):
		return standing
	case r.mean > most:
		return passing
	}
	return short
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

// tail returns the time after which an answer is missed where no later result
// can show it: that of a tail loss probe (RFC 8985, 7.2).
func (r *repair) tail() time.Duration { return max(2*r.mean, 4*r.timing.Gap) }

// wait returns the time to the next probe for a chunk that was asked for n
// times to no avail: it doubles. The first quick waits are as short as what a
// probe brings about takes, because that may be lost, too.
func (r *repair) wait(n, quick int32) time.Duration {
	if n = max(n, 1); n <= quick && r.srtt > 0 && r.pace() > 0 {
		q := max(r.srtt+4*r.rttvar, r.pace()) + r.patience()
		return min(q<<(n-1), r.timeout())
	}
	return r.timeout() << min(n-1, 16)
}

// progress starts the wait for a new oldest chunk, c. Where the one before had
// to be asked for, those behind it were often lost with it: then the wait
// counts from when c was sent, and is short for those that are overdue. It is
// not over at once, because a whole window of results may be on its way after a
// pause.
func (r *repair) progress(now core.Time, c *chunk, isTail bool) {
	r.at = now.Add(r.timeout())
	switch soon := now.Add(r.patience()); {
	case r.repaired:
		r.at = max(soon, c.sentAt.Add(r.timeout()))
	case isTail:
		r.at = r.at.Earlier(max(soon, c.sentAt.Add(r.tail())))
	}
	r.repaired = false
	r.due = r.due.Earlier(r.at)
}

// deadline returns when there is something to do.
func (r *repair) deadline() core.Time { return r.due.Earlier(r.idleAt) }

// rest stops the timer: nothing is in flight.
func (r *repair) rest() {
	r.at, r.due, r.repaired = core.Never, core.Never, false
	r.silence.end()
}

// sent notes that a packet went out, which renews the leases.
func (r *repair) sent(now core.Time, idle time.Duration) {
	r.idleAt = core.Never
	if idle > 0 {
		r.idleAt = now.Add(idle)
	}
}

func (r *repair) measure(rtt time.Duration) {
	if r.srtt == 0 {
		r.srtt, r.rttvar = rtt, rtt/2
		return
	}
	r.rttvar += ((r.srtt - rtt).Abs() - r.rttvar) / 4
	r.srtt += (rtt - r.srtt) / 8
}

// reported notes that c is contributed now.
func (s *Session) reported(now core.Time, c *chunk) {
	s.timer.turn++
	c.sentAt = now
	c.care = care{reported: s.timer.turn, spoken: s.timer.turn, asked: c.care.asked, again: c.care.reported > 0, due: core.Never}
	s.flight++
	s.timer.sent(now, s.link.Idle)
}

// wanted contributes c again.
func (s *Session) wanted(now core.Time, c *chunk, out *Output) {
	s.counters.Resent++
	s.answered(now, c)
	if !c.care.astray {
		s.flight--
	}
	s.contribute(now, c, out)
	s.flow.lost(now, c.number, s.next, s.timer.queue(s.flow.limit(s.flow.size)))
	s.later(now, c, s.timer.wait(1, 1))
}

// hasty is how many answers Heard are waited for shortly, and taken for losses
// elsewhere rather than for a late member.
const hasty = 3

// heard notes that c waits for others, and doubles the wait. Of the chunks that
// wait for a late member only the oldest is asked for again.
func (s *Session) heard(now core.Time, c *chunk) {
	if c.care.tries == 0 {
		return // the late answer to a probe that was given up, or a duplicate
	}
	s.answered(now, c)
	c.care.heards++
	wait := min(s.timer.wait(c.care.heards, hasty), s.timer.timing.Quiet)
	if s.link.Index == 0 && int(c.care.heards) <= s.link.Probes {
		wait = s.shortest(wait) // so that switches soon know whether their parents live
	}
	s.later(now, c, wait)
	if c.care.heards > hasty && c.number != s.base {
		c.care.due = core.Never
	}
}

// answered notes that the parent has said something of c.
func (s *Session) answered(now core.Time, c *chunk) {
	if c.care.tries == 1 {
		s.timer.measure(max(now.Sub(c.care.asked), 1))
	}
	c.care.tries = 0
}

// landed notes that c's result is here.
func (s *Session) landed(now core.Time, c *chunk) {
	r := &s.timer
	r.newest = max(r.newest, c.care.reported)
	var d time.Duration
	switch {
	case c.care.asked == 0:
		d = max(now.Sub(c.sentAt), 1)
		r.took(d)
	case c.number == s.base:
		r.repaired = c.care.again || now.Sub(c.care.asked) <= r.timeout()
	}
	if !c.care.astray {
		s.flight--
	}
	s.flow.landed(now, c.number, s.next, d)
}

// repair asks for what is late: for every chunk that results show to be behind,
// and for the oldest one when there was no sign of it for long. Where nothing is
// late, it renews the leases.
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
		s.timer.progress(now, oldest, s.isTail(oldest))
	}
	if oldest.care.due == core.Never && now >= s.timer.at {
		oldest.care.due = now
	}
	s.timer.due = s.askAll(now, out)
	if oldest.care.due == core.Never {
		s.timer.due = s.timer.due.Earlier(s.timer.at)
	}
	if !s.frozen {
		s.idle(now, out) // the wait for a late member may be longer than a lease
	}
}

// isTail reports whether everything was sent, and results of c's operation are
// here: then no member is late to begin it, and no later result is to come that
// would show that c is behind.
func (s *Session) isTail(c *chunk) bool {
	return (s.next == s.fresh || s.waits) && c.is(s.base) && c.op.missing < c.op.chunks
}

// askAll asks for every chunk whose time has come, and returns the time of the
// next.
func (s *Session) askAll(now core.Time, out *Output) core.Time {
	next := core.Never
	for n := s.base; n != s.next; n++ {
		c := s.at(n)
		if !c.pending() || !c.sent {
			continue
		}
		if !s.watch(now, &c.care) && c.care.asked == 0 && c.care.due == core.Never {
			break // what follows was sent later
		}
		if now >= c.care.due {
			if n == s.base && s.isLost(now) {
				s.lose(now, out)
				return core.Never
			}
			s.ask(now, c, out)
		}
		next = next.Earlier(c.care.due)
	}
	return next
}

// watch brings the next probe for a chunk forward, and reports whether the chunk
// is behind: the result of a contribution is here that was sent after its last
// packet (RFC 8985 finds losses so). The wait that is left lets packets pass that
// only took another queue, as between two processors of one machine. A chunk
// that was asked for is asked for again soon after any result, which shows that
// the group is not waiting for a late member.
func (s *Session) watch(now core.Time, k *care) bool {
	r := &s.timer
	behind := k.spoken+gap <= r.newest
	if behind && !k.behind {
		k.behind = true
		k.due = k.due.Earlier(now.Add(r.patience()))
	}
	if k.asked != 0 && k.had != s.counters.Results {
		k.had, k.heards = s.counters.Results, 0
		k.due = k.due.Earlier(now.Add(r.wait(1, 1)))
	}
	return behind
}

// Reconnected has the next Step ask for all chunks in flight: a stream of the tree
// of hosts is new, and what was on its way in the one before may be lost.
func (s *Session) Reconnected(now core.Time) {
	if s.frozen || s.link.Offload() {
		return
	}
	for n := s.base; n != s.next; n++ {
		if c := s.at(n); c.pending() && c.sent {
			c.care.due, s.timer.due = now, now
		}
	}
}

// later has c asked for after a while.
func (s *Session) later(now core.Time, c *chunk, d time.Duration) {
	c.care.due, c.care.had = now.Add(d), s.counters.Results
}

// ask sends a probe for c.
func (s *Session) ask(now core.Time, c *chunk, out *Output) {
	s.counters.Probes++
	h := s.header(wire.Probe, c.number)
	s.sendProbe(&h, out)
	s.timer.sent(now, s.link.Idle)
	s.timer.turn++
	k := &c.care
	k.tries++
	k.spoken, k.asked, k.behind = s.timer.turn, now, false
	if !k.astray {
		k.astray = true
		s.flight--
	}
	most := s.timer.timing.Max
	if c.number == s.base {
		s.timer.silence.asked(now)
		most = s.shortest(most)
	}
	s.later(now, c, min(s.timer.wait(k.tries, 1), most))
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
		h := s.header(wire.Probe, 0)
		h.Flags = wire.Idle
		if s.isSettled && s.base-s.settled < 1<<30 { // of long ago, it would say something else
			h.SetSettled(s.settled)
		}
		s.sendProbe(&h, out)
		s.timer.sent(now, s.link.Idle)
	}
}

func (s *Session) sendProbe(h *wire.Header, out *Output) {
	send := Send{To: s.link.Parent}
	h.Put(send.Head[:])
	out.Sends = append(out.Sends, send)
}
