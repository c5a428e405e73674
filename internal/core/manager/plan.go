package manager

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// round is one search for a tree: it ends with an active tree, or with the
// group refused.
type round struct {
	window   uint32 // that is tried; 0: the round has not begun
	attempts int    // that have failed at a switch
	refused  []refusedBy
	last     *Refusal // what the last of them said

	// Of the plan that is out:
	full      []*device // excluded because they lack slots
	suspected bool      // one was excluded on suspicion
	impaired  bool      // something that may come back was missing
	changes   uint64    // Core.changes when it went out
}

// refusedBy is a switch that failed in this round.
type refusedBy struct {
	on   *device
	free int // slots it has, if it was for these; otherwise -1: not again in this round
}

// excludes reports whether the round avoids d for a tree that needs so many
// slots, and whether it is for the slots.
func (r *round) excludes(d *device, need int) (excluded, slots bool) {
	for _, x := range r.refused {
		if x.on == d && x.free < need {
			return true, x.free >= 0
		}
	}
	return false, false
}

// avoid keeps d off the round's trees.
func (r *round) avoid(d *device, free int) {
	r.refused = append(r.refused, refusedBy{d, free})
}

// plan asks for a tree.
func (c *Core) plan(g *group) {
	r := &g.round
	if r.window == 0 {
		*r = round{window: c.firstWindow(g)}
	}
	req := c.request(g)
	switch {
	case g.active != nil:
		req.Old = g.active.plan.Tree
	case g.lost != nil:
		req.Old = g.lost.plan.Tree
	}
	req.Avoid = g.apartFrom()
	if req.Bytes > 0 || req.Collective == pathsel.Barrier {
		req.HostSpeeds = c.speedsOf(g)
	}
	c.exclude(g, &req)
	c.shutRails(g, &req)
	c.plans++
	g.plan = c.plans
	c.count(g)
	c.touchSisters(g) // who wait for it
	c.out.Plans = append(c.out.Plans, PlanRequest{Group: g.id, Plan: g.plan, Request: req})
}

// notifyOwn adds to the plans that are asked for what the groups have: at the end of
// the step, since the planner counts first what the step has changed.
func (c *Core) notifyOwn() {
	for i := range c.out.Plans {
		p := &c.out.Plans[i]
		p.Own, p.OwnSlots = nil, nil
		g := c.groups[p.Group]
		if g == nil || g.plan != p.Plan {
			continue // it is asked for no longer
		}
		p.OwnSlots = c.ownSlots(g)
		for _, t := range g.trees() {
			if !t.removing {
				p.Own = append(p.Own, t.plan.Tree)
			}
		}
	}
}

// request returns what g asks of a tree, wherever it is to be.
func (c *Core) request(g *group) pathsel.Request {
	return pathsel.Request{
		Members: g.hosts, Functions: g.spec.Functions, Types: g.spec.Types,
		Slots: 2 * int(g.round.window), ChunkBytes: g.spec.ChunkBytes + g.spec.Protection.Overhead(), Protected: g.spec.Protection != wire.Plain, Purpose: g.spec.purpose(),
		// A group that runs over switches does not leave them for a forecast.
		Forward: !c.cfg.NoForward, Slim: c.cfg.Slim, Hosts: !c.cfg.NoHosts && g.active == nil,
	}
}

// exclude keeps the switches off a plan that cannot be on its tree.
func (c *Core) exclude(g *group, req *pathsel.Request) {
	r := &g.round
	r.full, r.suspected, r.changes = nil, false, c.changes
	r.impaired = impaired(c.view)
	for _, d := range c.fleet {
		if d.unattended && !d.up || d.usable() && !d.capability.CanReduce() {
			req.Idle = append(req.Idle, d.node)
			continue
		}
		excluded, slots := r.excludes(d, req.Slots)
		switch {
		case !d.usable():
			excluded, slots = true, false
		case excluded:
		case g.suspected(d, c.now):
			excluded, r.suspected = true, true
		case d.freeFor(g.id) < req.Slots:
			excluded, slots = true, true
		}
		if excluded {
			req.Exclude = append(req.Exclude, d.node)
		}
		if slots {
			r.full = append(r.full, d)
		} else if excluded {
			r.impaired = true
		}
	}
}

