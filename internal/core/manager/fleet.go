package manager

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/topology"
)

// device is a switch as the manager knows it.
type device struct {
	node topology.NodeID // topology.NoNode: it has left the fabric
	name string

	up          bool
	incarnation uint64
	capability  topology.Capability
	drained     bool   // by the manager's operator
	refusing    bool   // its agent says that it is being drained
	outlives    bool   // what reduces goes on without its agent
	unattended  bool   // it has no agent, and can only forward
	why         string // it is not up

	// holdings are what groups have here, by group, and used is their sum.
	// They follow from the sites and orphans; see account.
	holdings []agent.Holder
	quota    int    // slots that all groups together may have; 0: all
	ledger   ledger // of the round of sharing
	used     int
	booked   bool         // it is in Core.booked
	orphans  []agent.Hold // that the agent holds and nobody wants; Removes are out
	// timer rings while up, to remove orphans, and otherwise when the agent has
	// been away for too long.
	timer core.Timer[any]
}

// device returns the state of switch n.
func (c *Core) device(n topology.NodeID) *device { return c.fleet[c.graph.SwitchIndex(n)] }

// named returns the state of the switch of that name; nil: the fabric has none.
func (c *Core) named(name string) *device {
	if n, ok := c.graph.Lookup(name); ok && c.graph.IsSwitch(n) {
		return c.device(n)
	}
	return nil
}

// usable reports whether new trees may be put on d.
func (d *device) usable() bool { return d.up && !d.avoided() }

// avoided reports whether d is to be left.
func (d *device) avoided() bool { return d.drained || d.refusing }

// unusable returns what d lacks to be usable; empty: nothing.
func (d *device) unusable() string {
	switch {
	case !d.up:
		return "agent (not connected)"
	case d.avoided():
		return "reservations (drained)"
	}
	return ""
}

// freeFor returns the slots that a group can have on d, its own included: a
// new epoch takes them over.
func (d *device) freeFor(group uint32) int {
	free := d.most() - d.used
	if i, ok := d.holding(group); ok {
		free += d.holdings[i].Slots
	}
	return free
}

// most returns the slots that groups may have on d.
func (d *device) most() int {
	if d.quota > 0 {
		return min(d.quota, d.capability.Slots)
	}
	return d.capability.Slots
}

func (d *device) holding(group uint32) (int, bool) {
	return slices.BinarySearchFunc(d.holdings, group, func(h agent.Holder, g uint32) int { return cmp.Compare(h.Group, g) })
}

// othersThan returns who has slots on d, without one group.
func (d *device) othersThan(group uint32) ([]agent.Holder, int) {
	others := slices.DeleteFunc(slices.Clone(d.holdings), func(h agent.Holder) bool { return h.Group == group })
	return agent.Largest(others)
}

// account makes d's books right after a change of what a group has there: of
// its epochs the one with the most slots counts.
func (c *Core) account(d *device, id uint32) {
	slots := 0
	if g := c.groups[id]; g != nil {
		for _, t := range g.trees() {
			if s := t.site(d); s != nil && s.phase != gone {
				slots = max(slots, 2*int(t.window))
			}
		}
	}
	for _, o := range d.orphans {
		if o.Group == id {
			slots = max(slots, 2*int(o.Window))
		}
	}
	i, found := d.holding(id)
	before := 0
	if found {
		before = d.holdings[i].Slots
	}
	d.used += slots - before
	if g := c.groups[id]; g != nil {
		g.slots += slots - before
		c.book.Add(g.spec.Owner, quota.Slots, slots-before)
	}
	switch {
	case slots == 0 && found:
		d.holdings = slices.Delete(d.holdings, i, i+1)
	case slots > 0 && found:
		d.holdings[i].Slots = slots
	case slots > 0:
		d.holdings = slices.Insert(d.holdings, i, agent.Holder{Group: id, Slots: slots})
	}
	c.changed = c.changed || slots < before
	if slots != before {
		c.mark(d)
	}
}

// mark has the planner be informed of d's slots at the end of the Step.
func (c *Core) mark(d *device) {
	if !d.booked {
		d.booked = true
		c.booked = append(c.booked, d)
	}
}

// eachSite calls f for every site on d that is not gone. The list is taken
// beforehand: f may change everything.
func (c *Core) eachSite(d *device, f func(*group, *tree, *site)) {
	for _, h := range slices.Clone(d.holdings) {
		g := c.groups[h.Group]
		if g == nil {
			continue
		}
		for _, t := range g.trees() {
			if s := t.site(d); s != nil && s.phase != gone {
				f(g, t, s)
			}
		}
	}
}

