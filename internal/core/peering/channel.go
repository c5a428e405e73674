package peering

import (
	"container/list"
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

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

// channel is a class of connections with one host.
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
		l.dial = c.dial(p, class)
	}
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
func (c *Core) dial(p *peer, class uint8) *conn {
	c.calls++
	c.counters.Dialled++
	k := &conn{id: Dialled | ID(c.calls), peer: p, class: class, call: c.calls}
	c.add(k)
	c.checks.Set(&k.check, c.now.Add(c.cfg.GreetWithin))
	c.act(Action{Do: Dial, ID: k.id, Peer: p.name, Class: class, Greeting: greeting.Greeting{
		Class: class, From: c.cfg.Name, Incarnation: c.cfg.Incarnation, To: p.name, Known: p.incarnation,
		Call: k.call, Accepted: p.channels[class].accepted,
	}})
	return k
}

// failed takes that a call, which is dropped already, came to nothing.
func (c *Core) failed(k *conn, err error) {
	c.counters.Failed++
	if l := k.channel(); !c.acceptWaiting(l) {
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
	l.retry, l.last = c.now.Add(pause(c.cfg.RetryMin, c.cfg.RetryMax, l.failures)), err
	l.failures++
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
	case greeting.Ended:
		return refusal(ErrEnded, a.Reason)
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
	case a.Code == greeting.Duplicate:
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
	l := k.channel()
	if w := l.waits; w != nil {
		c.refuseDuplicate(w)
	}
	c.replace(l, k)
	c.act(Action{Do: Use, ID: k.id, Peer: k.peer.name, Class: k.class, Incarnation: k.incarnation})
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
	l := k.channel()
	if d := l.dial; d != nil {
		c.close(d, ErrDuplicate)
	}
	l.accepted = k.call
	c.replace(l, k)
	c.act(Action{Do: Accept, ID: k.id, Peer: k.peer.name, Class: k.class, Incarnation: k.incarnation})
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
	l.dial = c.dial(l.peer, l.class)
}

// errIncarnation says which incarnations do not fit.
func errIncarnation(kind error, host string, is, known uint64) error {
	return fmt.Errorf("%w: %q is known in incarnation %d, after %d", kind, host, known, is)
}
