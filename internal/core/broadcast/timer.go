package broadcast

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// due returns when the reply of child i is overdue: the deeper the tree beneath
// it the later. Children are in falling order of that.
func (r *request) due(i int) core.Time {
	return r.sent.Add(time.Duration(r.route.children[i].Reach+1)*r.forLevel + r.wait)
}

// parentGivesUp returns when r's parent surely waits no more.
func (c *Core) parentGivesUp(r *request) core.Time {
	return r.since.Add(time.Duration(r.route.reach+1)*r.level + max(r.patience-r.late, r.wait) + c.cfg.RoundTrip)
}

// budget decides how long r's children are waited for, as it is about to be
// forwarded: a level of the tree as long as a message and its answer take, and as
// the root has taken before it forwards, or may take to pull bulk data. What
// others take beyond that is of P, so that nobody gives up before those beneath it
// do.
func (c *Core) budget(r *request) {
	spent := c.now.Sub(r.since)
	r.forLevel, r.behind = r.level, r.late
	if r.root {
		pull := float64(r.bulk) / float64(c.cfg.BulkRate) * float64(time.Second)
		r.forLevel = c.cfg.RoundTrip + spent + time.Duration(min(pull, float64(broadcastmsg.MaxLevel)))
		r.forLevel = min(r.forLevel, broadcastmsg.MaxLevel)
	} else {
		r.behind += max(0, spent-max(0, r.level-c.cfg.RoundTrip))
	}
	if missing := r.behind - r.patience; missing > 0 { // P does not cover it
		least := min(r.level, c.cfg.RoundTrip)
		r.forLevel = max(least, r.forLevel-missing/time.Duration(max(1, r.route.reach)))
		r.behind = r.patience
	}
	if !r.chosenWait {
		r.wait = r.patience - r.behind
	}
}

// rearm sets r's alarm to the next moment that means something. All calls
// together take a step a child.
func (c *Core) rearm(r *request) {
	for r.oldest >= 0 && r.children[r.oldest].state != waiting {
		r.oldest--
	}
	at := core.Never
	if r.oldest >= 0 {
		at = r.due(r.oldest)
	}
	if r.giveUp != 0 && r.phase < leaving {
		at = at.Earlier(r.giveUp)
	}
	c.timers.Set(&r.alarm, at)
}

// due lets pass what time has brought to r.
func (c *Core) due(r *request) {
	for r.oldest >= 0 && r.children[r.oldest].state == waiting && r.due(r.oldest) <= c.now {
		c.settle(r, r.oldest, verdict{status: broadcastmsg.Expired})
	}
	if r.giveUp != 0 && r.giveUp <= c.now {
		r.overdue, r.giveUp = true, 0
	}
	c.rearm(r)
	c.advance(r)
}
