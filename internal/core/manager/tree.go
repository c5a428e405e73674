package manager

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// tree is one epoch of a group.
type tree struct {
	epoch  uint32
	window uint32
	plan   pathsel.Plan
	stage  Stage
	sites  []site    // by vertex
	left   int       // answers that are missing for the next stage
	until  core.Time // planned and prepared: when it is given up; removing: when Removes are repeated

	// From commit on:
	members   []netip.AddrPort    // data addresses, by rank
	rankIndex []uint16            // child index at the leaf switch, by rank
	upIndex   []uint16            // child index at the parent, by vertex
	links     [][]topology.LinkID // to the children, at the vertex's end, by vertex and child index

	listed  bool                      // it is in Core.places and counts for the planner: it is not being removed
	number  uint32                    // listed: in Core.places
	without string                    // not whole: the first of its links that the graph does not have
	upper   map[int32]topology.LinkID // of edges that switches forward: the link at the parent's end; see upperLink

	reducers []TreeReducer // what its sites have, for Offers; nil: to be made

	recorded bool // members may know of it: it belongs into the record
	removing bool // Removes are out, or about to be; otherwise a draining tree still runs
	held     bool // Removes wait until it is stored that the tree is given up
	unwanted bool // active, but to be replaced
	// makeshift: something was missing in the fabric when it was planned, so that
	// there may be a better one once it is back.
	makeshift bool
	inside    int // active: members that have entered it
	behind    int // draining and not removing: members that have not entered a later epoch
}

// site is a tree on one of its switches.
type site struct {
	on          *device
	incarnation uint64
	phase       phase
	failed      bool             // committing: it has given the epoch up, and is to answer why
	addr        netip.AddrPort   // from prepared on
	reducer     topology.Reducer // from committed on, where the agent reports
}

// phase is how far a site has come.
type phase uint8

const (
	reserved   phase = iota // accounted here; the switch does not know yet
	preparing               // Prepare is out
	prepared                // has answered
	committing              // Commit is out
	committed               // has answered
	removing                // Remove is out
	gone                    // holds nothing
)

// site returns t's place on d, or nil.
func (t *tree) site(d *device) *site {
	if i := t.vertexOn(d); i >= 0 {
		return &t.sites[i]
	}
	return nil
}

// vertexOn returns the vertex of t on d, or -1.
func (t *tree) vertexOn(d *device) int {
	return slices.IndexFunc(t.sites, func(s site) bool { return s.on == d })
}

// begin gives a tree its epoch. The switches hear of it when that is stored.
func (c *Core) begin(g *group, epoch uint32, plan pathsel.Plan) {
	t := &tree{epoch: epoch, window: c.borne(&plan.Tree, g.round.window), plan: plan, stage: TreePlanned, until: core.Never, makeshift: g.round.impaired}
	t.upper = upperLinks(&plan.Tree)
	t.sites = make([]site, len(plan.Tree.Vertices))
	for i, v := range plan.Tree.Vertices {
		d := c.device(v.Switch)
		t.sites[i] = site{on: d, incarnation: d.incarnation}
	}
	g.epoch, g.building = epoch, t
	c.enlist(g, t)
	for i := range t.sites {
		c.account(t.sites[i].on, g.id)
	}
	c.note(g, "epoch %d planned, root %s, %d switches, window %d", epoch, t.sites[0].on.name, len(t.sites), t.window)
	c.after(c.saveTrees(g), action{do: sendPrepares, group: g.id, epoch: epoch})
}

// prepare asks every switch of a planned tree.
func (c *Core) prepare(g *group, t *tree) {
	t.left = len(t.sites)
	t.until = c.now.Add(c.cfg.Answer)
	children := t.plan.Tree.AllChildren()
	for i := range t.sites {
		t.sites[i].phase = preparing
		c.askPrepare(g, t, i, len(children[i]))
	}
}

func (c *Core) askPrepare(g *group, t *tree, i, children int) {
	s := &t.sites[i]
	c.out.Prepares = append(c.out.Prepares, Prepare{s.on.name, agent.Prepare{
		Incarnation: s.incarnation, Group: g.id, Epoch: t.epoch,
		Children: children, Window: t.window, ChunkBytes: g.spec.ChunkBytes,
		Functions: g.spec.Functions, Types: g.spec.Types, Protection: g.spec.Protection,
		// Long enough for the Commit to come, be it at the last moment.
		Lease: 3 * c.cfg.Answer,
	}})
}

