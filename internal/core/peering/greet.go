package peering

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// greeted takes what a caller says first.
func (c *Core) greeted(in *Input) {
	at := c.strangers.find(in.ID)
	if at < 0 {
		return // it is closed already
	}
	c.strangers.take(at)
	if in.Err != nil {
		c.counters.Malformed++
		c.act(Action{Do: Refuse, ID: in.ID, Code: greeting.Refuse, Err: in.Err})
		return
	}
	if in.Greeting.To == "" {
		c.act(Action{Do: Refuse, ID: in.ID, Code: greeting.Named, Err: errors.New(c.cfg.Name)})
		return
	}
	if code, err := c.objection(in); err != nil {
		c.counters.Refused++
		c.act(Action{Do: Refuse, ID: in.ID, Code: code, Incarnation: c.Incarnation(in.Greeting.From), Err: err})
		return
	}
	g := &in.Greeting
	if g.Path != 0 {
		c.acceptPath(in)
		return
	}
	p := c.peer(g.From)
	k := &conn{
		id: in.ID, peer: p, class: g.Class, call: g.Call, knows: g.Accepted, incarnation: g.Incarnation,
		address: in.Address, state: waiting,
	}
	if g.Known != c.cfg.Incarnation {
		k.knows = 0 // it is the number of a call of an earlier life
	}
	c.add(k)
	if c.isContested(p, g.Incarnation) {
		c.claim(k)
	} else {
		c.meet(p, g.Incarnation)
		c.settle(k.channel(), k)
	}
	c.displace() // not before: it may have been refused
}

// settle decides which connection of a channel survives: the table of the package's
// documentation.
func (c *Core) settle(l *channel, k *conn) {
	switch {
	case l.conn != nil && l.conn.dialled() && k.knows < l.conn.call,
		l.conn != nil && !l.conn.dialled() && k.call <= l.conn.call:
		c.refuseDuplicate(k)
	case l.conn == nil && l.dial != nil && c.cfg.Name < l.peer.name:
		if old := l.waits; old != nil && old.call > k.call {
			c.refuseDuplicate(k)
			return
		} else if old != nil {
			c.refuseDuplicate(old)
		}
		l.waits = k
		// That the other side could call shows that this host might, too: if it cannot
		// soon, the other's call is as good, which has an end as well.
		if t := &l.dial.check; t.Running() {
			c.checks.Set(t, t.At.Earlier(c.now.Add(c.cfg.GreetWithin/4)))
		}
	default:
		c.accept(k)
	}
}

// objection returns why a caller is refused.
func (c *Core) objection(in *Input) (greeting.Code, error) {
	g := &in.Greeting
	known := c.Incarnation(g.From)
	switch {
	case c.cfg.Certified && HostOf(g.From) != in.Peer:
		return greeting.Refuse, fmt.Errorf("%w: it is %q's, and the greeting says %q", ErrIdentity, in.Peer, g.From)
	case g.To != c.cfg.Name:
		return greeting.Refuse, fmt.Errorf("%w: this is %q, not %q", ErrElsewhere, c.cfg.Name, g.To)
	case g.From == c.cfg.Name:
		return greeting.Taken, fmt.Errorf("%w: it is this one's, %q, in incarnation %d; the caller is in %d", ErrName, c.cfg.Name, c.cfg.Incarnation, g.Incarnation)
	case g.Incarnation == 0:
		return greeting.Refuse, fmt.Errorf("%w: %q has no incarnation", ErrMalformed, g.From)
	case g.Class >= c.cfg.Classes:
		return greeting.Refuse, fmt.Errorf("%w: %d", ErrClass, g.Class)
	case g.Path > greeting.MaxPaths:
		return greeting.Refuse, fmt.Errorf("%w: %d of a connection of class %d", ErrPath, g.Path, g.Class)
	case g.Known > c.cfg.Incarnation:
		return greeting.Former, fmt.Errorf("%w: %q in incarnation %d is known in %d: it has to begin with a larger one", ErrOutdated, c.cfg.Name, c.cfg.Incarnation, g.Known)
	case g.Incarnation < known:
		return greeting.Outdated, fmt.Errorf("%w: %q is known in incarnation %d, after %d", ErrOutdated, g.From, known, g.Incarnation)
	case c.isClosing:
		return greeting.Busy, ErrClosing
	case g.Path != 0:
		return c.pathObjection(g)
	}
	return greeting.Busy, c.overdraft(g)
}

// meet notes a host's incarnation. A later one than was known ends the connections of
// the earlier ones.
func (c *Core) meet(p *peer, incarnation uint64) {
	before := p.incarnation
	if incarnation <= before {
		return
	}
	p.incarnation = incarnation
	if before == 0 {
		return
	}
	c.counters.Restarts++
	for _, k := range slices.Clone(p.conns) {
		if k.incarnation == 0 || k.incarnation >= incarnation {
			continue
		}
		err := errIncarnation(ErrOutdated, p.name, k.incarnation, incarnation)
		switch {
		case k.isWaiting():
			c.refuse(k, greeting.Outdated, err)
		case k.state == claiming:
			c.giveUp(k, err)
		default:
			c.close(k, errIncarnation(ErrRestarted, p.name, k.incarnation, incarnation))
		}
	}
	// Only now: who is notified sends to the later one.
	c.act(Action{Do: Restarted, Peer: p.name, Before: before, Incarnation: incarnation})
	for i := range p.channels {
		l := &p.channels[i]
		l.accepted, l.failures = 0, 0
		c.redial(l)
	}
}

// tidy notes a host that has lost its last connection.
func (c *Core) tidy(p *peer) {
	if p.unused != nil || len(p.conns) > 0 || slices.ContainsFunc(p.channels, func(l channel) bool { return l.holds > 0 }) {
		return
	}
	p.unused = c.unused.PushBack(p)
	if !c.cfg.Certified && !p.isLearned {
		c.ages.Set(&p.age, c.now.Add(c.cfg.Forget))
	}
	if p.share.unused++; c.unused.Len() > c.cfg.Remember {
		c.forget(c.stalest(p.share))
	}
}

// stalest returns the host that has been unused for longest, or, where one that has become
// so now has more than half of the places with all its processes, the one of these.
func (c *Core) stalest(s *share) *peer {
	e := c.unused.Front()
	for s.unused > max(1, c.cfg.Remember/2) && e.Value.(*peer).share != s {
		e = e.Next()
	}
	return e.Value.(*peer)
}

// retain notes that a host is not unused any more.
func (c *Core) retain(p *peer) {
	if p.unused != nil {
		c.unused.Remove(p.unused)
		p.share.unused--
		p.unused = nil
		c.ages.Set(&p.age, core.Never)
	}
}

// forget forgets a host that is unused.
func (c *Core) forget(p *peer) {
	c.retain(p)
	c.part(p)
	delete(c.peers, p.name)
	if p.incarnation != 0 {
		c.act(Action{Do: Forgot, Peer: p.name})
	}
}