// impaired reports whether anything is down.
func impaired(view topology.View) bool {
	for range view.NodesDown() {
		return true
	}
	for range view.LinksDown() {
		return true
	}
	return false
}

// ownSlots returns what g has on the switches of its trees.
func (c *Core) ownSlots(g *group) []SlotUse {
	var all []SlotUse
	for _, t := range g.trees() {
		for i := range t.sites {
			d := t.sites[i].on
			if k, ok := d.holding(g.id); ok {
				all = append(all, SlotUse{d.node, d.holdings[k].Slots})
			}
		}
	}
	slices.SortFunc(all, func(x, y SlotUse) int { return cmp.Compare(x.Switch, y.Switch) })
	return slices.Compact(all)
}

func (c *Core) planned(in Planned) {
	if in.Plan <= c.void {
		return // the planner has begun anew, and counts it no more
	}
	if c.reviewing == in.Plan {
		c.reviewing = 0
		defer c.nextReview()
	}
	g := c.groups[in.Group]
	if g == nil || g.plan == 0 || g.plan != in.Plan {
		c.unload(in)
		return
	}
	review := g.review && g.active != nil && !g.active.unwanted
	g.plan, g.review = 0, false
	c.touch(g)
	c.touchSisters(g)
	if review && !c.reviewed(g, &in) {
		c.unload(in)
		g.round = round{}
		return
	}
	if in.Err != nil {
		c.planRefused(g, in.Err)
		return
	}
	if g.watching < len(g.members) || g.active != nil && !g.active.unwanted && !review {
		c.unload(in)
		return
	}
	c.fit(g, &in.Chosen.Tree)
	if why := c.overQuota(g, &in.Chosen.Tree); why != nil {
		c.unload(in)
		c.refuse(g, why)
		return
	}
	if why := c.overtaken(g, &in.Chosen.Tree); why != nil {
		c.unload(in)
		c.fail(g, why)
		return
	}
	epoch := g.nextEpoch()
	if epoch == 0 {
		c.unload(in)
		c.refuse(g, &Refusal{Reason: ErrEpochs})
		return
	}
	c.begin(g, epoch, in.Chosen)
}

// nextEpoch returns the next epoch that g can be given; 0: they are used up.
func (g *group) nextEpoch() uint32 {
	epoch := (uint64(max(g.epoch, g.entered)) | 1) + 1
	if epoch > 1<<32-2 {
		return 0
	}
	return uint32(epoch)
}

// fit makes the window of g's round as small as it has to be for a tree, on whose
// switches others may have taken slots meanwhile.
func (c *Core) fit(g *group, t *pathsel.Tree) {
	for _, v := range t.Vertices {
		for d := c.device(v.Switch); d.freeFor(g.id) < 2*int(g.round.window) && g.round.window > c.smallest(g); {
			g.round.window /= 2
		}
	}
	for c.slotsBeyond(g, t) > 0 && g.round.window > c.smallest(g) {
		g.round.window /= 2
	}
}

// unload lets go of a tree that came too late or cannot be used.
func (c *Core) unload(in Planned) {
	if in.Err == nil {
		c.out.Unloads = append(c.out.Unloads, in.Chosen.Tree)
	}
}

// overtaken returns why a tree that was planned cannot be used any more, or
// nil. Its switch is then avoided in this round.
func (c *Core) overtaken(g *group, t *pathsel.Tree) *Refusal {
	if err := t.Validate(c.view); err != nil {
		return &Refusal{Reason: ErrNoTree, Resource: "path", Cause: err}
	}
	if !spans(t, g.hosts) {
		return &Refusal{Reason: ErrNoTree, Resource: "path", Cause: errOtherMembers}
	}
	for rank := range g.members {
		if why := c.railFault(g, uint32(rank), t.Leaves[rank].Link); why != "" {
			return &Refusal{Reason: ErrNoTree, Resource: "rail", Cause: errors.New(why)}
		}
	}
	need := 2 * int(g.round.window)
	for _, v := range t.Vertices {
		d := c.device(v.Switch)
		if why := d.unusable(); why != "" {
			return &Refusal{Reason: ErrNoTree, Resource: why, Switch: d.name}
		}
		if d.freeFor(g.id) < need {
			return c.fullRefusal(g, d)
		}
	}
	return nil
}

