package peering

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// Mark is between a host's name and the label of one of its processes, where there are
// several. No name of a host has it.
const Mark = "#"

// HostOf returns the host of a process's name: whom its certificate names.
func HostOf(name string) string {
	host, _, _ := strings.Cut(name, Mark)
	return host
}

// claimMost are the most calls under one name that wait for a probe, and claimMostOfHost
// those of all processes of a host.
const (
	claimMost       = 8
	claimMostOfHost = 64
)

// isContested reports whether an incarnation is later than one of the host's that has
// connections: it has started again, or another process has its name.
func (c *Core) isContested(p *peer, incarnation uint64) bool {
	return slices.ContainsFunc(p.conns, func(k *conn) bool { return c.isRival(k, incarnation) })
}

// isRival reports whether a connection that stands is of an earlier incarnation.
func (c *Core) isRival(k *conn, incarnation uint64) bool {
	return k.state == up && k.incarnation < incarnation
}

// isWaiting reports whether the other side waits for the answer to its call.
func (k *conn) isWaiting() bool { return k.state == waiting || k.state == claiming && !k.dialled() }

func (c *Core) claimsOf(name string) []*conn {
	if p := c.peers[name]; p != nil {
		return p.claims
	}
	return nil
}

// claim has a connection of a later incarnation wait until the earlier one has shown
// that it lives, or has not for a while.
func (c *Core) claim(k *conn) {
	p := k.peer
	k.state = claiming
	c.checks.Set(&k.check, core.Never)
	p.share.claims++
	if p.claims = append(p.claims, k); !p.probe.Running() {
		c.probes.Set(&p.probe, c.now.Add(c.cfg.GreetWithin/4))
	}
	for _, o := range p.conns {
		if c.isRival(o, k.incarnation) && !o.isProbed {
			c.checks.Set(&o.check, c.now.Add(c.probePause()))
			c.act(Action{Do: Check, ID: o.id})
		}
	}
}

// probePause is the time between two looks at what is probed.
func (c *Core) probePause() time.Duration { return c.cfg.GreetWithin / 256 }

// testify takes what is known of a connection for a sign of life, where one is wanted.
func (c *Core) testify(k *conn, s Sample) {
	p := k.peer
	switch {
	case len(p.claims) == 0:
		k.isProbed, k.isDeaf = false, false
	case s.Deaf: // what it would show is not read: at the probe's end that counts for it
		k.isDeaf = true
	case !k.isProbed:
		k.isProbed, k.isDeaf, k.reads = true, false, s.Reads
		c.act(Action{Do: Ping, ID: k.id})
	case s.Reads != k.reads:
		c.keep(p, k)
	default:
		k.isDeaf = false
	}
}

// keep refuses those who claim a name: the process that has it lives, as a connection
// has shown.
func (c *Core) keep(p *peer, by *conn) {
	c.counters.Contested++
	err := fmt.Errorf("%w: %q is the process at %s, in incarnation %d", ErrName, p.name, by.address, by.incarnation)
	for _, k := range c.claims(p) {
		if k.dialled() {
			c.giveUp(k, err)
		} else {
			c.refuse(k, greeting.Taken, err)
		}
	}
}

// claims takes the claims to a name.
func (c *Core) claims(p *peer) []*conn {
	all := p.claims
	p.claims = nil
	p.share.claims -= len(all)
	c.probes.Set(&p.probe, core.Never)
	for _, k := range p.conns {
		k.isProbed, k.isDeaf = false, false
	}
	return all
}

// ease notes that a host may have nothing any more that is in the way of a claim.
func (c *Core) ease(p *peer) {
	if p.probe.Running() {
		c.eased = append(c.eased, p)
	}
}

// judge ends the probes of hosts that have no connection left.
func (c *Core) judge() {
	for i := 0; i < len(c.eased); i++ { // a probe that ends may end others
		p := c.eased[i]
		if p.probe.Running() && !slices.ContainsFunc(p.claims, func(k *conn) bool { return c.isContested(p, k.incarnation) }) {
			c.conclude(p)
		}
	}
	clear(c.eased)
	c.eased = c.eased[:0]
}

// overdue ends a probe whose time is over: the process that has the name keeps it where
// this host has not read what it may have answered.
func (c *Core) overdue(p *peer) {
	if i := slices.IndexFunc(p.conns, func(k *conn) bool { return k.state == up && k.isDeaf }); i >= 0 {
		c.keep(p, p.conns[i])
		return
	}
	c.conclude(p)
}

// conclude ends a probe to which nothing has come: claims are good.
func (c *Core) conclude(p *peer) {
	all := c.claims(p)
	latest := p.incarnation
	for _, k := range all {
		latest = max(latest, k.incarnation)
	}
	c.meet(p, latest)
	for _, k := range all {
		if c.conns[k.id] == k {
			c.claimed(k)
		}
	}
}

// claimed goes on with a connection whose claim is good.
func (c *Core) claimed(k *conn) {
	if k.dialled() {
		k.state = dialling
		c.use(k)
		return
	}
	k.state = waiting
	c.settle(k.channel(), k)
}

// MaxAhead is how far ahead of a clock an incarnation may be: one that was set to local time is less than a day
// ahead. It bounds for how long who had a host's certificate can keep that host's next lives out.
const MaxAhead = 24 * time.Hour

// ErrAhead is why an incarnation is not believed.
var ErrAhead = fmt.Errorf("an incarnation is more than %v ahead of the clock", MaxAhead)

// Credible returns ErrAhead where an incarnation, in nanoseconds since 1970, is too far ahead of now.
func Credible(incarnation uint64, now time.Time) error {
	if incarnation <= uint64(now.Add(MaxAhead).UnixNano()) {
		return nil
	}
	at := time.Unix(0, int64(min(incarnation, 1<<63-1)))
	return fmt.Errorf("%w: %s, and it is %s now", ErrAhead, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

// raise has this host begin a later incarnation than others know, and reports whether it
// does. Its connections are made anew, so that all know it.
func (c *Core) raise(known uint64) bool {
	const latest = 1 << 63 // in nanoseconds: the year 2262
	if known < c.cfg.Incarnation || known >= latest || c.isPinned {
		return false
	}
	c.cfg.Incarnation = known + 1
	c.act(Action{Do: Raise, Incarnation: c.cfg.Incarnation})
	for _, k := range c.byAge() {
		switch {
		case c.conns[k.id] != k, k.of != nil:
		case k.state == up:
			c.drain(k, ErrOutdated)
			c.redial(k.channel())
		case k.state == dialling, k.state == claiming && k.dialled():
			c.close(k, ErrOutdated)
			c.again(k)
		}
	}
	return true
}

// again makes a call once more, in this host's new incarnation.
func (c *Core) again(k *conn) {
	if l := k.channel(); !c.acceptWaiting(l) {
		l.dial = c.dial(k.peer, k.class)
	}
}

// closing takes and makes no more connections, and has those that stand end when what
// waits on them is sent, and what comes on them has come.
func (c *Core) closing() {
	c.isClosing = true
	for _, k := range c.byAge() {
		switch {
		case c.conns[k.id] != k, k.of != nil:
		case k.state == up:
			c.drain(k, ErrClosing)
		case k.isWaiting():
			c.refuse(k, greeting.Busy, ErrClosing)
		case k.state == dialling, k.state == claiming:
			c.giveUp(k, ErrClosing)
		}
	}
}
