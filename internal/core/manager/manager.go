package manager

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/fairqueue"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Core is the state of one manager. It is not for concurrent use.
type Core struct {
	cfg   Config
	graph *topology.Graph
	view  topology.View

	groups    map[uint32]*group
	order     []uint32           // the groups' numbers, rising
	names     map[string]uint32  // of groups that are not released
	bundles   map[string]*bundle // that have such groups, by name
	lastGroup uint32             // the highest number ever given
	term      uint64             // the driver's
	plans     uint64             // the highest number of a plan
	void      uint64             // the highest number of a plan in another graph

	holders   map[netip.Addr]topology.NodeID // who has which address in holdersOf
	holdersOf *topology.Graph

	fleet       []*device                 // by switch index of graph
	drainedAway []string                  // switches that are drained, and not in the fabric
	speeds      map[string]topology.Speed // of hosts, as they report
	booked      []*device                 // whose slots have changed in this Step

	places  *pathsel.Index // where trees are that are not being removed
	tenants []tenant       // by number in places
	vacant  []uint32       // numbers without a tree

	reviews   []uint32        // groups whose trees are to be reviewed, one after the other
	reviewing uint64          // the plan of the review that is out; 0: none
	quiet     core.Timer[any] // rings when the fabric has been quiet for Config.Settle

	returns   map[string]*comeback // of hosts that got a link back, by name
	returning core.Timer[any]      // rings when trees of such hosts are to be reviewed

	uneven   []*group                // whose windows are not what they could use
	starving []*group                // that lack slots for a first tree
	building int                     // groups that have a plan out, or a tree being prepared
	planning int                     // plans that are out, and turns that are not over
	turns    fairqueue.Queue[waiter] // who waits for a plan, until there are fewer of these
	drafts   map[uint64]*draftTurn   // turns that were asked for and are not over, by request
	book     *quota.Book             // what hosts have
	sharing  core.Timer[any]         // rings when slots are to be shared out
	shared   uint64                  // rounds of that
	resizes  Resizes

	seq     uint64   // of the last record
	stored  uint64   // up to which records are stored
	waiting []action // what waits for records to be stored
	struck  uint64   // the last record that strikes trees which were dropped by Restore
	broken  error    // of the store, since its last failure; nil: it works

	timers  core.Timers[any] // of *group and *device; of quiet and sharing, nil
	dirty   []*group         // to be advanced in this Step
	blocked []uint32         // groups whose refusal stands until something changes
	changed bool             // something has changed that may end a refusal
	rebuilt bool             // more than slots has changed: what exists, or what it can do
	changes uint64           // how often changed was so
	started bool

	now core.Time // of the current Step
	out *Output   // of the current Step
}

// New returns the core of a manager of graph that knows no group yet.
func New(graph *topology.Graph, cfg Config) (*Core, error) {
	return Restore(graph, cfg, nil)
}

// Step takes what has happened, in order, and adds to out what is to be done.
func (c *Core) Step(now core.Time, batch []Input, out *Output) {
	c.now, c.out = now, out
	if !c.started {
		c.start()
	}
	for _, in := range batch {
		c.take(in)
		c.settle()
	}
	for t := c.timers.Due(now); t != nil; t = c.timers.Due(now) {
		switch of := t.Of.(type) {
		case *group:
			c.touch(of)
		case *device:
			c.ring(of)
		default:
			switch t {
			case &c.sharing:
				c.shareOut()
			case &c.returning:
				c.reviewReturns()
			default:
				c.beginReviews()
			}
		}
		c.settle()
	}
	c.notifySlots()
	c.notifyOwn()
	c.out = nil
}

// notifySlots reports the switches whose slots have changed.
func (c *Core) notifySlots() {
	for i, d := range c.booked {
		d.booked = false
		if d.node != topology.NoNode {
			c.out.Slots = append(c.out.Slots, SlotUse{d.node, d.used})
		}
		c.booked[i] = nil
	}
	c.booked = c.booked[:0]
}

// Deadline returns when the core wants to be stepped next.
func (c *Core) Deadline() core.Time {
	if !c.started && len(c.groups) > 0 {
		return 0
	}
	return c.timers.Next()
}

func (c *Core) take(in Input) {
	switch in := in.(type) {
	case Create:
		c.create(in)
	case Watch:
		c.watch(in)
	case Unwatch:
		c.unwatch(in)
	case Report:
		c.report(in)
	case Release:
		c.releaseAsked(in)
	case Planned:
		c.planned(in)
	case SwitchUp:
		c.switchUp(in)
	case SwitchDown:
		c.switchDown(in)
	case Answer:
		c.answer(in)
	case Ended:
		c.ended(in)
	case TopologyChanged:
		c.topologyChanged(in)
	case Redrawn:
		c.redrawn(in)
	case Turn:
		c.turnAsked(in)
	case TurnOver:
		c.turnOver(in)
	case Drain:
		c.drain(in)
	case Keep:
		c.keep(in)
	case Stored:
		c.storedUpTo(in.Seq)
	case Unstored:
		c.unstored(in)
	}
}