// tryCommit sends the Commits of a prepared tree, if all members watch.
func (c *Core) tryCommit(g *group) {
	t := g.building
	if t.stage != TreePrepared || t.members != nil || g.watching < len(g.members) {
		return
	}
	if why := c.foreign(g); why != nil { // a member may have named another since the plan was made
		c.fail(g, why)
		return
	}
	t.members = make([]netip.AddrPort, len(g.members))
	for rank := range g.members {
		t.members[rank] = c.memberFrom(g, t, uint32(rank))
	}
	if why := c.unreachable(t); why != nil {
		if d := c.named(why.Switch); d != nil {
			g.round.avoid(d, -1) // another switch may be reached
		}
		c.fail(g, why)
		return
	}
	configs := c.configure(g, t)
	for i := range configs {
		if err := configs[i].Validate(); err != nil {
			c.fail(g, &Refusal{Reason: ErrNoTree, Resource: "configuration", Switch: t.sites[i].on.name, Cause: err})
			return
		}
	}
	t.left = len(t.sites)
	t.until = c.now.Add(c.cfg.Answer)
	for i := range configs {
		t.sites[i].phase = committing
		c.askCommit(t, i, configs[i])
	}
	c.note(g, "epoch %d prepared", t.epoch)
}

func (c *Core) askCommit(t *tree, i int, cfg switchreduce.Config) {
	s := &t.sites[i]
	c.out.Commits = append(c.out.Commits, Commit{s.on.name, agent.Commit{Incarnation: s.incarnation, Config: cfg}})
}

// index gives every child of t its index, and remembers the link to it.
func (t *tree) index(children [][]pathsel.Child) {
	t.rankIndex = make([]uint16, len(t.plan.Tree.Leaves))
	t.upIndex = make([]uint16, len(t.sites))
	t.links = make([][]topology.LinkID, len(children))
	for v, of := range children {
		t.links[v] = make([]topology.LinkID, len(of))
		for i, child := range of {
			if child.Vertex < 0 {
				t.rankIndex[child.Lowest] = uint16(i)
				t.links[v][i] = t.leafUpper(child.Lowest)
			} else {
				t.upIndex[child.Vertex] = uint16(i)
				t.links[v][i] = t.vertexUpper(int(child.Vertex))
			}
		}
	}
}

// configure returns what each switch has to know, by vertex, and numbers the
// children.
func (c *Core) configure(g *group, t *tree) []switchreduce.Config {
	children := t.plan.Tree.AllChildren()
	t.index(children)
	configs := make([]switchreduce.Config, len(t.sites))
	for i := range configs {
		cfg := &configs[i]
		*cfg = switchreduce.Config{
			Group: g.id, Epoch: t.epoch, Protection: g.spec.Protection,
			Window: t.window, ChunkBytes: g.spec.ChunkBytes,
			Children: make([]switchreduce.Child, len(children[i])),
			Parent:   c.parentOf(t, i), Index: t.upIndex[i],
			Probes: c.cfg.SwitchProbes(), Lease: c.cfg.Lease,
		}
		if cfg.Parent.IsValid() {
			cfg.Cookie, cfg.Key = g.secrets(t, switchEdge(int32(i)))
		}
		for k, child := range children[i] {
			to := &cfg.Children[k]
			to.Lowest = child.Lowest
			if child.Vertex < 0 {
				to.Addr = c.memberAt(t, child.Lowest)
				to.Cookie, to.Key = g.secrets(t, child.Lowest)
			} else {
				to.Addr = c.childAt(t, child.Vertex)
				to.Cookie, to.Key = g.secrets(t, switchEdge(child.Vertex))
			}
		}
	}
	return configs
}

// switchEdge returns the number of the edge from a tree's switch, a vertex, to its parent. That from a
// member has the member's rank.
func switchEdge(vertex int32) uint32 { return ^uint32(vertex) }

// secrets returns the cookie of the two ends of an edge, 48 bits and not zero, and, where packets are
// protected, their key: both follow by HMAC-SHA-256 from the group's secret, its number, the epoch,
// and the edge.
func (g *group) secrets(t *tree, edge uint32) (cookie wire.Cookie, key wire.Secret) {
	cookie = max(1, wire.Cookie(binary.BigEndian.Uint64(g.secret("cookie", t, edge))&wire.CookieMask))
	if g.spec.Protection != wire.Plain {
		key = wire.Secret(g.secret("key", t, edge))
	}
	return cookie, key
}

func (g *group) secret(of string, t *tree, edge uint32) []byte {
	mac := hmac.New(sha256.New, g.spec.Secret[:])
	var in [12]byte
	binary.BigEndian.PutUint32(in[:], g.id)
	binary.BigEndian.PutUint32(in[4:], t.epoch)
	binary.BigEndian.PutUint32(in[8:], edge)
	mac.Write(in[:])
	mac.Write([]byte(of))
	return mac.Sum(nil)
}

// committedAll has a tree recorded, and offered when it is.
func (c *Core) committedAll(g *group, t *tree) {
	t.recorded = true
	t.until = core.Never
	c.after(c.saveTrees(g), action{do: sendOffers, group: g.id, epoch: t.epoch})
}