func (c *Core) switchUp(in SwitchUp) {
	d := c.named(in.Switch)
	if d == nil {
		return
	}
	avoided := d.avoided()
	d.up, d.incarnation, d.capability, d.refusing, d.outlives = true, in.Incarnation, in.Capability, in.Draining, in.Outlives
	c.changed, c.rebuilt = true, true
	c.eachSite(d, func(g *group, t *tree, s *site) { c.meet(g, t, s, in.Holds) })
	c.eachSite(d, func(g *group, _ *tree, _ *site) { c.weigh(g) }) // it may bear another window
	c.adopt(d, in.Holds)
	if d.avoided() != avoided {
		c.avoid(d)
	}
}

// meet compares a site with what its switch says that it holds, and asks again
// what was not answered.
func (c *Core) meet(g *group, t *tree, s *site, holds []agent.Hold) {
	d := s.on
	hold := findHold(holds, g.id, t.epoch)
	switch same := s.incarnation == d.incarnation; {
	case s.phase == reserved:
		s.incarnation = d.incarnation
	case !same:
		c.onPeerLost(g, t, s, "it was restarted")
	case s.phase == preparing:
		i := t.vertexOn(d)
		c.askPrepare(g, t, i, len(t.plan.Tree.Children(i)))
	case hold == nil:
		c.onPeerLost(g, t, s, "it no longer holds the epoch")
	case s.phase == committing:
		i := t.vertexOn(d)
		c.askCommit(t, i, c.configure(g, t)[i])
	case s.phase == committed && !hold.Committed:
		c.onPeerLost(g, t, s, "it holds the epoch uncommitted")
	case s.phase == committed:
		c.reducedBy(t, s, hold.Reducer)
	case s.phase == removing && !t.held:
		c.askRemove(d, g.id, t.epoch)
	}
}

func findHold(holds []agent.Hold, group, epoch uint32) *agent.Hold {
	return core.Find(holds, func(h *agent.Hold) bool { return h.Group == group && h.Epoch == epoch })
}

// adopt takes into d's books, and removes, what it holds without a site.
func (c *Core) adopt(d *device, holds []agent.Hold) {
	before := d.orphans
	d.orphans = nil
	for _, h := range holds {
		if !c.reclaim(d, h) {
			d.orphans = append(d.orphans, h)
		}
	}
	for _, o := range before {
		c.account(d, o.Group)
	}
	for _, o := range d.orphans {
		c.account(d, o.Group)
	}
	c.sweep(d)
}

// siteOf returns the site of a group's epoch on d; nil if there is none.
func (c *Core) siteOf(d *device, id, epoch uint32) (*group, *tree, *site) {
	g := c.groups[id]
	if g == nil {
		return nil, nil, nil
	}
	t := g.treeOf(epoch)
	if t == nil {
		return g, nil, nil
	}
	return g, t, t.site(d)
}

// reclaim reports whether an epoch that d holds has a site there. The site may
// have been given up in d's absence; then it is one to be removed again.
func (c *Core) reclaim(d *device, h agent.Hold) bool {
	g, t, s := c.siteOf(d, h.Group, h.Epoch)
	if s == nil {
		return false
	}
	if s.phase == gone {
		s.phase, s.incarnation = removing, d.incarnation
		c.account(d, g.id)
		if !t.held {
			c.askRemove(d, g.id, t.epoch)
		}
	}
	return true
}

// sweep asks for the removal of d's orphans, and rings again while there are.
func (c *Core) sweep(d *device) {
	if len(d.orphans) == 0 || !d.up {
		c.timers.Set(&d.timer, core.Never)
		return
	}
	for _, o := range d.orphans {
		if !c.kept(d, &o) {
			c.askRemove(d, o.Group, o.Epoch)
		}
	}
	c.timers.Set(&d.timer, c.now.Add(c.cfg.Repeat))
}

// kept reports whether a later manager might yet go on with what is an orphan: it is
// not stored that its tree is none any more.
func (c *Core) kept(d *device, o *agent.Hold) bool {
	_, t, _ := c.siteOf(d, o.Group, o.Epoch)
	return c.stored < c.struck || t != nil && (t.held || t.recorded)
}

// disown strikes an orphan that is gone off d's books.
func (c *Core) disown(d *device, group, epoch uint32) {
	n := len(d.orphans)
	d.orphans = slices.DeleteFunc(d.orphans, func(o agent.Hold) bool {
		return o.Group == group && o.Epoch == epoch
	})
	if len(d.orphans) == n {
		return
	}
	c.account(d, group)
	if len(d.orphans) == 0 {
		c.timers.Set(&d.timer, core.Never)
	}
}

func (c *Core) switchDown(in SwitchDown) {
	d := c.named(in.Switch)
	if d == nil {
		return
	}
	d.up = false
	orphans := d.orphans
	d.orphans = nil
	for _, o := range orphans {
		c.account(d, o.Group)
	}
	c.sweep(d)
	d.why = "it is down"
	if in.Why != "" {
		d.why += ": " + in.Why
	}
	c.desert(d, d.outlives)
}

