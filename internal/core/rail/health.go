package rail

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Sample is what is known of a path when its health is judged.
type Sample struct {
	// Waits: something that was sent, be it a ping, has no acknowledgement yet.
	Waits bool
	// Since is when the oldest of that was sent, or when something was last acknowledged,
	// whichever is later.
	Since core.Time
	// Heard is when anything was last received on the path, or the path was made.
	Heard core.Time
}

// Verdict is what is held of a path.
type Verdict uint8

// The verdicts.
const (
	Alive   Verdict = iota
	Suspect         // silent for half of the time: a ping is due, if none is on its way
	Dead            // silent for too long, while another path of the peer is alive
)

// Health judges the paths to one peer. A path is dead only if another one lives: where all
// are silent, the peer is. It has to be asked often: time in which it was not asked is not
// held against a path, as what came in meanwhile may not have been read either; but on a
// machine where it is asked late again and again, a path is found dead, too.
type Health struct {
	Every  time.Duration // how often it is asked at least, and idle paths have a ping
	Within time.Duration // how long a path may owe an acknowledgement

	isAsked bool
	last    core.Time // when it was asked
	from    core.Time // silence counts from here
}

// DefaultHealth finds a path that has died within 300 ms, though nothing is sent on it.
func DefaultHealth() Health {
	return Health{Every: 50 * time.Millisecond, Within: 200 * time.Millisecond}
}

// Judge appends a verdict on each sample, and returns when it wants to be asked next.
func (h *Health) Judge(now core.Time, samples []Sample, verdicts []Verdict) ([]Verdict, core.Time) {
	isLate := h.isAsked && now.Sub(h.last) > 2*h.Every && now.Sub(h.from) > 2*h.Within
	if !h.isAsked || isLate {
		h.from = now
	}
	h.isAsked, h.last = true, now
	next := now.Add(h.Every)
	for i := range samples {
		s := &samples[i]
		v := Alive
		if s.Waits {
			since := max(s.Since, h.from)
			switch silent := now.Sub(since); {
			case silent >= h.Within:
				v = Suspect
				if h.heardElse(now, samples, i, since) {
					v = Dead
				}
			case silent >= h.Within/2:
				v = Suspect
				next = next.Earlier(since.Add(h.Within))
			}
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, next
}

// heardElse reports whether another path than i lives: something came in on it lately and
// after i fell silent, and it owes nothing for too long. So one path is never dead at least.
func (h *Health) heardElse(now core.Time, samples []Sample, i int, since core.Time) bool {
	for j := range samples {
		s := &samples[j]
		owes := s.Waits && now.Sub(max(s.Since, h.from)) >= h.Within
		if j != i && s.Heard > since && now.Sub(s.Heard) < h.Within && !owes {
			return true
		}
	}
	return false
}