// activate offers a tree that every switch has committed to.
func (c *Core) activate(g *group, t *tree) {
	old := g.active
	g.building, g.active = nil, t
	t.stage = TreeActive
	g.round, g.refusal, g.reported, g.lost, g.starved = round{}, nil, "", nil, nil
	c.settled(g, t)
	c.note(g, "epoch %d active", t.epoch)
	for rank := range g.members {
		c.offer(g, t, uint32(rank))
	}
	if old != nil {
		c.supersede(g, old)
	}
	c.touch(g)
}

// lose gives up a tree that was offered.
func (c *Core) lose(g *group, t *tree, why string) {
	c.note(g, "epoch %d lost: %s", t.epoch, why)
	for rank := range g.members {
		if m := &g.members[rank]; m.watching {
			c.out.Withdrawals = append(c.out.Withdrawals, Withdrawal{
				Group: g.id, Rank: uint32(rank), Stream: m.stream, Epoch: t.epoch, Why: why,
			})
		}
	}
	if t == g.active {
		g.lost = t
		c.backOff(g)
	}
	c.remove(g, t)
}

// remove takes a tree of any stage from its switches. One that is recorded is
// struck from the record first: no later manager may go on with a tree that is
// being removed.
func (c *Core) remove(g *group, t *tree) {
	if t.removing {
		return
	}
	if g.building == t {
		g.building = nil
	}
	if g.active == t {
		g.active = nil
	}
	if !slices.Contains(g.draining, t) {
		g.draining = append(g.draining, t)
	}
	t.stage, t.removing, t.unwanted = TreeDraining, true, false
	if t.listed {
		c.delist(t)
		c.out.Unloads = append(c.out.Unloads, t.plan.Tree)
	}
	for i := range t.sites {
		s := &t.sites[i]
		switch {
		case s.phase == gone:
		case s.phase == reserved || !s.on.up || s.on.incarnation != s.incarnation:
			// Nothing was asked; or what there may be is found, and removed,
			// when the switch comes back.
			s.phase = gone
			c.account(s.on, g.id)
		default:
			s.phase = removing
		}
	}
	if t.recorded {
		t.recorded, t.held, t.until = false, true, core.Never
		c.after(c.saveTrees(g), action{do: sendRemoves, group: g.id, epoch: t.epoch})
	} else {
		c.askRemoves(g, t)
	}
	c.released(g, t)
	c.touch(g)
}

// askRemoves sends, for the first time or again, what Removes are unanswered.
func (c *Core) askRemoves(g *group, t *tree) {
	t.held = false
	t.until = c.now.Add(c.cfg.Repeat)
	for i := range t.sites {
		if s := &t.sites[i]; s.phase == removing {
			c.askRemove(s.on, g.id, t.epoch)
		}
	}
}

func (c *Core) askRemove(d *device, group, epoch uint32) {
	c.out.Removes = append(c.out.Removes, Remove{d.name, agent.Remove{
		Incarnation: d.incarnation, Group: group, Epoch: epoch,
	}})
}

// released forgets a tree that is on no switch any more.
func (c *Core) released(g *group, t *tree) {
	if t.held {
		return
	}
	for i := range t.sites {
		if t.sites[i].phase != gone {
			return
		}
	}
	t.stage = TreeGone
	g.draining = slices.DeleteFunc(g.draining, func(x *tree) bool { return x == t })
	c.note(g, "epoch %d gone", t.epoch)
	c.weigh(g)
	c.touch(g)
}

// onPeerLost deals with a switch that no longer holds t, for a reason of its own.
func (c *Core) onPeerLost(g *group, t *tree, s *site, why string) {
	s.phase = gone
	c.account(s.on, g.id)
	c.touch(g)
	switch {
	case t.removing:
		c.released(g, t)
	case t == g.building:
		c.fail(g, &Refusal{Reason: ErrNoAnswer, Switch: s.on.name, Cause: errors.New(why)})
	default:
		c.lose(g, t, fmt.Sprintf("switch %s: %s", s.on.name, why))
	}
}

// overdue deals with what has taken too long.
func (c *Core) overdue(g *group) {
	if t := g.building; t != nil && c.now >= t.until {
		c.giveUp(g, t)
	}
	for _, t := range g.draining {
		if t.removing && c.now >= t.until {
			c.askRemoves(g, t)
		}
	}
}

// giveUp ends a tree that waited too long for switches, or for members.
func (c *Core) giveUp(g *group, t *tree) {
	var silent *device
	for i := range t.sites {
		if s := &t.sites[i]; s.phase == preparing || s.phase == committing {
			g.round.avoid(s.on, -1)
			silent = s.on
		}
	}
	if silent == nil {
		c.note(g, "epoch %d given up: %d members do not watch", t.epoch, len(g.members)-g.watching)
		c.remove(g, t)
		return
	}
	c.fail(g, &Refusal{Reason: ErrNoAnswer, Switch: silent.name, Cause: fmt.Errorf("none within %v", c.cfg.Answer)})
}
