package peering

import (
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Core decides for one host. Its methods are not safe for concurrent use.
type Core struct {
	cfg       Config
	strangers strangers
	conns     map[ID]*conn
	order     []*conn // all of conns, the oldest first
	taken     int     // of them: that others have made
	peers     map[string]*peer
	unused    []unused   // hosts without a connection, the longest so first
	held      []*channel // that somebody holds
	contested []*peer    // that have claims
	isPinned  bool
	isClosing bool
	calls     uint64 // so many were made

	now      core.Time
	next     core.Time // not later than the next moment at which something is due
	out      *Output
	counters Counters
}

// New returns a core that knows nobody. The error wraps ErrConfig.
func New(c Config) (*Core, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	k := &Core{cfg: c.filled(), conns: map[ID]*conn{}, peers: map[string]*peer{}, next: core.Never}
	k.strangers.of = map[netip.Prefix]int{}
	return k, nil
}

// Counters returns what was counted.
func (c *Core) Counters() Counters {
	n := c.counters
	n.Pending, n.Connections, n.Peers = len(c.strangers.all), len(c.order), len(c.peers)
	return n
}

// Incarnation returns the latest incarnation of a host that is known; 0: none.
func (c *Core) Incarnation(host string) uint64 {
	if p := c.peers[host]; p != nil {
		return p.incarnation
	}
	return 0
}

// Deadline returns the next moment at which the core wants to be stepped.
func (c *Core) Deadline() core.Time { return c.next }

// Step takes inputs in order.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.now, c.out = now, out
	for i := range in {
		c.take(&in[i])
		c.judge()
	}
	if now >= c.next {
		c.expire()
	}
	c.out = nil
}

func (c *Core) act(a Action) { c.out.Actions = append(c.out.Actions, a) }

// wakeAt has the core be stepped at t.
func (c *Core) wakeAt(t core.Time) { c.next = c.next.Earlier(t) }

func (c *Core) take(in *Input) {
	switch in.Kind {
	case Arrived:
		c.admit(in.ID, in.Source)
	case Spoke:
		c.strangers.advance(in.ID, spoken)
	case Verified:
		c.strangers.advance(in.ID, verified)
	case Greeted:
		c.greeted(in)
	case Answered:
		if k := c.conns[in.ID]; k != nil && k.state == dialling {
			c.answered(k, in)
		}
	case Ended:
		c.ended(in.ID, in.Err)
	case Finished:
		c.finished(in.ID)
	case Sampled:
		if k := c.conns[in.ID]; k != nil && k.state == up {
			c.sampled(k, in.Sample)
		}
	case Wanted:
		c.wanted(in.Peer, in.Class)
	case Called:
		c.called(in)
	case Held:
		c.hold(in.Peer, in.Class)
	case Released:
		c.release(in.Peer, in.Class)
	case Learned:
		p := c.peer(in.Peer)
		p.isLearned = true
		c.meet(p, in.Incarnation)
		c.tidy(p)
	case Pinned:
		c.isPinned = true
	case Closing:
		c.closing()
	}
}

// isShared reports whether a connection is the only one of its class with its host.
func (c *Core) isShared(k *conn) bool { return k.class < c.cfg.Shared }

// expire does all that is due, and finds out when something will be.
func (c *Core) expire() {
	c.next = core.Never
	c.expireStrangers()
	for _, k := range slices.Clone(c.order) {
		if c.conns[k.id] == k && k.until <= c.now {
			c.due(k)
		}
	}
	c.judge()
	for _, l := range slices.Clone(c.held) {
		c.redial(l)
	}
	c.forget()
	for _, k := range c.order {
		c.wakeAt(k.until)
	}
	for _, p := range c.contested {
		c.wakeAt(p.claimedUntil)
	}
}
