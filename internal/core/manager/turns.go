package manager

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/fairqueue"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/pathsel"
)

// waiter is who waits for a turn at the planner: a group, or who has asked for one.
type waiter struct {
	group *group
	draft *draftTurn
}

// draftTurn is a Turn that was asked for.
type draftTurn struct {
	req     uint64
	owner   string
	request *fairqueue.Request[waiter] // nil: it has its turn
}

// flow returns where an owner's requests wait: hosts of a label together.
func (c *Core) flow(owner string) (class string, weight int, flow string) {
	if label, weight := c.book.Label(owner); label != "" {
		return "label " + label, weight, owner
	}
	return "host " + owner, 1, owner
}

// takeTurn has g wait for a plan if it is to have one, and no longer if it is not; and asks
// for the plan when it has its turn.
func (c *Core) takeTurn(g *group) {
	if g.turn {
		g.turn = false
		switch why := c.foreign(g); {
		case !c.mayPlan(g):
		case why != nil:
			c.refuse(g, why)
		default:
			c.pay(g)
			c.plan(g)
		}
		return
	}
	switch may := c.mayPlan(g); {
	case !may && g.request != nil:
		c.turns.Remove(g.request)
		g.request = nil
	case may && g.request == nil:
		class, weight, flow := c.flow(g.spec.Owner)
		g.request = c.turns.Push(class, weight, flow, len(g.members), waiter{group: g})
	}
}

// mayPlan reports whether g is to be planned as soon as it has a turn. Where its owner's
// plans of this second are used up it is not before they have come back.
func (c *Core) mayPlan(g *group) bool {
	if !c.wantsPlan(g) || c.now < g.notBefore {
		return false
	}
	if at := c.book.Allows(c.now, g.spec.Owner); at > c.now && !g.paid {
		g.notBefore = at
		return false
	}
	return true
}

// pay counts a plan of g, which mayPlan has allowed.
func (c *Core) pay(g *group) {
	if !g.paid {
		_ = c.book.Spend(c.now, g.spec.Owner) // it is allowed
	}
	g.paid = false
}

// planAgain asks for a plan out of turn. The owner's next turns come later for it.
func (c *Core) planAgain(g *group) {
	class, weight, flow := c.flow(g.spec.Owner)
	c.turns.Charge(class, weight, flow, len(g.members))
	c.plan(g)
}

// nextTurn gives a turn to who waits, and reports whether it did.
func (c *Core) nextTurn() bool {
	if c.planning >= c.cfg.MaxPlanning || c.building >= c.cfg.MaxBuilding {
		return false
	}
	next, ok := c.turns.Pop()
	if !ok {
		return false
	}
	if d := next.draft; d != nil {
		d.request = nil
		c.book.Add(d.owner, quota.Waiting, -1)
		c.planning++
		c.reply(Reply{Req: d.req})
		return true
	}
	next.group.request, next.group.turn = nil, true
	c.touch(next.group)
	return true
}

// turnAsked has a draft wait for its turn.
func (c *Core) turnAsked(in Turn) {
	if c.drafts[in.Req] != nil {
		return // it waits already, or has its turn
	}
	err := c.book.Check(in.Owner, quota.Waiting, 1)
	if err == nil {
		err = c.book.Spend(c.now, in.Owner)
	}
	if err != nil {
		c.reply(Reply{Req: in.Req, Err: fmt.Errorf("plan group: %w", err)})
		return
	}
	c.book.Add(in.Owner, quota.Waiting, 1)
	d := &draftTurn{req: in.Req, owner: in.Owner}
	class, weight, flow := c.flow(in.Owner)
	d.request = c.turns.Push(class, weight, flow, in.Cost, waiter{draft: d})
	c.drafts[in.Req] = d
}

func (c *Core) turnOver(in TurnOver) {
	d := c.drafts[in.Req]
	if d == nil {
		return
	}
	delete(c.drafts, in.Req)
	if d.request == nil {
		c.planning--
		return
	}
	c.turns.Remove(d.request)
	c.book.Add(d.owner, quota.Waiting, -1)
}

// cancelPlan has the plan of g that is out, if there is one, not be made: nobody waits for
// it.
func (c *Core) cancelPlan(g *group) {
	if g.plan == 0 {
		return
	}
	plan := g.plan
	c.out.Cancels = append(c.out.Cancels, Cancel{g.id, plan})
	g.plan, g.review = 0, false
	c.touch(g)
	c.touchSisters(g)
	if c.reviewing == plan {
		c.reviewing = 0
		c.nextReview()
	}
}

// count keeps Core.building and Core.planning.
func (c *Core) count(g *group) {
	if plans := g.plan != 0; plans != g.plans {
		g.plans = plans
		c.planning += step(plans)
	}
	if builds := g.plan != 0 || g.building != nil; builds != g.builds {
		g.builds = builds
		c.building += step(builds)
	}
}

func step(up bool) int {
	if up {
		return 1
	}
	return -1
}

// slotsBeyond returns how many slots a tree of g would take beyond its owner's quota, with
// the window of the round. Its own on the same switches are taken over.
func (c *Core) slotsBeyond(g *group, t *pathsel.Tree) int {
	more := 0
	for _, v := range t.Vertices {
		d, has := c.device(v.Switch), 0
		if i, ok := d.holding(g.id); ok {
			has = d.holdings[i].Slots
		}
		more += max(0, 2*int(g.round.window)-has)
	}
	return more - c.book.Room(g.spec.Owner, quota.Slots)
}

// overQuota returns why g cannot have a tree within its owner's quota, or nil.
func (c *Core) overQuota(g *group, t *pathsel.Tree) *Refusal {
	beyond := c.slotsBeyond(g, t)
	if beyond <= 0 {
		return nil
	}
	room := c.book.Room(g.spec.Owner, quota.Slots)
	return &Refusal{
		Reason: ErrNoTree, Resource: "quota of slots", Need: room + beyond, Free: room, Counted: true,
		Cause: c.book.Check(g.spec.Owner, quota.Slots, room+beyond),
	}
}

// affords reports whether the owner of g has room for twice its share, beside what was
// shared out in this round.
func (r *sharing) affords(g *group) bool {
	return r.growth(g) <= r.book.Room(g.spec.Owner, quota.Slots)
}

// growth returns the slots that doubling g's share takes.
func (r *sharing) growth(g *group) int { return 2 * int(g.share) * len(g.active.sites) }

// QuotaUse is what a label has, or all have.
type QuotaUse struct {
	Label  string // empty: all
	Has    [quota.Plans]int
	Limits quota.Limits
}

// QuotaUses returns what all have, and each label.
func (c *Core) QuotaUses() []QuotaUse {
	uses := []QuotaUse{{Limits: c.cfg.Quotas.All}}
	for _, l := range c.cfg.Quotas.Labels {
		uses = append(uses, QuotaUse{Label: l.Name, Limits: l.Limits})
	}
	for i := range uses {
		scope := quota.ByLabel
		if i == 0 {
			scope = quota.All
		}
		for r := range quota.Plans {
			uses[i].Has[r] = c.book.Use(scope, uses[i].Label, r)
		}
	}
	return uses
}

// QuotaRefused returns how often quotas have refused something.
func (c *Core) QuotaRefused() [quota.Scopes][quota.Resources]uint64 { return c.book.Refused() }

// Waiting returns how many plans wait for their turns.
func (c *Core) Waiting() int { return c.turns.Len() }
