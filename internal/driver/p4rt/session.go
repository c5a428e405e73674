package p4rt

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// Election is a controller's id in the election of the primary. Ids are
// compared as one number of 128 bits; the highest wins.
type Election struct{ High, Low uint64 }

// String returns the id, in decimal if it is below 1<<64.
func (e Election) String() string {
	if e.High == 0 {
		return fmt.Sprintf("%d", e.Low)
	}
	return fmt.Sprintf("%#x%016x", e.High, e.Low)
}

func (e Election) proto() *p4v1.Uint128 { return &p4v1.Uint128{High: e.High, Low: e.Low} }

// A Kind is what an Event reports.
type Kind uint8

// The kinds of events.
const (
	// Lost: there is no session with the target. The client goes on to try; the
	// event comes again only if the reason is another.
	Lost Kind = iota + 1
	// Backup: another controller is primary, and writing is refused. When it
	// leaves, an event Primary follows.
	Backup
	// Primary: this controller may write. Err is nil if the target holds the
	// program and, as far as this client has seen before, still holds what was
	// written. It wraps ErrNoPipeline or ErrOtherPipeline where a Push is
	// needed, and ErrRestarted where entries and registers are lost that this
	// client has known. The event comes again when that changes.
	Primary
	// Fault: the target reported an error, or sent what cannot be understood; the
	// session goes on.
	Fault
)

var kindNames = [...]string{Lost: "lost", Backup: "backup", Primary: "primary", Fault: "fault"}

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Event is what became of the session.
type Event struct {
	Kind    Kind
	Session uint64   // counts the sessions that had a stream, from 1; 0: there was none yet
	Leader  Election // of Backup: the highest id that the target knows
	// Cookie is, of Primary, that of the push that the target holds: as long as
	// it is the same the target has not lost its registers. 0: there is none,
	// or it is another program's.
	Cookie uint64
	Count  uint64 // of Fault: how many the event stands for
	Err    error  // why; see Kind
}

// A phase is where a session is.
type phase uint8

const (
	apart    phase = iota // there is no stream
	electing              // the target has not reported who is primary
	backup
	checking // this is the primary; what the target holds is not known yet
	primary
	phases
)

// A signal is what can happen to a session.
type signal uint8

const (
	opened signal = iota // there is a stream
	won                  // the target reports that this controller is primary
	outbid               // the target reports that another is
	looked               // it is known what the target holds
	ended                // the stream has ended, or could not be had
	signals
)

// transitions has where each signal leads. A signal that a phase does not
// expect changes nothing: a look may end after the election was lost.
var transitions = [phases][signals]phase{
	apart:    {opened: electing, won: apart, outbid: apart, looked: apart, ended: apart},
	electing: {opened: electing, won: checking, outbid: backup, looked: electing, ended: apart},
	backup:   {opened: backup, won: checking, outbid: backup, looked: backup, ended: apart},
	checking: {opened: checking, won: checking, outbid: backup, looked: primary, ended: apart},
	primary:  {opened: primary, won: primary, outbid: backup, looked: primary, ended: apart},
}

// holding is what a target holds.
type holding struct {
	any    bool   // it holds a program
	cookie uint64 // 0 where there is none
}

// session is the state machine of a client's sessions with its target.
type session struct {
	program uint32 // upper half of the cookies of the program's pushes

	phase  phase
	number uint64
	leader Election // of backup
	held   holding  // as last seen by a primary
	known  uint64   // cookie of the push whose loss would be news; 0: none
	why    error    // the session is apart
}

// open begins a session.
func (s *session) open() {
	s.phase = transitions[s.phase][opened]
	s.number++
}

// elected takes the outcome of an election, and reports whether what the target
// holds is to be looked at now.
func (s *session) elected(first bool, leader Election) (events []Event, look bool) {
	was, signal := s.phase, outbid
	if first {
		signal = won
	}
	s.phase = transitions[was][signal]
	if s.phase == backup && (was != backup || s.leader != leader) {
		s.leader = leader
		events = []Event{{Kind: Backup, Session: s.number, Leader: leader, Err: s.refusal()}}
	}
	return events, s.phase == checking
}

// look takes what the target holds.
func (s *session) look(held holding) []Event {
	was := s.phase
	s.phase = transitions[was][looked]
	if s.phase != primary || was == primary && s.held == held {
		return nil
	}
	s.held = held
	e := Event{Kind: Primary, Session: s.number, Err: s.lack()}
	if s.ours(held) {
		e.Cookie = held.cookie
	}
	if s.known != 0 && s.known != held.cookie {
		e.Err = ErrRestarted
		if lack := s.lack(); lack != nil {
			e.Err = fmt.Errorf("%w; %w", ErrRestarted, lack)
		}
	}
	s.known = e.Cookie
	return []Event{e}
}

// push takes that this client has pushed the program.
func (s *session) push(cookie uint64) {
	if s.phase == primary {
		s.held, s.known = holding{any: true, cookie: cookie}, cookie
	}
}

// end takes why a session has ended, or why there was none.
func (s *session) end(why error) []Event {
	reported := s.phase == apart && s.why != nil && s.why.Error() == why.Error()
	s.phase, s.why = transitions[s.phase][ended], why
	if reported {
		return nil
	}
	return []Event{{Kind: Lost, Session: s.number, Err: why}}
}

// ours reports whether what the target holds is this program.
func (s *session) ours(h holding) bool {
	return h.any && h.cookie != 0 && uint32(h.cookie>>32) == s.program
}

// refusal returns why a controller in this phase may not write, or nil.
func (s *session) refusal() error {
	switch s.phase {
	case apart:
		if s.why != nil {
			return s.why
		}
		return fmt.Errorf("%w: not connected yet", ErrUnavailable)
	case electing, checking:
		return fmt.Errorf("%w: the session has only begun", ErrUnavailable)
	case backup:
		return fmt.Errorf("%w: the target knows the id %v", ErrNotPrimary, s.leader)
	default:
		return nil
	}
}

// lack returns why there is nothing to write to though this is the primary, or
// nil.
func (s *session) lack() error {
	switch {
	case !s.held.any:
		return ErrNoPipeline
	case s.held.cookie == 0:
		return fmt.Errorf("%w: it has no cookie", ErrOtherPipeline)
	case !s.ours(s.held):
		return fmt.Errorf("%w: it has the cookie %#x, and this program's begin with %#08x", ErrOtherPipeline, s.held.cookie, s.program)
	}
	return nil
}
