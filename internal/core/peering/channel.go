package peering

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
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
	call        uint64 // number of the call, of who has dialled
	knows       uint64 // of the other's call: number of this host's last one that it has accepted
	incarnation uint64 // of the other side; 0: not known yet
	ticket      uint64 // of an exclusive call
	address     string // of the other side
	check       core.Timer[*conn]
	counted     *list.Element // of the share; nil: this host has dialled
	before      uint64        // so many connections were added before it
	isProbed    bool          // while there are claims: it is asked for a sign of life
	isDeaf      bool          // then: this host does not read it
	reads       uint64        // then: Sample.Reads before
}

func (k *conn) dialled() bool { return k.id&Dialled != 0 }

// channel returns that of a connection's host and class.
func (k *conn) channel() *channel { return &k.peer.channels[k.class] }

// peer is another host.
type peer struct {
	name        string
	share       *share
	incarnation uint64    // the latest that is known; 0: none
	isLearned   bool      // of it, and not from greetings alone
	channels    []channel // by class
	conns       []*conn

	claims []*conn           // of a later incarnation, while the earlier one's connections are probed
	probe  core.Timer[*peer] // runs meanwhile

	unused *list.Element // of Core.unused; nil: it is used
	age    core.Timer[*peer]
}

// channel is a shared class of connections with one host.
type channel struct {
	peer     *peer
	class    uint8
	conn     *conn // nil: none
	dial     *conn // under way; nil: none. There may be one while conn is nil alone
	waits    *conn // while dial is under way: a call of the other's
	holds    int   // services that want a connection
	failures int   // calls that failed, since the last success
	retry    core.Time
	redial   core.Timer[*channel]
	last     error  // of the last call that failed
	accepted uint64 // number of the other's call that was accepted last
}

// peer returns what is known of a host.
func (c *Core) peer(name string) *peer {
	p := c.peers[name]
	if p == nil {
		p = &peer{name: name, channels: make([]channel, c.cfg.Classes)}
		p.probe.Of, p.age.Of = p, p
		for i := range p.channels {
			l := &p.channels[i]
			l.peer, l.class, l.redial.Of = p, uint8(i), l
		}
		c.peers[name] = p
		c.join(p)
	}
	return p
}

// add notes a connection.
func (c *Core) add(k *conn) {
	c.conns[k.id] = k
	k.check.Of, k.before = k, c.added
	c.added++
	k.peer.conns = append(k.peer.conns, k)
	c.retain(k.peer)
	if !k.dialled() {
		c.count(k)
	}
}

// byAge returns all connections, the oldest first.
func (c *Core) byAge() []*conn {
	return slices.SortedFunc(maps.Values(c.conns), func(a, b *conn) int { return cmp.Compare(a.before, b.before) })
}