// start begins with what Restore has found.
func (c *Core) start() {
	c.started = true
	for _, id := range c.order {
		g := c.groups[id]
		for _, t := range g.trees() {
			c.out.Loads = append(c.out.Loads, t.plan.Tree)
		}
		g.until = c.now
		if !g.released {
			g.until = c.now.Add(c.cfg.Abandon)
		}
		if g.dropped {
			c.struck = c.saveTrees(g)
		}
		c.miss(g)
		c.weigh(g)
		c.touch(g)
	}
	c.settle()
}

// View returns the fabric whose numbers the Core has.
func (c *Core) View() topology.View { return c.view }

// touch has g advanced before the Step goes on.
func (c *Core) touch(g *group) {
	if !g.dirty {
		g.dirty = true
		c.dirty = append(c.dirty, g)
	}
}

// settle advances what was touched, until nothing is left to do now.
func (c *Core) settle() {
	for {
		if c.changed {
			c.changed = false
			c.changes++
			c.unblock()
			c.shareSoon()
			if c.rebuilt {
				c.timers.Set(&c.quiet, c.now.Add(c.cfg.Settle))
			}
			c.rebuilt = false
		}
		if len(c.dirty) == 0 && !c.nextTurn() {
			return
		}
		if len(c.dirty) == 0 {
			continue
		}
		g := c.dirty[0]
		c.dirty[0] = nil
		c.dirty = c.dirty[1:]
		g.dirty = false
		if c.groups[g.id] != g {
			continue
		}
		c.advance(g)
		if c.groups[g.id] == g {
			c.timers.Set(&g.timer, c.deadline(g))
		}
	}
}

// unblock lets the refused groups try again, after a moment: changes come
// together, and a tree that was planned after the first would make do with less.
// That hosts are faster does not depend on slots.
func (c *Core) unblock() {
	stay := c.blocked[:0]
	for _, id := range c.blocked {
		g := c.groups[id]
		switch {
		case g == nil || !g.blocked:
		case !c.rebuilt && g.refusal != nil && g.refusal.Reason == ErrHostsFaster:
			stay = append(stay, id)
		default:
			if c.rebuilt {
				g.starved = nil
			}
			g.blocked = false
			g.notBefore = max(g.notBefore, c.now.Add(c.cfg.RetryMin))
			c.touch(g)
		}
	}
	c.blocked = stay
}

// advance does for g what the state and the time ask for.
func (c *Core) advance(g *group) {
	c.overdue(g)
	if !g.released && g.watching == 0 && c.now >= g.until {
		c.note(g, "abandoned: nobody watches it")
		c.release(g, c.cfg.ReleaseGrace)
	}
	switch {
	case g.released:
		c.dissolve(g)
	case g.building != nil:
		c.tryCommit(g)
	}
	c.takeTurn(g)
	c.count(g)
}

// wantsPlan reports whether g is to be given a tree, be it later.
func (c *Core) wantsPlan(g *group) bool {
	return !g.released && len(g.absent) == 0 && !g.blocked && !c.isBusy(g) && (g.active == nil || g.active.unwanted || g.review)
}

// isBusy reports whether g cannot be planned for a while: it is already, or one of its sisters is,
// a member is away, or too many of its trees are left.
func (c *Core) isBusy(g *group) bool {
	return g.building != nil || g.plan != 0 || g.sisterPlans() || g.watching < len(g.members) || len(g.draining) >= c.cfg.MaxDraining
}

// deadline returns when g wants to be advanced. It is never in the past: each
// of its moments is dealt with in advance.
func (c *Core) deadline(g *group) core.Time {
	at := core.Never
	if t := g.building; t != nil {
		at = at.Earlier(t.until)
	}
	for _, t := range g.draining {
		if t.removing {
			at = at.Earlier(t.until)
		}
	}
	if g.until > c.now && (g.released || g.watching == 0) {
		at = at.Earlier(g.until)
	}
	if c.wantsPlan(g) && g.request == nil {
		at = at.Earlier(g.notBefore)
	}
	return at
}

// topologyChanged gives up the trees that the fabric no longer has. It looks at
// those alone that are where something went down.
func (c *Core) topologyChanged(in TopologyChanged) {
	delta, err := topology.Diff(c.view, in.View)
	if err != nil || in.View.Graph() != c.graph {
		return
	}
	before := c.view
	c.view, c.out.View = in.View, in.View
	if !delta.Structural() {
		return // plans to come count it; no tree moves for it
	}
	c.changed, c.rebuilt = true, true
	for _, n := range delta.Capabilities {
		if before.Capability(n).Speed != c.view.Capability(n).Speed {
			c.rethink(n)
		}
	}
	for _, l := range delta.LinksUp {
		for _, end := range c.graph.Link(l).Ends {
			if c.graph.IsHost(end.Node) {
				c.comesBack(c.graph.Name(end.Node))
			}
		}
	}
	for _, number := range c.touched(&delta) {
		g, t := c.tenants[number].group, c.tenants[number].tree
		if t == nil || t.removing {
			continue
		}
		if err := t.plan.Tree.Validate(c.view); err != nil {
			c.giveWay(g, t, err)
		}
	}
}
