package peer

import (
	"fmt"
	"net"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/udp"
)

// pingMost are the keep-alives that a host sends a second over the rails of others, at most:
// with more paths than that it sends them less often, and finds a dead rail later.
const pingMost = 2000

// health is what is known of a path. It is of who watches rails.
type health struct {
	waits core.Time // since when something is not acknowledged; 0: all is
	heard core.Time // when something has come last
	bytes uint64    // that had come by then
}

// watchRails finds paths that carry nothing, though nobody sends on them, while others with
// the same host do.
func (h *Host) watchRails() {
	every := rail.DefaultHealth().Every
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-timer.C:
		}
		paths := h.checkRails(every)
		every = max(rail.DefaultHealth().Every, time.Second*time.Duration(paths)/pingMost)
		timer.Reset(every)
	}
}

// checkRails looks at all connections with several paths, and returns how many paths have
// keep-alives: those of one connection with each host.
func (h *Host) checkRails(every time.Duration) (paths int) {
	asked := map[string]*Conn{}
	var several []*Conn
	for _, c := range h.shared() {
		if len(c.all()) < 2 {
			continue
		}
		several = append(several, c)
		if o := asked[c.peer.Name]; o == nil || c.class < o.class {
			asked[c.peer.Name] = c
		}
	}
	for _, c := range several {
		asks := asked[c.peer.Name] == c
		if asks {
			paths += len(c.all())
		}
		c.health.Every, c.health.Within = every, max(rail.DefaultHealth().Within, 2*every)
		c.judgePaths(asks)
	}
	return paths
}

// judgePaths ends the paths that are dead, and has the other side end them.
func (c *Conn) judgePaths(asks bool) {
	all, now := c.living(), c.host.now()
	samples := make([]rail.Sample, len(all))
	for i, p := range all {
		samples[i] = p.healthNow(now)
	}
	verdicts, _ := c.health.Judge(now, samples, nil)
	for i, p := range all {
		if verdicts[i] == rail.Dead {
			p.endDead(fmt.Errorf("%w: nothing is acknowledged for %v, while another rail carries", ErrRailDown, now.Sub(samples[i].Since).Round(time.Millisecond)))
		} else if asks && !samples[i].Waits {
			if _, _, ok := acknowledgements(p.raw); !ok {
				p.health.waits = now
			}
			p.say(ping)
		}
	}
}

// endDead ends a path, and all others on its rails, on both sides, or has the side that
// decides end them.
func (p *Path) endDead(why error) {
	c, pair := p.conn, p.Rails()
	if pair == nil {
		p.close(why)
		return
	}
	if !c.decides() {
		c.sayDown(pair)
		return
	}
	c.host.losePair(c.peer.Name, pair, why)
}

// healthNow returns what is known of a path.
func (p *Path) healthNow(now core.Time) rail.Sample {
	k := &p.health
	if n := p.received.Load(); n != k.bytes || k.heard == 0 {
		k.bytes, k.heard = n, now
	}
	waits, age, ok := acknowledgements(p.raw)
	if !ok { // only what comes is known
		if k.heard > k.waits {
			k.waits = 0
		}
		return rail.Sample{Waits: k.waits != 0, Since: k.waits, Heard: k.heard}
	}
	acked := now.Add(-age)
	switch {
	case !waits:
		k.waits = 0
	case k.waits == 0:
		k.waits = now
	}
	k.heard = max(k.heard, acked)
	return rail.Sample{Waits: waits, Since: max(k.waits, acked), Heard: k.heard}
}

// acknowledgements reports whether the other side has not acknowledged something yet, below
// the process, and for how long it has acknowledged nothing.
func acknowledgements(conn net.Conn) (waits bool, age time.Duration, ok bool) {
	if c, is := conn.(*udp.Conn); is {
		s := c.Stats()
		return !s.UnacknowledgedSince.IsZero(), s.AcknowledgedAge, true
	}
	return kernelAcks(conn)
}