// spans reports whether the leaves of t are these hosts, by rank.
func spans(t *pathsel.Tree, hosts []topology.NodeID) bool {
	return slices.EqualFunc(t.Leaves, hosts, func(l pathsel.Leaf, n topology.NodeID) bool { return l.Host == n })
}

var errOtherMembers = errors.New("the tree that was chosen has other members than the group")

// fullRefusal says that a switch lacks slots.
func (c *Core) fullRefusal(g *group, d *device) *Refusal {
	why := &Refusal{
		Reason: ErrNoTree, Resource: agent.Slots.String(), Switch: d.name,
		Need: 2 * int(g.round.window), Free: d.freeFor(g.id), Counted: true,
	}
	why.Holders, why.More = d.othersThan(g.id)
	return why
}

// planRefused goes on after there was no tree: with what was avoided on
// suspicion, then with a smaller window, and at last not at all.
func (c *Core) planRefused(g *group, err error) {
	r := &g.round
	var faster *pathsel.HostsFaster
	if errors.As(err, &faster) {
		c.refuse(g, &Refusal{Reason: ErrHostsFaster, Cause: faster})
		return
	}
	var no *pathsel.Refusal
	slots := errors.As(err, &no) && no.Resource == pathsel.Slots || len(r.full) > 0
	switch {
	case r.suspected:
		c.trustAgain(g)
	case slots && r.window/2 >= c.cfg.MinWindow:
		r.window /= 2
		c.planAgain(g)
	default:
		why := c.whyNone(g, no, err)
		c.starve(g, why)
		c.refuse(g, why)
	}
}

// trustAgain has g avoid nobody on suspicion any more, since there is no other way. Where
// that comes again and again, as behind a switch that is up and forwards nothing, the
// waits grow: each such tree costs its members the time until they notice.
func (c *Core) trustAgain(g *group) {
	if c.now.Sub(g.trusted) > c.cfg.Suspicion {
		g.trusts = 0
	}
	g.suspects, g.trusted = nil, c.now
	if g.trusts++; g.trusts == 1 {
		c.planAgain(g)
		return
	}
	g.round = round{}
	wait := c.cfg.delay(g.trusts)
	g.notBefore = c.now.Add(wait)
	c.note(g, "every tree has a switch that members have lost one behind: the next in %v", wait)
	c.touch(g)
}

// whyNone reports why there is no tree for g, as near to a switch as can be.
func (c *Core) whyNone(g *group, no *pathsel.Refusal, err error) *Refusal {
	if no == nil {
		return &Refusal{Reason: ErrNoTree, Cause: err}
	}
	if cause := c.cutOff(g); cause != nil {
		return &Refusal{Reason: ErrNoTree, Resource: "rail", Cause: cause}
	}
	why := &Refusal{Reason: ErrNoTree, Resource: no.Resource.String(), Cause: err}
	if c.graph.IsSwitch(no.Switch) {
		d := c.device(no.Switch)
		why.Switch = d.name
		if unusable := d.unusable(); unusable != "" {
			why.Resource = unusable
			return why
		}
	}
	switch no.Resource {
	case pathsel.Children, pathsel.Chunk:
		why.Need, why.Free, why.Counted = no.Need, no.Free, true
	case pathsel.Path, pathsel.Slots:
		if len(g.round.full) > 0 {
			return c.fullRefusal(g, c.nearest(g, no))
		}
		why.Need, why.Free, why.Counted = no.Need, no.Free, no.Resource == pathsel.Slots
	}
	if g.round.last != nil {
		return g.round.last
	}
	return why
}

