package discovery

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// damper counts the changes of a port's link. Beyond Config.Flaps in FlapWindow, what
// comes up has to be stable for a time that doubles with each further one.
type damper struct {
	times []core.Time // of changes, the oldest first
	until core.Time   // nothing comes up before
}

// maxFlaps is the most changes that are counted.
const maxFlaps = 32

func (d *damper) count(c *Core) {
	old := 0
	for old < len(d.times) && c.now.Sub(d.times[old]) >= FlapWindow {
		old++
	}
	d.times = append(d.times[:0], d.times[old:]...)
	if len(d.times) == maxFlaps+c.cfg.Flaps {
		d.times = append(d.times[:0], d.times[1:]...)
	}
	d.times = append(d.times, c.now)
	if over := len(d.times) - c.cfg.Flaps; over > 0 {
		d.until = c.now.Add(doubled(c.cfg.Hold, over-1, c.cfg.MaxHold))
	}
}

// doubled returns d doubled n times, and at most limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for ; n > 0 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}

func (d *damper) isHeld(c *Core) bool { return c.now < d.until }
