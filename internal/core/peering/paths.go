package peering

import (
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// paths are those that were added to a connection.
type paths struct {
	pairs uint8 // a set: those that there are. Of a connection that this host has dialled
	first uint8 // the pair of the connection's first path. Of such a one, too
	of    [greeting.MaxPaths]pair
}

// pair is two rails, one of each host.
type pair struct {
	conn     *conn // that may have a path on it
	number   uint8
	path     *conn     // that was added on it; nil: none
	since    core.Time // when the path came up; of a connection that this host has dialled
	failures int       // calls that failed or were given up, and paths that ended soon, since one lasted
	redial   core.Timer[*pair]
	notUntil core.Time // no call before
}

// more returns the paths that are added to a connection, of which there is room for one at least.
func (k *conn) more() *paths {
	if k.paths == nil {
		k.paths = &paths{}
		for i := range k.paths.of {
			p := &k.paths.of[i]
			p.conn, p.number, p.redial.Of = k, uint8(i), p
		}
	}
	return k.paths
}

// onPair returns the pair on which a path was added.
func (k *conn) onPair() *pair { return &k.of.paths.of[k.pair] }

// whole returns the connection to which a path belongs, or which has it as its first one.
func (k *conn) whole() *conn {
	if k.of != nil {
		return k.of
	}
	return k
}

// living returns how many paths of a connection have not ended.
func (k *conn) living() (n int) {
	if !k.lacksFirst {
		n++
	}
	if k.paths != nil {
		for i := range k.paths.of {
			if path := k.paths.of[i].path; path != nil && path.state == up {
				n++
			}
		}
	}
	return n
}

// isWanted reports whether there is to be a path on a pair, of a connection that this host has
// dialled.
func (p *pair) isWanted() bool { return p.conn.state == up && p.conn.paths.pairs>>p.number&1 != 0 }

// isFirst reports whether the connection's first path lies, or lay, on the pair.
func (p *pair) isFirst() bool { return p.conn.paths.first == p.number }

// paired takes the pairs of rails between the two hosts of a connection. Paths on pairs that are
// removed are the driver's to close, which knows first which others live.
func (c *Core) paired(in *Input) {
	k := c.conns[in.ID]
	if k == nil || k.of != nil || k.state != up || !k.dialled() || in.First >= greeting.MaxPaths {
		return
	}
	if k.paths == nil {
		if in.Pairs&^(1<<in.First) == 0 {
			return
		}
		k.more().first = in.First
	}
	k.paths.pairs = in.Pairs
	for i := range k.paths.of {
		p := &k.paths.of[i]
		if p.isWanted() {
			c.callPath(p)
		} else {
			c.stopPath(p, ErrRemoved)
		}
	}
}

// callPath dials a path where there is none.
func (c *Core) callPath(p *pair) {
	k := p.conn
	if p.path != nil || p.redial.Running() || p.isFirst() && !k.lacksFirst {
		return
	}
	if c.now < p.notUntil {
		c.rejoins.Set(&p.redial, p.notUntil)
		return
	}
	c.calls++
	c.counters.PathCalls++
	p.path = &conn{
		id: Dialled | ID(c.calls), peer: k.peer, class: k.class, call: c.calls, incarnation: k.incarnation, of: k, pair: p.number,
	}
	c.enter(p.path)
	c.checks.Set(&p.path.check, c.now.Add(c.cfg.PathGreetWithin))
	c.act(Action{Do: Dial, ID: p.path.id, Peer: k.peer.name, Class: k.class, Path: p.number + 1, Conn: k.id, Greeting: greeting.Greeting{
		Class: k.class, From: c.cfg.Name, Incarnation: c.cfg.Incarnation, To: k.peer.name, Known: k.incarnation,
		Call: c.calls, Path: p.number + 1, First: p.isFirst(), Joins: k.call,
	}})
}

// stopPath ends the call for a path, and makes no other. Where another pair gets the number, its
// calls wait as those of this one would have: a host that changes its rails again and again
// brings about no more calls than one whose rails do not answer.
func (c *Core) stopPath(p *pair, why error) {
	if p.redial.Running() {
		p.notUntil = p.redial.At
		c.rejoins.Set(&p.redial, core.Never)
	}
	if path := p.path; path != nil && path.state == dialling {
		c.dropPath(path)
		c.act(Action{Do: Close, ID: path.id, Err: why})
		p.notUntil = c.now.Add(c.nextPause(p))
	}
}

// nextPause returns how long to wait after one more failure.
func (c *Core) nextPause(p *pair) time.Duration {
	p.failures++
	return pause(c.cfg.PathRetryMin, c.cfg.PathRetryMax, p.failures-1)
}

// stopPaths ends all calls for paths of a connection.
func (c *Core) stopPaths(k *conn, why error) {
	if k.paths != nil {
		for i := range k.paths.of {
			c.stopPath(&k.paths.of[i], why)
		}
	}
}

// dropPaths forgets what was added to a connection that ends.
func (c *Core) dropPaths(k *conn) {
	if k.paths == nil {
		return
	}
	for i := range k.paths.of {
		p := &k.paths.of[i]
		c.rejoins.Set(&p.redial, core.Never)
		if p.path != nil {
			c.leave(p.path)
		}
	}
}

// retryPath has a path that has ended, or could not be made, be dialled again after a pause.
func (c *Core) retryPath(p *pair) {
	if p.isWanted() {
		c.rejoins.Set(&p.redial, c.now.Add(c.nextPause(p)))
	}
}

// pause returns how long to wait after a number of failures.
func pause(least, most time.Duration, failures int) time.Duration {
	if failures < 30 {
		return min(most, least<<failures)
	}
	return most
}

// dropPath forgets one path of a connection.
func (c *Core) dropPath(path *conn) {
	if path.of == nil {
		path.lacksFirst = true
		c.uncount(path)
		return
	}
	c.leave(path)
	p := path.onPair()
	p.path = nil
	if path.state == up && c.now.Sub(p.since) >= c.cfg.PathRetryMax {
		p.failures = 0
	}
}

// endedPath takes the end of a path, or of a call for one, and reports whether its connection
// has others.
func (c *Core) endedPath(path *conn) (hasOthers bool) {
	k, isCall := path.whole(), path.of != nil && path.state == dialling
	switch {
	case path.lacksFirst: // it had ended before
		return true
	case !isCall && k.living() == 1:
		return false
	case !isCall:
		c.counters.PathsLost++
	}
	c.dropPath(path)
	c.retryPath(k.pairOf(path))
	return true
}

// pairOf returns the pair of a path of a connection, which this host has dialled if it is the
// first one.
func (k *conn) pairOf(path *conn) *pair {
	if path == k {
		return &k.paths.of[k.paths.first]
	}
	return &k.paths.of[path.pair]
}

// giveUpPath ends the call for a path.
func (c *Core) giveUpPath(path *conn, err error) {
	c.dropPath(path)
	c.act(Action{Do: Close, ID: path.id, Err: err})
	c.retryPath(path.onPair())
}

// closePath closes one path of several.
func (c *Core) closePath(path *conn, why error) {
	c.dropPath(path)
	c.act(Action{Do: ClosePath, ID: path.id, Conn: path.whole().id, Err: why})
}

// answeredPath takes the answer to a call for a path.
func (c *Core) answeredPath(path *conn, in *Input) {
	a, k := &in.Answer, path.of
	switch {
	case a.Code == greeting.Outdated && c.raise(a.Incarnation):
		// All connections are made anew.
	case a.Code == greeting.Ended && a.Incarnation == k.incarnation:
		c.close(k, refusal(ErrEnded, a.Reason))
		c.redial(k.channel())
	case a.Code != greeting.Accept:
		c.giveUpPath(path, k.peer.errorOf(a))
	case a.Incarnation != k.incarnation:
		c.giveUpPath(path, errIncarnation(ErrOutdated, k.peer.name, a.Incarnation, k.incarnation))
	default:
		path.state, path.address = up, in.Address
		path.onPair().since = c.now
		c.checks.Set(&path.check, core.Never)
		c.act(Action{Do: Use, ID: path.id, Peer: k.peer.name, Class: k.class, Incarnation: k.incarnation, Path: path.pair + 1, Conn: k.id})
	}
}

// joined returns the connection to which a caller adds a path; nil: there is none.
func (c *Core) joined(g *greeting.Greeting) *conn {
	if p := c.peers[g.From]; p != nil {
		for _, k := range p.conns {
			isOpen := k.state == up || k.state == draining
			if isOpen && !k.dialled() && k.class == g.Class && k.call == g.Joins && k.incarnation == g.Incarnation {
				return k
			}
		}
	}
	return nil
}

// pathObjection returns why a path is refused.
func (c *Core) pathObjection(g *greeting.Greeting) (greeting.Code, error) {
	k := c.joined(g)
	switch {
	case k == nil:
		return greeting.Ended, fmt.Errorf("%w: that of call %d in class %d", ErrEnded, g.Joins, g.Class)
	case k.state == draining:
		return greeting.Busy, fmt.Errorf("%w: nothing more is sent on the connection", ErrBusy)
	}
	return greeting.Busy, c.overfull(k.peer.share, g)
}

// acceptPath adds a path, in place of what the caller has lost.
func (c *Core) acceptPath(in *Input) {
	g := &in.Greeting
	k := c.joined(g)
	p := &k.more().of[g.Path-1]
	old := p.path
	if g.Call <= k.call || old != nil && g.Call <= old.call {
		c.counters.Duplicate++
		c.act(Action{Do: Refuse, ID: in.ID, Code: greeting.Duplicate, Incarnation: k.incarnation, Err: ErrDuplicate})
		return
	}
	c.counters.Joined++
	if old != nil {
		c.dropPath(old)
	}
	p.path = &conn{
		id: in.ID, peer: k.peer, class: k.class, state: up, call: g.Call, incarnation: g.Incarnation, address: in.Address, of: k, pair: p.number,
	}
	c.enter(p.path)
	c.act(Action{Do: Accept, ID: in.ID, Peer: k.peer.name, Class: k.class, Incarnation: k.incarnation, Path: g.Path, Conn: k.id})
	if old != nil {
		c.act(Action{Do: ClosePath, ID: old.id, Conn: k.id, Err: ErrSuperseded})
	}
	if g.First && !k.lacksFirst {
		c.closePath(k, ErrSuperseded)
	}
	c.displace()
}
