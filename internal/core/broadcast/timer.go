package broadcast

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// alarm is the one moment at which a request, or a message that could not be
// sent, is to be looked at again. It is in the core's timers exactly while it
// means something, so that their number is that of what is under way, however
// long the times are.
type alarm struct {
	at       core.Time
	place    int32 // in timers, from 1; 0: it is not there
	request  *request
	outbound *outbound // if request is nil
}

// timers is a heap of alarms by their moments.
type timers []*alarm

// set lets a ring at a moment, whenever it was to ring before.
func (t *timers) set(a *alarm, at core.Time) {
	a.at = at
	if a.place == 0 {
		*t = append(*t, a)
		a.place = int32(len(*t))
	}
	t.settle(int(a.place) - 1)
}

// stop lets a not ring.
func (t *timers) stop(a *alarm) {
	if a.place == 0 {
		return
	}
	i, last := int(a.place)-1, len(*t)-1
	(*t)[i] = (*t)[last]
	(*t)[i].place = int32(i + 1)
	(*t)[last] = nil
	*t = (*t)[:last]
	a.place = 0
	if i < last {
		t.settle(i)
	}
}

// settle moves the alarm at i to its place.
func (t timers) settle(i int) {
	a := t[i]
	for i > 0 && a.at < t[(i-1)/2].at {
		t.put(i, t[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(t) && t[child+1].at < t[child].at {
			child++
		}
		if child >= len(t) || a.at <= t[child].at {
			break
		}
		t.put(i, t[child])
		i = child
	}
	t.put(i, a)
}

func (t timers) put(i int, a *alarm) { t[i], a.place = a, int32(i+1) }

func (t timers) deadline() core.Time {
	if len(t) == 0 {
		return core.Never
	}
	return t[0].at
}

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
	if at == core.Never {
		c.timers.stop(&r.alarm)
		return
	}
	c.timers.set(&r.alarm, at)
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