// nearest returns, of the switches without enough slots, the one that a
// refusal is about: that which it names, one beside the member that it names,
// or else the one with the most that is free.
func (c *Core) nearest(g *group, no *pathsel.Refusal) *device {
	full := g.round.full
	if c.graph.IsSwitch(no.Switch) && slices.Contains(full, c.device(no.Switch)) {
		return c.device(no.Switch)
	}
	if c.graph.IsHost(no.Member) {
		for _, l := range c.graph.Adjacent(no.Member) {
			if n := c.graph.Across(l, no.Member); c.graph.IsSwitch(n) && slices.Contains(full, c.device(n)) {
				return c.device(n)
			}
		}
	}
	return slices.MaxFunc(full, func(a, b *device) int { return cmp.Compare(a.freeFor(g.id), b.freeFor(g.id)) })
}

// fail ends an attempt, be there a tree already or not, and with too many of
// them the round.
func (c *Core) fail(g *group, why *Refusal) {
	if t := g.building; t != nil {
		c.note(g, "epoch %d given up: %v", t.epoch, why)
		c.remove(g, t)
	} else {
		c.note(g, "plan given up: %v", why)
	}
	if g.active != nil && !g.active.unwanted {
		g.round = round{} // it was to be better, not needed
		c.backOff(g)
		return
	}
	g.round.last = why
	if g.round.attempts++; g.round.attempts >= c.cfg.MaxAttempts {
		c.refuse(g, why)
		return
	}
	c.backOff(g)
}

// maxDoublings bounds the wait between two plans that were refused for a reason
// which something has to change.
const maxDoublings = 6

// refuse ends the round without a tree. Where the reason may pass by itself
// the next one begins after a while, otherwise when something has changed.
func (c *Core) refuse(g *group, why *Refusal) {
	outdated := c.changed || c.changes != g.round.changes
	g.round = round{}
	c.backOff(g)
	// A switch had no room for a reason that is not in the books, and that may pass.
	hidden := why.Resource == agent.Slots.String() && why.Counted && why.Free >= why.Need
	if !hidden && (why.Reason == ErrNoTree || why.Reason == ErrEpochs || why.Reason == ErrHostsFaster) {
		// The change that ends this should not have to wait for long; and it
		// may have come while the plan was being made.
		g.notBefore = c.now.Add(c.cfg.delay(min(g.failures, maxDoublings)))
		if !outdated {
			g.blocked = true
			c.blocked = append(c.blocked, g.id)
			c.shareSoon()
		}
	}
	c.declare(g, why)
}

// declare informs the members why there is no tree.
func (c *Core) declare(g *group, why *Refusal) {
	g.refusal = why
	text := why.Error()
	if g.reported == text {
		return
	}
	g.reported = text
	c.note(g, "refused: %s", text)
	for rank := range g.members {
		if m := &g.members[rank]; m.watching {
			c.out.Notices = append(c.out.Notices, Notice{Group: g.id, Rank: uint32(rank), Stream: m.stream, Err: why})
		}
	}
}

// backOff puts the next attempt off. It also lets news of one failure that
// travel different ways arrive before the next plan.
func (c *Core) backOff(g *group) {
	g.failures++
	g.notBefore = c.now.Add(c.cfg.delay(g.failures))
	c.touch(g)
}

// delay returns how long to wait after so many failures.
func (c Config) delay(failures int) time.Duration {
	d := c.RetryMin
	for i := 1; i < failures && d < c.RetryMax; i++ {
		d *= 2
	}
	return min(d, c.RetryMax)
}

// supersede lets a tree that is no longer offered run until all members have
// left it.
func (c *Core) supersede(g *group, t *tree) {
	if g.active == t {
		g.active = nil
	}
	t.stage = TreeDraining
	t.until = core.Never
	g.draining = append(g.draining, t)
	t.behind = 0
	for i := range g.members {
		if g.members[i].entered <= t.epoch {
			t.behind++
		}
	}
	if t.behind == 0 {
		c.remove(g, t)
	}
}
