package peering

import (
	"container/list"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Core decides for one host. Its methods are not safe for concurrent use.
type Core struct {
	cfg       Config
	strangers strangers
	conns     map[ID]*conn
	paths     int // of them: that were added to others
	taken     int // of them: that others have made
	shares    shares
	shareOf   map[string]*share // by the name of the host, without a label
	peers     map[string]*peer
	unused    list.List // of *peer: without a connection, the longest so first
	eased     []*peer   // contested, and have lost a connection since they were judged
	isPinned  bool
	isClosing bool
	added     uint64 // connections
	calls     uint64 // of this host's

	checks  core.Timers[*conn]    // when connections are looked at, and calls fail
	retries core.Timers[*channel] // when held ones that could not be connected are dialled again
	rejoins core.Timers[*pair]    // when paths are dialled again
	probes  core.Timers[*peer]    // when contested ones are given to who claims them
	ages    core.Timers[*peer]    // when unused ones are forgotten

	now      core.Time
	out      *Output
	counters Counters
}

// New returns a core that knows nobody. The error wraps ErrConfig.
func New(c Config) (*Core, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	k := &Core{cfg: c.filled(), conns: map[ID]*conn{}, peers: map[string]*peer{}, shareOf: map[string]*share{}}
	k.strangers.of = map[netip.Prefix]int{}
	return k, nil
}

// Counters returns what was counted.
func (c *Core) Counters() Counters {
	n := c.counters
	n.Pending, n.Connections, n.Paths, n.Peers = len(c.strangers.all), len(c.conns)-c.paths, c.paths, len(c.peers)
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
func (c *Core) Deadline() core.Time {
	return min(c.strangers.next(), c.checks.Next(), c.retries.Next(), c.rejoins.Next(), c.probes.Next(), c.ages.Next())
}

// Step takes inputs in order.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.now, c.out = now, out
	for i := range in {
		c.take(&in[i])
		c.judge()
	}
	c.expire()
	c.out = nil
}

func (c *Core) act(a Action) { c.out.Actions = append(c.out.Actions, a) }

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
			if k.of != nil {
				c.answeredPath(k, in)
			} else {
				c.answered(k, in)
			}
		}
	case Ended:
		c.ended(in.ID, in.Err)
	case Finished:
		c.finished(in.ID)
	case Sampled:
		if k := c.conns[in.ID]; k != nil && k.of == nil && k.state == up {
			c.sampled(k, in.Sample)
		}
	case Wanted:
		c.wanted(in.Peer, in.Class)
	case Held:
		c.hold(in.Peer, in.Class)
	case Released:
		c.release(in.Peer, in.Class)
	case Learned:
		p := c.peer(in.Peer)
		p.isLearned = true
		c.ages.Set(&p.age, core.Never)
		c.meet(p, in.Incarnation)
		c.tidy(p)
	case Paired:
		c.paired(in)
	case Renew:
		c.renew(in.ID, in.Err)
	case Pinned:
		c.isPinned = true
	case Closing:
		c.closing()
	}
}

// expire does all that is due.
func (c *Core) expire() {
	c.expireStrangers()
	for t := c.checks.Due(c.now); t != nil; t = c.checks.Due(c.now) {
		c.due(t.Of)
	}
	c.judge()
	for t := c.probes.Due(c.now); t != nil; t = c.probes.Due(c.now) {
		c.overdue(t.Of)
	}
	for t := c.retries.Due(c.now); t != nil; t = c.retries.Due(c.now) {
		c.redial(t.Of)
	}
	for t := c.rejoins.Due(c.now); t != nil; t = c.rejoins.Due(c.now) {
		c.callPath(t.Of)
	}
	for t := c.ages.Due(c.now); t != nil; t = c.ages.Due(c.now) {
		c.forget(t.Of)
	}
}
