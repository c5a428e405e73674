package manager

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

func (c *Core) watch(in Watch) {
	g, err := c.watched(&in)
	if err != nil {
		c.close(in.Group, in.Rank, in.Stream, fmt.Errorf("watch group %d as rank %d: %w", in.Group, in.Rank, err))
		return
	}
	m := &g.members[in.Rank]
	if m.watching && m.stream != in.Stream {
		c.close(g.id, in.Rank, m.stream, ErrReplaced)
	} else if !m.watching {
		m.watching = true
		g.watching++
	}
	m.stream = in.Stream
	if in.Speed.Known() {
		c.speeds[g.spec.Members[in.Rank]] = in.Speed
	}
	addr := netip.AddrPortFrom(in.DataAddr.Addr().Unmap(), in.DataAddr.Port())
	if g.blocked && (addr != m.addr || in.Proven != m.proven) {
		c.changed = true
		g.retryAfterRails(c.now.Add(c.cfg.RetryMin))
	}
	m.addr, m.proven = addr, in.Proven
	c.railed(g, in.Rank, in.Rails, in.OnlyRails)
	c.moved(g, in.Rank)
	c.enter(g, in.Rank, in.Entered)
	c.weigh(g)
	if in.Rank == 0 {
		c.notifyLinks(g)
	}
	switch {
	case g.active != nil:
		c.offer(g, g.active, in.Rank)
	case g.refusal != nil:
		c.out.Notices = append(c.out.Notices, Notice{Group: g.id, Rank: in.Rank, Stream: m.stream, Err: g.refusal})
	}
	c.touch(g)
}

// HostSpeed returns how fast a host reduces: as its node in the fabric has it, and
// otherwise as it has reported itself.
func (c *Core) HostSpeed(n topology.NodeID) topology.Speed {
	if s := c.graph.Speed(n); s.Known() || !c.graph.IsHost(n) {
		return s
	}
	return c.speeds[c.graph.Name(n)]
}

// speedsOf returns what the hosts of members have reported, of those of which the fabric
// has nothing; nil: nothing.
func (c *Core) speedsOf(g *group) (all map[topology.NodeID]topology.Speed) {
	if len(c.speeds) == 0 {
		return nil
	}
	for rank, n := range g.hosts {
		if is := c.speeds[g.spec.Members[rank]]; is.Known() && !c.graph.Speed(n).Known() {
			if all == nil {
				all = make(map[topology.NodeID]topology.Speed, len(g.hosts))
			}
			all[n] = is
		}
	}
	return all
}

// watched returns the group of a Watch, or what is wrong with it.
func (c *Core) watched(in *Watch) (*group, error) {
	g := c.groups[in.Group]
	switch {
	case g == nil:
		return nil, ErrUnknownGroup
	case !strings.HasPrefix(g.spec.Name, in.Of):
		return nil, fmt.Errorf("group %d is not of %q: %w", in.Group, in.Of, ErrUnknownGroup)
	case g.released:
		return nil, ErrReleased
	case uint64(in.Rank) >= uint64(len(g.members)):
		return nil, fmt.Errorf("%w, the group has %d members", ErrUnknownRank, len(g.members))
	case !in.DataAddr.IsValid() || in.DataAddr.Port() == 0:
		return nil, fmt.Errorf("data address %v: %w", in.DataAddr, ErrRequest)
	}
	return g, nil
}

// moved gives up the trees that know another data address of a member, whose leaf
// switch would take nothing from it, and those over a rail of its that carries nothing.
func (c *Core) moved(g *group, rank uint32) {
	for _, t := range g.trees() {
		if t.removing {
			continue
		}
		why := c.railFault(g, rank, t.plan.Tree.Leaves[rank].Link)
		if why == "" && (t.members == nil || t.members[rank] == c.memberFrom(g, t, rank)) {
			continue
		}
		if why == "" {
			why = fmt.Sprintf("rank %d has a new data address", rank)
		}
		if t == g.building {
			c.note(g, "epoch %d given up: %s", t.epoch, why)
			c.remove(g, t)
		} else {
			c.lose(g, t, why)
		}
	}
}

func (c *Core) unwatch(in Unwatch) {
	g := c.groups[in.Group]
	if g == nil || uint64(in.Rank) >= uint64(len(g.members)) {
		return
	}
	m := &g.members[in.Rank]
	if !m.watching || m.stream != in.Stream {
		return
	}
	m.watching = false
	g.watching--
	switch {
	case in.Over: // the first member's word is enough: the lowest rank may be dead
		c.note(g, "over, as rank %d reports", in.Rank)
		c.release(g, 0)
	case g.watching == 0:
		g.until = c.now.Add(c.cfg.Abandon)
	}
	c.cancelPlan(g)
	c.touch(g)
}

