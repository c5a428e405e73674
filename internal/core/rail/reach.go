package rail

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Link is what there is to a peer in a class.
type Link uint8

// The states of a link.
const (
	NoLink    Link = iota // no connection
	Connected             // one, on which no session is agreed upon yet
	InSession             // one of the session
)

// Reach decides when a peer is called, and when it is lost. A connection that breaks loses nothing:
// the session goes on with the next one.
//
//	state    input                                   then
//	met      the connection ends                     away: called at once when something is wanted
//	away     a call fails, or a connection ends      called after a pause: RetryMin, doubled up to RetryMax; a
//	         that has not lasted for RetryMax        connection that has lasted makes it short again
//	away     nothing is wanted                       not called, and the time that it is away begins anew
//	away     for Within, without a connection        lost: what is wanted fails
//	lost     a call fails, or a connection ends      lost again, at once
//	unmet    a call fails, or a connection ends      away if it is Expected, else lost
//	any      InSession                               met
//
// It has to be stepped after every change, and at its deadline. If that is late by much, half of
// the time is left, once: a host that was halted itself goes on calling.
type Reach struct {
	Within             time.Duration // how long a peer may be away while something is wanted of it
	RetryMin, RetryMax time.Duration // pauses before calls
	Expected           bool          // the peer is known to be there, though it was not met yet

	link      Link
	made      core.Time // when the connection was
	isMet     bool      // a session was agreed upon, and the peer was not lost since
	isLost    bool      // it was lost, and not met since
	isSpared  bool      // it was stepped late once
	isAway    bool      // something is wanted, and it is not in session
	since     core.Time // that
	hasFailed bool      // a call, or a connection, since then
	isCalled  bool      // a call is under way
	next      core.Time // call
	pauses    int       // in a row
	deadline  core.Time
}

// DefaultReach calls after pauses of 10 to 200 ms.
func DefaultReach(within time.Duration) Reach {
	return Reach{Within: within, RetryMin: 10 * time.Millisecond, RetryMax: 200 * time.Millisecond, deadline: core.Never}
}

// Failed notes that a call has come to nothing.
func (r *Reach) Failed(now core.Time) {
	r.isCalled, r.hasFailed = false, true
	r.pause(now)
}

// Void notes that nothing will be reported of a call.
func (r *Reach) Void() { r.isCalled = false }

// Silent notes that nothing had come from the peer for some time when its last connection ended: the
// peer is away since then. Step follows.
func (r *Reach) Silent(now core.Time, silence time.Duration) {
	r.isAway, r.isSpared, r.since = true, true, now.Add(-silence)
}

func (r *Reach) pause(now core.Time) {
	r.next = now.Add(min(r.RetryMin<<min(r.pauses, 20), r.RetryMax))
	r.pauses++
}

// Step returns whether the peer is to be called, and whether it is lost: then what is wanted of it
// fails, and the session ends.
func (r *Reach) Step(now core.Time, link Link, isWanted bool) (call, isLost bool) {
	r.linked(now, link)
	late := r.deadline != core.Never && now.Sub(r.deadline) > r.RetryMax
	r.deadline = core.Never
	switch {
	case link == InSession:
		r.isMet, r.isLost, r.isAway, r.hasFailed = true, false, false, false
		return false, false
	case !isWanted:
		r.isAway, r.hasFailed = false, false
		return false, false
	case !r.isAway:
		r.isAway, r.isSpared, r.since = true, false, now
		if r.within() == 0 && !r.hasFailed {
			r.next, r.pauses = now, 0
		}
	case late && !r.isSpared:
		r.isSpared = true
		r.since = max(r.since, now.Add(-r.Within/2))
	}
	if link != NoLink {
		return false, false
	}
	within := r.within()
	if now.Sub(r.since) >= within && (within > 0 || r.hasFailed) {
		r.isMet, r.isLost, r.isAway, r.hasFailed = false, true, false, false
		return false, true
	}
	if !r.isCalled && now >= r.next {
		r.isCalled, call = true, true
	}
	if within > 0 {
		r.deadline = r.since.Add(within)
	}
	if !r.isCalled {
		r.deadline = r.deadline.Earlier(r.next)
	}
	return call, false
}

// linked takes what there is now.
func (r *Reach) linked(now core.Time, link Link) {
	switch {
	case r.link == NoLink && link != NoLink:
		r.made, r.isCalled = now, false
	case r.link != NoLink && link == NoLink:
		r.isCalled, r.hasFailed = false, true
		switch isShort := now.Sub(r.made) < r.RetryMax; {
		case !isShort:
			r.next, r.pauses = now, 0
		case r.pauses == 0:
			r.next, r.pauses = now, 1
		default:
			r.pause(now)
		}
	}
	r.link = link
}

// within returns for how long the peer may be away as things are.
func (r *Reach) within() time.Duration {
	if r.isMet || r.Expected && !r.isLost {
		return r.Within
	}
	return 0
}

// Deadline returns when Step is to be called.
func (r *Reach) Deadline() core.Time { return r.deadline }
