package peering

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// state is that of a connection whose other end is known.
type state uint8

const (
	dialling state = iota // this host calls
	waiting               // the other has called, and waits for what becomes of this host's call
	claiming              // either has called, and an earlier incarnation of the other's is probed
	up
	draining // nothing more is sent on it
)

// conn is a connection with a host that is known: by a greeting, or since it is
// called.
type conn struct {
	id          ID
	peer        *peer
	class       uint8
	state       state
	pair        uint8  // of a path that was added: the number of its pair of rails
	lacksFirst  bool   // its first path has ended, and others have not
	call        uint64 // number of the call, of who has dialled
	knows       uint64 // of the other's call: number of this host's last one that it has accepted
	incarnation uint64 // of the other side; 0: not known yet
	address     string // of the other side
	check       core.Timer[*conn]
	counted     *list.Element // of the share; nil: this host has dialled
	before      uint64        // so many connections were added before it
	of          *conn         // the connection to which this one was added as a path; nil: it is a connection
	paths       *paths        // that were added; nil: none yet
	isProbed    bool          // while there are claims: it is asked for a sign of life
	isDeaf      bool          // then: this host does not read it
	reads       uint64        // then: Sample.Reads before
}

func (k *conn) dialled() bool { return k.id&Dialled != 0 }

// channel returns that of a connection's host and class.
func (k *conn) channel() *channel { return &k.peer.channels[k.class] }

// add notes a connection.
func (c *Core) add(k *conn) {
	k.peer.conns = append(k.peer.conns, k)
	c.retain(k.peer)
	c.enter(k)
}

// enter notes a connection, or a path that is added to one.
func (c *Core) enter(k *conn) {
	c.conns[k.id] = k
	if k.of != nil {
		c.paths++
	}
	k.check.Of, k.before = k, c.added
	c.added++
	if !k.dialled() {
		c.count(k)
	}
}

// leave forgets it.
func (c *Core) leave(k *conn) {
	delete(c.conns, k.id)
	if k.of != nil {
		c.paths--
	}
	c.checks.Set(&k.check, core.Never)
	c.uncount(k)
}

// byAge returns all connections, the oldest first.
func (c *Core) byAge() []*conn {
	return slices.SortedFunc(maps.Values(c.conns), func(a, b *conn) int { return cmp.Compare(a.before, b.before) })
}

// drop forgets a connection, wherever it stands, with its paths.
func (c *Core) drop(k *conn) {
	c.leave(k)
	c.dropPaths(k)
	p := k.peer
	p.conns = slices.DeleteFunc(p.conns, func(o *conn) bool { return o == k })
	if i := slices.Index(p.claims, k); i >= 0 {
		p.claims = slices.Delete(p.claims, i, i+1)
		p.share.claims--
	}
	l := k.channel()
	for _, at := range []**conn{&l.conn, &l.dial, &l.waits} {
		if *at == k {
			*at = nil
		}
	}
	c.ease(p)
	c.tidy(p)
}

// close ends a connection.
func (c *Core) close(k *conn, why error) {
	c.stopPaths(k, why)
	c.drop(k)
	c.act(Action{Do: Close, ID: k.id, Err: why})
}

// ended takes the end of a connection.
func (c *Core) ended(id ID, err error) {
	if at := c.strangers.find(id); at >= 0 {
		c.strangers.take(at)
		c.counters.Vanished++
		return
	}
	k := c.conns[id]
	if k == nil || c.endedPath(k) {
		return
	}
	k = k.whole()
	c.stopPaths(k, err)
	c.drop(k)
	switch {
	case k.state == dialling, k.state == claiming && k.dialled():
		c.failed(k, err)
	case k.state == up:
		c.redial(k.channel())
	}
}

// drain has nothing more be sent on a connection.
func (c *Core) drain(k *conn, why error) {
	if l := k.channel(); l.conn == k {
		l.conn = nil
	}
	c.stopPaths(k, why)
	k.state = draining
	c.checks.Set(&k.check, c.now.Add(c.cfg.GreetWithin))
	c.ease(k.peer)
	c.act(Action{Do: Drain, ID: k.id, Err: why})
	c.overdrawn(k)
}

// drainMost are the most connections in one channel on which nothing more is sent: a host
// that calls again and again would take all places with them.
const drainMost = 8

// overdrawn closes the oldest connection of k's channel that is drained, if there are too many.
func (c *Core) overdrawn(k *conn) {
	n := 0
	var oldest *conn
	for _, o := range k.peer.conns {
		if o.state == draining && o.class == k.class {
			if n++; oldest == nil {
				oldest = o
			}
		}
	}
	if n > drainMost {
		c.close(oldest, ErrSuperseded)
	}
}

// finished takes that the other side sends nothing more on a connection.
func (c *Core) finished(id ID) {
	k := c.conns[id]
	switch {
	case k == nil, k.of != nil:
	case k.state == up:
		c.drain(k, ErrIdle)
		c.redial(k.channel())
	case k.state == draining:
		c.close(k, ErrDone)
	}
}

// renew has another connection take the place of one whose certificate, or keys, are used up
// soon. What was sent on it still arrives.
func (c *Core) renew(id ID, why error) {
	k := c.conns[id]
	if k == nil || k.whole().state != up {
		return
	}
	k = k.whole()
	c.counters.Renewed++
	c.drain(k, fmt.Errorf("%w: %w", ErrRenewed, why))
	c.redial(k.channel())
}

// sampled judges a connection by what was heard on it.
func (c *Core) sampled(k *conn, s Sample) {
	c.testify(k, s)
	if k.state != up {
		return // it has ended by that
	}
	heard := s.Heard
	if s.Deaf {
		heard = 0
	}
	switch {
	case heard >= c.cfg.DeadAfter:
		c.counters.Dead++
		c.close(k, fmt.Errorf("%w for %v", ErrDead, heard.Round(time.Millisecond)))
		c.redial(k.channel())
		return
	case s.Used >= c.cfg.IdleAfter && k.channel().holds == 0:
		c.counters.Idle++
		c.drain(k, ErrIdle)
		return
	case heard >= c.cfg.KeepAlive:
		c.act(Action{Do: Ping, ID: k.id})
	}
	pause := min(c.cfg.KeepAlive, c.cfg.DeadAfter-heard)
	if k.isProbed || k.isDeaf {
		pause = min(pause, c.probePause())
	}
	c.checks.Set(&k.check, c.now.Add(pause))
}

// due does what a connection's time says.
func (c *Core) due(k *conn) {
	switch k.state {
	case dialling:
		if k.of != nil {
			c.giveUpPath(k, fmt.Errorf("%w: no answer within %v", ErrSlow, c.cfg.PathGreetWithin))
			return
		}
		c.giveUp(k, fmt.Errorf("%w: no answer within %v", ErrSlow, c.cfg.GreetWithin))
	case up:
		c.checks.Set(&k.check, c.now.Add(c.cfg.KeepAlive)) // by then the sample is there
		c.act(Action{Do: Check, ID: k.id})
	case draining:
		c.close(k, ErrDone)
	case waiting, claiming: // no check runs: this host's call, or the probe, has an end
	}
}
