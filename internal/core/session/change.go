package session

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Errors of a session.
var (
	// ErrLeft: an operation was started after the group's last barrier.
	ErrLeft = errors.New("session: the member is leaving the group")
	// ErrDecision: a decision cannot be that of this group.
	ErrDecision = errors.New("session: impossible decision")
)

// Report is what a frozen session holds, for the group's decision.
type Report struct {
	Base uint32       // oldest number not done
	Held wire.Numbers // done numbers of which this member is a sink, around Base
	Lack wire.Numbers // numbers not done whose data this member wants
}

// Decision is what the group has decided of the numbers in flight.
type Decision struct {
	Base uint32       // oldest number that any member had not done
	Held wire.Numbers // numbers from Base on whose result a sink holds: never reduced again
}

// Freeze stops the session, which takes nothing more of the old epoch, and
// returns what it holds.
func (s *Session) Freeze() Report {
	s.frozen = true
	r := Report{Base: s.base}
	from := s.base - s.cfg.Window
	r.Held.Init(from, int(2*s.cfg.Window))
	r.Lack.Init(from, int(2*s.cfg.Window))
	for n := from; n != s.created; n++ {
		c := s.at(n)
		switch {
		case !c.is(n) || !c.sink:
		case c.state == done:
			r.Held.Set(n)
		case c.size() > 0:
			r.Lack.Set(n)
		}
	}
	return r
}

// Enter begins an epoch by the group's decision. The error wraps ErrConfig or
// ErrDecision, and then nothing has changed.
func (s *Session) Enter(now core.Time, link Link, d Decision, out *Output) error {
	if err := link.Validate(s.cfg); err != nil {
		return err
	}
	if err := s.possible(d); err != nil {
		return err
	}
	s.filled = s.link.Offload()
	s.link, s.frozen = &link, false
	s.flow = newFlow(link.Window, s.timing.Queue)
	s.timer = newRepair(s.timing.over(link))
	s.base, s.next = d.Base, d.Base
	for n := d.Base; n != s.created; n++ {
		c, held := s.at(n), d.Held.Has(n)
		s.decided(c, held)
		before := n - link.Window
		c.credit = held && n-d.Base >= link.Window && (!d.Held.Has(before) || s.at(before).credit)
	}
	// Only now: to finish a chunk moves the base over all that is done, which
	// must not be what is reduced again.
	for n := d.Base; n != s.created; n++ {
		if c := s.at(n); c.state == flying && d.Held.Has(n) {
			s.finish(now, c, nil, 0, s.filled, out)
		}
	}
	s.advance(now)
	s.flow.pause(s.next)
	s.flight, s.demand.bound = 0, 0
	s.timer.sent(now, link.Idle)
	return nil
}

// possible reports what is wrong with d. Every number from its base on must
// still be here; a result that a member holds counts as held; and what is held
// was contributed by all.
func (s *Session) possible(d Decision) error {
	back := int32(s.base - d.Base)
	if back < 0 || uint32(back) > s.cfg.Window || s.created-d.Base > 2*s.cfg.Window {
		return fmt.Errorf("%w: it goes back from number %d to %d, window %d", ErrDecision, s.base, d.Base, s.cfg.Window)
	}
	for n := d.Base; n != s.created; n++ {
		switch c := s.at(n); {
		case !c.is(n):
			return fmt.Errorf("%w: number %d, which it goes back to, never was", ErrDecision, n)
		case c.state == done && c.sink && !d.Held.Has(n):
			return fmt.Errorf("%w: number %d is to be reduced again, and its result is here", ErrDecision, n)
		}
	}
	last := s.created - 1
	d.Held.Each(func(n uint32) {
		if wire.Newer(n, last) {
			last = n
		}
	})
	if last != s.created-1 {
		return fmt.Errorf("%w: number %d counts as held, and was never contributed to here", ErrDecision, last)
	}
	return nil
}

// decided puts c into the state in which it begins an epoch. One that is held
// and of whose result nothing is missing here is flying, to be finished.
func (s *Session) decided(c *chunk, held bool) {
	c.sent, c.care = false, care{}
	switch {
	case held && c.state == done:
	case held && c.sink && c.size() > 0:
		c.state = awaited
	default:
		if c.state == done {
			s.counters.Again++
		}
		c.state = flying
	}
}

// Fill takes the result of number n, with its exponent, from another member and
// reports whether it was awaited.
func (s *Session) Fill(now core.Time, n uint32, data []byte, exponent int8, out *Output) bool {
	if s.frozen || wire.Newer(s.base, n) || !wire.Newer(s.created, n) {
		return false
	}
	c := s.at(n)
	if c.state != awaited || len(data) != c.size() || exponent != 0 && !c.op.block {
		return false
	}
	s.counters.Filled++
	s.finish(now, c, data, exponent, s.filled, out)
	return true
}

// Kept returns the data of number n's result and its exponent, if this member
// still has it. The slice is valid until the session's next call.
func (s *Session) Kept(n uint32) (data []byte, exponent int8, ok bool) {
	c := s.at(n)
	if !c.is(n) || c.state != done || !c.sink && !c.source || c.size() == 0 {
		return nil, 0, false
	}
	return c.kept, c.exponent, true
}

// FinishLast ends the last barrier, because another member has ended it, and
// reports whether it was this member's to end.
func (s *Session) FinishLast(now core.Time, out *Output) bool {
	if !s.last || s.base == s.created {
		return false
	}
	c := s.at(s.base)
	if c.given || !c.op.Last {
		return false
	}
	s.finish(now, c, nil, 0, s.link.Offload(), out)
	return true
}

// Left reports whether the last barrier is done.
func (s *Session) Left() bool { return s.last && s.base == s.fresh }
