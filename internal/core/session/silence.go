package session

import (
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// silence is what a member knows of the time since the last sign that the tree
// works: any packet of the parent but Lost. A Lost is a sign for a member that is
// not its parent's lowest child: only probes of the lowest are passed on, and
// what the parent says to others may be old.
type silence struct {
	last   core.Time // of the last sign; 0: there was none in this epoch
	since  core.Time // when the first probe for the oldest chunk was sent after it
	probes int       // for the oldest chunk, since then; 0: nothing is missed
	said   bool      // the parent has answered Lost since then
}

// sign notes a sign that the tree works.
func (q *silence) sign(now core.Time) {
	q.last = now
	q.end()
}

// end ends a silence: nothing is missed any more.
func (q *silence) end() { q.probes, q.said = 0, false }

// asked notes a probe for the oldest chunk.
func (q *silence) asked(now core.Time) {
	if q.probes == 0 {
		q.since = now
	}
	q.probes++
}

// bound returns the length of a silence after which the tree counts as lost. It
// is a multiple of the time after which an answer is missed, which follows the
// queues; before the first result of an epoch nothing is known of them.
func (r *repair) bound() time.Duration {
	if r.least == 0 {
		return 2 * r.timing.Silence
	}
	return max(r.timing.Silence, 4*r.timeout())
}

// shortest returns the longest wait between two probes for the oldest chunk: so
// many fit into a silence that they are not all lost by chance.
func (s *Session) shortest(most time.Duration) time.Duration {
	if s.link.Probes == 0 || s.timing.Silence == 0 {
		return most
	}
	return min(most, max(s.timer.bound()/time.Duration(s.link.Probes), s.timing.Min))
}

// isLost reports whether the tree counts as lost: enough probes over enough time
// were not answered.
func (s *Session) isLost(now core.Time) bool {
	q := &s.timer.silence
	return s.link.Probes > 0 && q.probes >= s.link.Probes && now.Sub(q.since) >= s.timer.bound()
}

// lose reports the tree as lost and stops speaking to it; Enter goes on.
func (s *Session) lose(now core.Time, out *Output) {
	q := &s.timer.silence
	out.Loss = &Loss{
		Epoch: s.link.Epoch, Parent: s.link.Parent, Chunk: s.base, Said: q.said, Probes: q.probes, Over: now.Sub(q.since),
	}
	if q.last != 0 {
		out.Loss.Quiet = now.Sub(q.last)
	}
	s.frozen = true
}

// String says, for people, which link is lost, and what shows it.
func (l *Loss) String() string {
	what := "does not answer"
	if l.Said {
		what = "has no path to the root: its parent, or one above, does not answer"
	}
	text := fmt.Sprintf("the switch at %v %s (%d probes in %v", l.Parent, what, l.Probes, l.Over.Round(time.Millisecond))
	if l.Quiet == 0 {
		return text + ", no answer before)"
	}
	return fmt.Sprintf("%s, the last answer %v ago)", text, l.Quiet.Round(time.Millisecond))
}
