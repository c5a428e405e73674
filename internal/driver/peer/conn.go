package peer

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// Conn is a connection of a shared class with another host, as services see it: it has one
// path, or several where both hosts have several rails, and ends with the last of them.
type Conn struct {
	host    *Host
	id      peering.ID
	peer    Peer
	class   Class
	channel *Channel

	paths  atomic.Pointer[[]*Path] // that frames go over; replaced under the channel's lock
	reads  atomic.Uint64           // that brought something, on any path
	frames atomic.Uint64           // of services, that came or went

	// Of its channel's lock.
	isDraining bool    // nothing more is sent than what waits
	isLast     bool    // it is closed when nothing waits any more
	isFinished bool    // the other side sends nothing more
	isOver     bool    // its last path has ended
	stripe     *stripe // how frames are cut for several paths; nil: there is one path

	in     reorder
	rails  railed      // what is known of both hosts' rails
	health rail.Health // of who watches rails
	end    sync.Once
	reason atomic.Pointer[error]

	// Of the loop: what was found at the last Check.
	seenReads, seenFrames uint64
	heardAt, usedAt       time.Time
	sampledAt             time.Time
}

// Peer returns the host on the other side.
func (c *Conn) Peer() Peer { return c.peer }

// Class returns the connection's class.
func (c *Conn) Class() Class { return c.class }

// ID returns a number that no other connection of the host has.
func (c *Conn) ID() uint64 { return uint64(c.id) }

// Break ends the connection for a service that is not served by it any more.
func (c *Conn) Break(reason error) { c.close(reason) }

// close ends the connection with all its paths. The first reason stands.
func (c *Conn) close(reason error) {
	c.end.Do(func() { c.reason.Store(&reason) })
	for _, p := range c.all() {
		p.close(reason)
	}
}

// all returns the connection's paths.
func (c *Conn) all() []*Path {
	if all := c.paths.Load(); all != nil {
		return *all
	}
	return nil
}

// living returns the paths that have not been closed.
func (c *Conn) living() (all []*Path) {
	for _, p := range c.all() {
		if p.reason.Load() == nil {
			all = append(all, p)
		}
	}
	return all
}

// isEntered reports that it has, or had, a path.
func (c *Conn) isEntered() bool { return c.paths.Load() != nil }

// isAlive reports that frames may still be sent.
func (c *Conn) isAlive() bool {
	return c.reason.Load() == nil && slices.ContainsFunc(c.all(), func(p *Path) bool { return p.reason.Load() == nil })
}

// sample reports what was received since the last time. It is for the loop.
func (c *Conn) sample(now time.Time) peering.Sample {
	// A process that was stopped has heard nothing meanwhile, which says nothing of the other side.
	if away := now.Sub(c.sampledAt); !c.sampledAt.IsZero() && away >= max(c.host.cfg.DeadAfter, time.Second) {
		c.heardAt = c.heardAt.Add(away)
	}
	c.sampledAt = now
	if n := c.reads.Load(); n != c.seenReads || c.heardAt.IsZero() {
		c.seenReads, c.heardAt = n, now
	}
	if n := c.frames.Load(); n != c.seenFrames || c.usedAt.IsZero() {
		c.seenFrames, c.usedAt = n, now
	}
	return peering.Sample{Heard: now.Sub(c.heardAt), Used: now.Sub(c.usedAt), Reads: c.seenReads, Deaf: slices.ContainsFunc(c.all(), func(p *Path) bool { return p.isDeaf.Load() })}
}

// enter adds a path, and reports false where the connection has ended.
func (c *Conn) enter(p *Path) bool {
	l := c.channel
	if p.id != c.id {
		// Services hear of it only then: a connection does not end while it has a path.
		if !l.join(c, p) {
			return false
		}
		c.host.eachPathHandler(c.class, func(s PathHandler) { s.PathUp(p) })
		return true
	}
	c.host.open.Add(1)
	l.mu.Lock()
	c.setPaths([]*Path{p})
	p.arrived()
	l.mu.Unlock()
	if r := c.reason.Load(); r != nil { // before there was a path to close
		p.close(*r)
	}
	c.host.eachService(func(s Handler) { s.Up(c) })
	c.host.eachPathHandler(c.class, func(s PathHandler) { s.PathUp(p) })
	l.use(c, p)
	return true
}

// setPaths replaces the paths. The caller holds the channel's lock, or is the first one.
func (c *Conn) setPaths(all []*Path) { c.paths.Store(&all) }

// leave removes a path on which nothing is read any more.
func (c *Conn) leave(p *Path, reason error) {
	c.host.eachPathHandler(c.class, func(s PathHandler) { s.PathDown(p, reason) })
	if !c.channel.part(c, p, reason) {
		return
	}
	c.in.drop()
	if r := c.reason.Load(); r != nil {
		reason = *r
	}
	c.host.eachService(func(s Handler) { s.Down(c, reason) })
	if c.host.open.Add(-1) == 0 {
		select {
		case c.host.alone <- struct{}{}:
		default:
		}
	}
}
