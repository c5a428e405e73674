package member

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// health is the local health of Lifeguard (Dadgar, Phillips and Currey, DSN
// 2018): the better a node is served itself, the sooner it suspects others. The
// score rises when the core is stepped late, and when neither a suspect nor
// those asked to probe it answer; it falls with time.
type health struct {
	score int
	since core.Time     // of the last change
	late  time.Duration // the most that a step was late by, not long ago
	slept core.Time     // when that was
}

// recovery is how long a step of the score lasts.
const recovery = time.Second

func (h *health) at() core.Time {
	if h.score == 0 {
		return core.Never
	}
	return h.since.Add(recovery)
}

func (h *health) worse(c *Core) {
	h.score, h.since = min(h.score+1, c.cfg.Health), c.now
}

func (h *health) decay(now core.Time) {
	if h.score > 0 && h.at() <= now {
		h.score, h.since = h.score-1, now
	}
}

// overslept gives everybody the time that the core was not stepped for: what
// came meanwhile may still lie before it.
func (c *Core) overslept(now core.Time) {
	late := now.Sub(c.deadline)
	if first := !c.stepped; first || c.deadline == core.Never {
		c.stepped = true
		return // a driver begins when it likes
	}
	if h := &c.health; late > h.late || now.Sub(h.slept) > recovery {
		h.late, h.slept = max(late, 0), now
	}
	if late < c.cfg.Heartbeat/2 {
		return
	}
	c.now = now
	c.health.worse(c)
	for i := range c.links {
		if l := &c.links[i]; l.watched() && !l.doubted {
			l.due = l.due.Add(late)
		}
	}
	for i := range c.doubts {
		c.doubts[i].end = c.doubts[i].end.Add(late)
	}
}