// drop forgets a connection, wherever it stands.
func (c *Core) drop(k *conn) {
	delete(c.conns, k.id)
	c.checks.Set(&k.check, core.Never)
	p := k.peer
	p.conns = slices.DeleteFunc(p.conns, func(o *conn) bool { return o == k })
	if i := slices.Index(p.claims, k); i >= 0 {
		p.claims = slices.Delete(p.claims, i, i+1)
		p.share.claims--
	}
	if !k.dialled() {
		c.uncount(k)
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
	if k == nil {
		return
	}
	c.drop(k)
	switch {
	case k.state == dialling, k.state == claiming && k.dialled():
		c.failed(k, err)
	case k.state == up:
		c.redial(k.channel())
	}
}

// wanted dials a host if there is no connection and its time has come.
func (c *Core) wanted(name string, class uint8) {
	if err := c.callable(name); err != nil {
		c.act(Action{Do: Fail, Peer: name, Class: class, Err: err})
		return
	}
	p := c.peer(name)
	l := &p.channels[class]
	switch {
	case l.conn != nil || l.dial != nil:
	case c.isClosing:
		c.act(Action{Do: Fail, Peer: name, Class: class, Err: ErrClosing})
		c.tidy(p)
	case l.failures > 0 && c.now < l.retry:
		c.act(Action{Do: Fail, Peer: name, Class: class, Err: l.last})
	default:
		l.dial = c.dial(p, class, 0)
	}
}

// called dials a host for who waits for a connection of its own.
func (c *Core) called(in *Input) {
	if err := c.callable(in.Peer); err != nil {
		c.act(Action{Do: Fail, Peer: in.Peer, Class: in.Class, Ticket: in.Ticket, Err: err})
		return
	}
	c.dial(c.peer(in.Peer), in.Class, in.Ticket)
}

// callable returns why a host cannot be called: a greeting has no room for its name, or it is
// this one.
func (c *Core) callable(name string) error {
	switch {
	case name == "" || len(name) > greeting.MaxName:
		return fmt.Errorf("%w: a host's name of %d bytes, want 1 to %d", ErrElsewhere, len(name), greeting.MaxName)
	case name == c.cfg.Name:
		return fmt.Errorf("%w: it is this host", ErrElsewhere)
	}
	return nil
}

// dial calls a host.
func (c *Core) dial(p *peer, class uint8, ticket uint64) *conn {
	c.calls++
	c.counters.Dialled++
	k := &conn{id: Dialled | ID(c.calls), peer: p, class: class, call: c.calls, ticket: ticket}
	c.add(k)
	c.checks.Set(&k.check, c.now.Add(c.cfg.GreetWithin))
	c.act(Action{Do: Dial, ID: k.id, Peer: p.name, Class: class, Ticket: ticket, Greeting: greeting.Greeting{
		Class: class, From: c.cfg.Name, Incarnation: c.cfg.Incarnation, To: p.name, Known: p.incarnation,
		Call: k.call, Accepted: p.channels[class].accepted,
	}})
	return k
}

// failed takes that a call, which is dropped already, came to nothing.
func (c *Core) failed(k *conn, err error) {
	c.counters.Failed++
	if !c.isShared(k) {
		c.act(Action{Do: Fail, Peer: k.peer.name, Class: k.class, Ticket: k.ticket, Err: err})
	} else if l := k.channel(); !c.acceptWaiting(l) {
		c.back(l, err)
	}
}

// giveUp ends a call of this host's.
func (c *Core) giveUp(k *conn, err error) {
	c.close(k, err)
	c.failed(k, err)
}

// acceptWaiting takes the call that waits for what becomes of this host's, if there is one.
func (c *Core) acceptWaiting(l *channel) bool {
	w := l.waits
	if w != nil {
		l.waits = nil
		c.accept(w)
	}
	return w != nil
}

// back has a channel wait before its next call.
func (c *Core) back(l *channel, err error) {
	pause := c.cfg.RetryMax
	if l.failures < 30 {
		pause = min(pause, c.cfg.RetryMin<<l.failures)
	}
	l.failures++
	l.retry, l.last = c.now.Add(pause), err
	c.act(Action{Do: Fail, Peer: l.peer.name, Class: l.class, Err: err})
	if l.holds > 0 {
		c.retries.Set(&l.redial, l.retry)
	}
}

// errorOf returns what an answer that is no acceptance means.
func (p *peer) errorOf(a *greeting.Answer) error {
	switch a.Code {
	case greeting.Outdated:
		return refusal(ErrOutdated, a.Reason)
	case greeting.Former:
		return errIncarnation(ErrOutdated, p.name, a.Incarnation, p.incarnation)
	case greeting.Taken:
		return refusal(ErrName, a.Reason)
	case greeting.Busy:
		return refusal(ErrBusy, a.Reason)
	default:
		return fmt.Errorf("%w: %s", ErrRefused, a.Reason)
	}
}

// refusal is an answer that has a code of its own: the reason begins with what that says.
func refusal(kind error, reason string) error {
	return fmt.Errorf("%w: %w: %s", ErrRefused, kind, strings.TrimPrefix(reason, kind.Error()+": "))
}

// answered takes the answer to a call.
func (c *Core) answered(k *conn, in *Input) {
	a := &in.Answer
	p := k.peer
	k.address = in.Address
	switch {
	case a.Code == greeting.Outdated && c.raise(a.Incarnation):
		return
	case a.Code == greeting.Duplicate && c.isShared(k):
		// What there is instead is accepted already, waits, or has broken by now.
		c.counters.Duplicate++
		c.close(k, ErrDuplicate)
		if l := k.channel(); !c.acceptWaiting(l) && l.conn == nil {
			c.back(l, ErrDuplicate)
		}
		return
	case a.Code != greeting.Accept:
		c.giveUp(k, p.errorOf(a))
		return
	case a.Incarnation < p.incarnation:
		c.giveUp(k, errIncarnation(ErrOutdated, p.name, a.Incarnation, p.incarnation))
		return
	}
	k.incarnation = a.Incarnation
	if c.isContested(p, a.Incarnation) {
		c.claim(k)
		return
	}
	c.meet(p, a.Incarnation)
	c.use(k)
}

// use takes a call that the other side has accepted.
func (c *Core) use(k *conn) {
	use := Action{Do: Use, ID: k.id, Peer: k.peer.name, Class: k.class, Ticket: k.ticket, Incarnation: k.incarnation}
	if !c.isShared(k) {
		c.drop(k) // it is the caller's
		c.act(use)
		return
	}
	l := k.channel()
	if w := l.waits; w != nil {
		c.refuseDuplicate(w)
	}
	c.replace(l, k)
	c.act(use)
}

// refuse refuses a call that waited.
func (c *Core) refuse(w *conn, code greeting.Code, err error) {
	c.drop(w)
	c.act(Action{Do: Refuse, ID: w.id, Code: code, Incarnation: w.peer.incarnation, Err: err})
}

func (c *Core) refuseDuplicate(w *conn) {
	c.counters.Duplicate++
	c.refuse(w, greeting.Duplicate, ErrDuplicate)
}

// replace makes k the connection of a channel.
func (c *Core) replace(l *channel, k *conn) {
	if old := l.conn; old != nil {
		c.counters.Superseded++
		c.drain(old, ErrSuperseded)
	}
	if l.dial == k {
		l.dial = nil
	}
	l.conn, l.failures = k, 0
	k.state = up
	c.checks.Set(&k.check, c.now.Add(c.cfg.KeepAlive))
}

// accept takes a call of the other's, in place of what there is.
func (c *Core) accept(k *conn) {
	c.counters.Accepted++
	if c.isShared(k) {
		l := k.channel()
		if d := l.dial; d != nil {
			c.close(d, ErrDuplicate)
		}
		l.accepted = k.call
		c.replace(l, k)
	} else {
		k.state = up // its service sees to it
	}
	c.act(Action{Do: Accept, ID: k.id, Peer: k.peer.name, Class: k.class, Incarnation: k.incarnation})
}

// drain has nothing more be sent on a connection.
func (c *Core) drain(k *conn, why error) {
	if l := k.channel(); l.conn == k {
		l.conn = nil
	}
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
	case k == nil:
	case k.state == up:
		c.drain(k, ErrIdle)
		c.redial(k.channel())
	case k.state == draining:
		c.close(k, ErrDone)
	}
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
		c.close(k, fmt.Errorf("%w: for %v", ErrDead, heard.Round(time.Millisecond)))
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
		c.giveUp(k, fmt.Errorf("%w: no answer within %v", ErrSlow, c.cfg.GreetWithin))
	case up:
		c.checks.Set(&k.check, c.now.Add(c.cfg.KeepAlive)) // by then the sample is there
		c.act(Action{Do: Check, ID: k.id})
	case draining:
		c.close(k, ErrDone)
	case waiting, claiming: // no check runs: this host's call, or the probe, has an end
	}
}

// hold has a channel be connected from now on.
func (c *Core) hold(name string, class uint8) {
	if err := c.callable(name); err != nil {
		c.act(Action{Do: Fail, Peer: name, Class: class, Err: err})
		return
	}
	l := &c.peer(name).channels[class]
	l.holds++
	c.retain(l.peer)
	c.redial(l)
}

func (c *Core) release(name string, class uint8) {
	p := c.peers[name]
	if p == nil || p.channels[class].holds == 0 {
		return
	}
	l := &p.channels[class]
	if l.holds--; l.holds == 0 {
		c.retries.Set(&l.redial, core.Never)
		c.tidy(p)
	}
}

// redial dials a host of which a connection is held, once its time has come.
func (c *Core) redial(l *channel) {
	if l.holds == 0 || l.conn != nil || l.dial != nil || c.isClosing {
		return
	}
	if l.failures > 0 && c.now < l.retry {
		c.retries.Set(&l.redial, l.retry)
		return
	}
	l.dial = c.dial(l.peer, l.class, 0)
}

// errIncarnation says which incarnations do not fit.
func errIncarnation(kind error, host string, is, known uint64) error {
	return fmt.Errorf("%w: %q is known in incarnation %d, after %d", kind, host, known, is)
}
