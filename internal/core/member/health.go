package member

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// health is the local health of Lifeguard (Dadgar, Phillips and Currey, DSN
// 2018): the better a node is served itself, the sooner it suspects others. The
// score rises when the core is stepped late, and when neither a probed node nor
// those asked to probe it answer; it falls with time.
type health struct {
	score int
	since core.Time     // of the last change
	late  time.Duration // the most that a step was late by, not long ago
	slept core.Time     // when that was

	accused [8]accusation // the last ones
	count   int           // of them, ever
	wrong   int           // refuted ones that are held against the core, less than mostWitnesses
	erred   core.Time     // when that was counted last
}

// accusation is a suspicion that the core has reported.
type accusation struct {
	key     gossip.Key
	version Version
	at      core.Time
}

// A node that refutes an accusation within so long was accused wrongly, and that
// is forgiven after so long.
const forgiven = 10 * time.Second

// mostWitnesses bounds what a core wants that was wrong often.
const mostWitnesses = 4

// accuses notes an accusation of the core's.
func (h *health) accuses(now core.Time, key gossip.Key, v Version) {
	h.accused[h.count%len(h.accused)] = accusation{key, v, now}
	h.count++
}

// hears takes the version that a node is alive at. It may refute the core.
func (h *health) hears(now core.Time, key gossip.Key, v Version) {
	for k := range h.accused[:min(h.count, len(h.accused))] {
		a := &h.accused[k]
		if a.key == key && a.version.Incarnation == v.Incarnation && a.version.Before(v) && now.Sub(a.at) < forgiven {
			h.wrong, h.erred = min(h.held(now)+1, mostWitnesses-1), now
			*a = accusation{}
		}
	}
}

// held returns how many wrong accusations are held against the core: one less
// for each time of forgiven.
func (h *health) held(now core.Time) int {
	return max(0, h.wrong-int(now.Sub(h.erred)/forgiven))
}

// witnesses returns how many others have to find a node silent, too, before the
// core accuses it: who was wrong often loses its voice, and gets it back in time.
func (h *health) witnesses(now core.Time) int { return 1 + h.held(now) }

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
		if l := &c.links[i]; l.watched() && !l.probed {
			l.due = l.due.Add(late)
		}
	}
	for i := range c.suspected {
		c.suspected[i].since, c.suspected[i].end = c.suspected[i].since.Add(late), c.suspected[i].end.Add(late)
	}
}