// desert ends what is on d, which is down; if wait is set, what was committed
// there only after a while.
func (c *Core) desert(d *device, wait bool) {
	c.eachSite(d, func(g *group, t *tree, s *site) {
		if wait && s.phase == committed {
			c.timers.Set(&d.timer, c.now.Add(c.cfg.Absence))
			return
		}
		c.onPeerLost(g, t, s, d.why)
	})
}

// ring is what d's timer is for.
func (c *Core) ring(d *device) {
	if d.up {
		c.sweep(d)
	} else {
		c.desert(d, false)
	}
}

// answer takes an agent's word on a request.
func (c *Core) answer(in Answer) {
	d, r := c.named(in.Switch), &in.Reply
	if d == nil || !d.up || r.Incarnation != d.incarnation {
		return
	}
	if r.Kind == agent.Removed {
		c.disown(d, r.Group, r.Epoch)
	}
	g, t, s := c.siteOf(d, r.Group, r.Epoch)
	if s == nil || s.phase == gone {
		return
	}
	c.touch(g)
	switch {
	case r.Kind == agent.Removed && s.phase == removing:
		s.phase = gone
		c.account(d, g.id)
		c.released(g, t)
	case r.Kind == agent.Removed:
		c.onPeerLost(g, t, s, "somebody else has removed the epoch")
	case r.Kind == agent.Prepared && s.phase == preparing && r.Addr.IsValid():
		s.phase, s.addr = prepared, r.Addr
		if t.left--; t.left == 0 {
			t.stage = TreePrepared
		}
	case r.Kind == agent.Committed && s.phase == committing && s.failed:
		c.onPeerLost(g, t, s, agent.PlaneFailed.String())
	case r.Kind == agent.Committed && s.phase == committing:
		s.phase = committed
		c.reducedBy(t, s, r.Reducer)
		if t.left--; t.left == 0 {
			c.committedAll(g, t)
		}
	case r.Kind == agent.Refused && (s.phase == preparing || s.phase == committing):
		c.refusedBy(g, s, r.Refusal)
	}
}

// refusedBy gives up the tree that a switch has refused.
func (c *Core) refusedBy(g *group, s *site, why *agent.Refusal) {
	if why == nil || why.Cause == agent.Superseded {
		return
	}
	free := -1
	if why.Cause == agent.Slots {
		free = why.Free
	}
	g.round.avoid(s.on, free)
	c.fail(g, &Refusal{
		Reason: ErrRefused, Resource: why.Cause.String(), Switch: s.on.name,
		Need: why.Need, Free: why.Free, Counted: why.Cause.Counted(),
		Holders: why.Holders, More: why.More, Cause: why,
	})
}

// ended takes note of an epoch that a switch has freed by itself.
func (c *Core) ended(in Ended) {
	d, e := c.named(in.Switch), &in.End
	if d == nil || !d.up || e.Incarnation != d.incarnation {
		return
	}
	c.disown(d, e.Group, e.Epoch)
	switch g, t, s := c.siteOf(d, e.Group, e.Epoch); {
	case s == nil || s.phase == gone:
	case s.phase == committing && e.Why == agent.PlaneFailed:
		s.failed = true
	default:
		c.onPeerLost(g, t, s, e.Why.String())
	}
}

func (c *Core) drain(in Drain) {
	d := c.named(in.Switch)
	if d == nil {
		c.reply(Reply{Req: in.Req, Err: fmt.Errorf("drain switch %q: %w", in.Switch, ErrUnknownSwitch)})
		return
	}
	if d.drained != in.On {
		before := d.avoided()
		d.drained = in.On
		c.saveFleet()
		if d.avoided() != before {
			c.avoid(d)
		}
	}
	var err error
	if !in.On && d.up && d.refusing {
		err = fmt.Errorf("undrain switch %s: %w: set /tributary/config/drain to false there by gNMI, or restart the agent; the manager's own drain is over", d.name, ErrAgentDrained)
	}
	c.after(c.seq, action{
		do: sendReply, reply: Reply{Req: in.Req, Err: err},
		what: fmt.Sprintf("drain switch %s (in effect; stored once the store works)", d.name),
	})
}

// avoid replaces the trees on a switch that is to be left, or stops that.
func (c *Core) avoid(d *device) {
	c.changed = true
	c.eachSite(d, func(g *group, t *tree, s *site) {
		c.touch(g)
		switch {
		case t.removing:
		case t == g.active:
			t.unwanted = slices.ContainsFunc(t.sites, func(s site) bool { return s.on.avoided() })
			if t.unwanted {
				g.blocked = false
				c.note(g, "epoch %d to be replaced: switch %s is drained", t.epoch, d.name)
			} else {
				g.refusal, g.reported = nil, ""
			}
		case t == g.building && d.avoided():
			c.note(g, "epoch %d given up: switch %s is drained", t.epoch, d.name)
			c.remove(g, t)
		}
	})
}