func (c *Core) report(in Report) {
	g := c.groups[in.Group]
	if g == nil || uint64(in.Rank) >= uint64(len(g.members)) || int(in.Transport) >= len(g.transports) {
		return
	}
	m := &g.members[in.Rank]
	if in.Stream != 0 && (!m.watching || m.stream != in.Stream) {
		return
	}
	g.transports[m.transport]--
	m.transport = in.Transport
	g.transports[m.transport]++
	c.demands(g, in.Rank, in.Demand)
	c.enter(g, in.Rank, in.Entered)
	if t := g.treeOf(in.Lost); in.Lost != 0 && t != nil && t != g.building && !t.removing {
		c.suspect(g, t, in.Rank, in.Silent)
		c.lose(g, t, c.lossOf(t, &in))
	}
	c.touch(g)
}

// enter takes note of the epoch that a member is in.
func (c *Core) enter(g *group, rank, epoch uint32) {
	m := &g.members[rank]
	before := m.entered
	if epoch <= before {
		return
	}
	m.entered = epoch
	g.entered = max(g.entered, epoch)
	for _, t := range g.trees() {
		switch {
		case t.removing:
		case t == g.building:
			if epoch >= t.epoch {
				// The members would refuse the offer.
				c.note(g, "epoch %d given up: rank %d is in epoch %d", t.epoch, rank, epoch)
				c.remove(g, t)
				c.backOff(g)
			}
		case t == g.active:
			if epoch > t.epoch {
				// Nobody enters it any more, and one has left it.
				c.note(g, "epoch %d left: rank %d is in epoch %d", t.epoch, rank, epoch)
				c.supersede(g, t)
				c.backOff(g)
			} else if epoch == t.epoch {
				if t.inside++; t.inside == len(g.members) {
					c.note(g, "epoch %d entered by all", t.epoch)
					g.failures = 0
					c.weigh(g)
				}
			}
		case before <= t.epoch && epoch > t.epoch:
			if t.behind--; t.behind == 0 {
				c.remove(g, t)
			}
		}
	}
}

// suspect is a switch that a lost tree makes one avoid.
type suspect struct {
	on    *device
	until core.Time
	rank  uint32 // of the member that has lost the tree
}

// lossOf says, for people, who has lost a tree and why, and on which links that may
// be: a member watches those above it as far as it is the lowest rank beneath.
func (c *Core) lossOf(t *tree, in *Report) string {
	text := fmt.Sprintf("rank %d has lost it", in.Rank)
	if in.Reason != "" {
		text += ": " + in.Reason
	}
	tree := t.plan.Tree
	at := tree.Leaves[in.Rank].Vertex
	if in.Silent {
		return fmt.Sprintf("%s; it is beneath %s", text, t.sites[at].on.name)
	}
	lowest := tree.Lowest()
	var links []string
	for lowest[at] == in.Rank && tree.Vertices[at].Parent >= 0 {
		above := tree.Vertices[at].Parent
		links = append(links, fmt.Sprintf("%s and %s", t.sites[at].on.name, t.sites[above].on.name))
		at = above
	}
	if len(links) > 0 {
		text += "; it is between " + strings.Join(links, ", or ")
	}
	return text
}

// maxSuspects bounds the switches that one group avoids on suspicion.
const maxSuspects = 16

// suspect avoids, for a while, the switch that a member's loss points at: its
// parent if that was silent, otherwise the one above it.
func (c *Core) suspect(g *group, t *tree, rank uint32, silent bool) {
	at := t.plan.Tree.Leaves[rank].Vertex
	if !silent {
		if at = t.plan.Tree.Vertices[at].Parent; at < 0 {
			return
		}
	}
	if c.railFault(g, rank, t.plan.Tree.Leaves[rank].Link) != "" {
		return // which explains it
	}
	s := suspect{t.sites[at].on, c.now.Add(c.cfg.Suspicion), rank}
	if known := core.Find(g.suspects, func(known *suspect) bool { return known.on == s.on }); known != nil {
		*known = s
		return
	}
	if len(g.suspects) == maxSuspects {
		g.suspects = g.suspects[1:]
	}
	g.suspects = append(g.suspects, s)
}

// suspected reports whether g avoids a switch on suspicion.
func (g *group) suspected(d *device, now core.Time) bool {
	return core.Find(g.suspects, func(s *suspect) bool { return s.on == d && now < s.until }) != nil
}

// offer offers one member an active tree.
func (c *Core) offer(g *group, t *tree, rank uint32) {
	m := &g.members[rank]
	if !m.watching {
		return
	}
	cookie, key := g.secrets(t, rank)
	c.out.Offers = append(c.out.Offers, Offer{
		Group: g.id, Rank: rank, Stream: m.stream,
		Epoch: t.epoch, Cookie: cookie, Protection: g.spec.Protection, Key: key, Window: t.window,
		Parent: c.leafOf(t, rank), Source: c.memberAt(t, rank).Addr(), Index: t.rankIndex[rank],
		Probes: c.cfg.Probes, Idle: c.cfg.Lease / 3, Reducers: t.reducedOn(),
	})
}
