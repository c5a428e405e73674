package manager

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/quota"
)

// check counts everything that the core keeps twice anew, and looks for states
// that must not be.
func (c *Core) check() error {
	if len(c.dirty) != 0 || c.changed {
		return fmt.Errorf("a step ended with %d groups to advance", len(c.dirty))
	}
	if at := c.Deadline(); at <= c.now && c.started {
		return fmt.Errorf("deadline %d is not after %d", at, c.now)
	}
	if len(c.order) != len(c.groups) || !slices.IsSorted(c.order) {
		return fmt.Errorf("order %v of %d groups", c.order, len(c.groups))
	}
	for i := range c.fleet {
		if err := c.checkBooks(c.fleet[i]); err != nil {
			return err
		}
	}
	if err := c.checkPlaces(); err != nil {
		return err
	}
	if err := c.checkBundles(); err != nil {
		return err
	}
	if err := c.checkTurns(); err != nil {
		return err
	}
	for _, id := range c.order {
		if err := c.checkGroup(c.groups[id]); err != nil {
			return fmt.Errorf("group %d: %w", id, err)
		}
	}
	return nil
}

// checkPlaces is the slow oracle of the index of trees: those that stand are all
// in it, nothing else is, and nothing on them is down.
func (c *Core) checkPlaces() error {
	standing := 0
	for id, g := range c.groups {
		for _, t := range g.trees() {
			if t.removing {
				continue
			}
			standing++
			if int(t.number) >= len(c.tenants) || c.tenants[t.number] != (tenant{g, t}) {
				return fmt.Errorf("group %d, epoch %d: it is not tree %d of the index", id, t.epoch, t.number)
			}
			if err := t.plan.Tree.Validate(c.view); err != nil {
				return fmt.Errorf("group %d, epoch %d: %w", id, t.epoch, err)
			}
		}
	}
	if n := len(c.tenants) - len(c.vacant); n != standing {
		return fmt.Errorf("%d trees are in the index, %d stand", n, standing)
	}
	if len(c.booked) > 0 {
		return fmt.Errorf("the slots of %d switches were not reported", len(c.booked))
	}
	return nil
}

// checkBundles is the slow oracle of names and bundles: those of the groups that are
// not released, and no others.
func (c *Core) checkBundles() error {
	names, stripes, planning := map[string]uint32{}, map[string]int{}, map[string]int{}
	for id, g := range c.groups {
		of := g.spec.Bundle
		switch {
		case g.released && g.bundle != nil:
			return fmt.Errorf("group %d is released, and in %v", id, of)
		case g.released:
			continue
		}
		names[g.spec.Name] = id
		if of.Kind == NoBundle {
			continue
		}
		stripes[of.Name]++
		if b := c.bundles[of.Name]; b == nil || g.bundle != b || b.groups[of.Index] != g {
			return fmt.Errorf("group %d is not %v", id, of)
		}
		if g.plan != 0 {
			planning[of.Name]++
		}
	}
	if !maps.Equal(names, c.names) || len(stripes) != len(c.bundles) {
		return fmt.Errorf("the names are %v, %d of them of bundles; known are %v and %d", names, len(stripes), c.names, len(c.bundles))
	}
	for name, n := range stripes {
		there := 0
		for _, g := range c.bundles[name].groups {
			if g != nil {
				there++
			}
		}
		if there != n || planning[name] > 1 {
			return fmt.Errorf("bundle %q has %d groups, of which %d are planned; it says %d", name, n, planning[name], there)
		}
	}
	return nil
}

// checkBooks is the slow oracle of the slots on one switch.
func (c *Core) checkBooks(d *device) error {
	most := map[uint32]int{}
	for id, g := range c.groups {
		for _, t := range g.trees() {
			for _, s := range t.sites {
				if s.on == d && s.phase != gone {
					most[id] = max(most[id], 2*int(t.window))
				}
			}
		}
	}
	for _, o := range d.orphans {
		most[o.Group] = max(most[o.Group], 2*int(o.Window))
	}
	sum := 0
	for group, slots := range most {
		if !slices.Contains(d.holdings, agent.Holder{Group: group, Slots: slots}) {
			return fmt.Errorf("switch %s: group %d has %d slots, the books say %v", d.name, group, slots, d.holdings)
		}
		sum += slots
	}
	if len(most) != len(d.holdings) || sum != d.used {
		return fmt.Errorf("switch %s: %d slots in use by %d groups, the books say %d and %v", d.name, sum, len(most), d.used, d.holdings)
	}
	return nil
}

func (c *Core) checkGroup(g *group) error {
	watching, transports := 0, [3]int{}
	for _, m := range g.members {
		transports[m.transport]++
		if m.watching {
			watching++
		}
		if m.entered > g.entered {
			return fmt.Errorf("a member is in epoch %d, the group knows %d", m.entered, g.entered)
		}
	}
	switch {
	case watching != g.watching || transports != g.transports:
		return fmt.Errorf("%d watch, counted %d; ways %v, counted %v", watching, g.watching, transports, g.transports)
	case len(g.history) > c.cfg.MaxHistory:
		return fmt.Errorf("%d changes remembered", len(g.history))
	case g.blocked && !slices.Contains(c.blocked, g.id):
		return fmt.Errorf("blocked for ever")
	case g.plan != 0 && g.building != nil:
		return fmt.Errorf("plans while it builds")
	}
	last := uint32(0)
	for _, t := range g.trees() {
		if g.released && g.until <= c.now && !t.removing {
			return fmt.Errorf("its time is over, and epoch %d stays", t.epoch)
		}
		if err := c.checkTree(g, t); err != nil {
			return fmt.Errorf("epoch %d: %w", t.epoch, err)
		}
		if t == g.building && t.epoch <= last {
			return fmt.Errorf("epoch %d after %d", t.epoch, last)
		}
		last = max(last, t.epoch)
	}
	return nil
}

func (c *Core) checkTree(g *group, t *tree) error {
	live, missing := 0, 0
	for _, s := range t.sites {
		if s.phase != gone {
			live++
		}
		if s.phase == preparing || s.phase == committing {
			missing++
		}
	}
	switch {
	case t.epoch%2 != 0 || t.epoch > g.epoch:
		return fmt.Errorf("last given is %d", g.epoch)
	case live == 0 && !t.held:
		return fmt.Errorf("it is on no switch")
	case t.recorded && t.removing:
		return fmt.Errorf("recorded and being removed")
	case t == g.building && (t.removing || t.stage > TreePrepared):
		return fmt.Errorf("building in stage %v", t.stage)
	case t == g.building && t.stage == TreePlanned && t.sites[0].phase != reserved && missing != t.left:
		return fmt.Errorf("%d answers missing, counted %d", missing, t.left)
	case t == g.active && (t.stage != TreeActive || t.removing || !t.recorded || live != len(t.sites)):
		return fmt.Errorf("active in stage %v on %d of %d switches", t.stage, live, len(t.sites))
	case t != g.active && t != g.building && t.stage != TreeDraining:
		return fmt.Errorf("draining in stage %v", t.stage)
	}
	if t.stage == TreeDraining && !t.removing {
		behind := 0
		for _, m := range g.members {
			if m.entered <= t.epoch {
				behind++
			}
		}
		if behind != t.behind || behind == 0 {
			return fmt.Errorf("%d members behind, counted %d", behind, t.behind)
		}
	}
	return nil
}

// checkTurns counts who waits, who plans and who builds, and what owners have.
func (c *Core) checkTurns() error {
	building, planning, waiting := 0, 0, 0
	groups, slots := map[string]int{}, map[string]int{}
	devices := map[*device]bool{}
	for _, d := range c.fleet {
		devices[d] = true
	}
	for _, g := range c.groups {
		if g.plan != 0 {
			planning++
		}
		if g.plan != 0 || g.building != nil {
			building++
		}
		if g.request != nil {
			waiting++
		}
		if g.turn || g.request != nil && (!g.request.Waits() || !c.mayPlan(g)) {
			return fmt.Errorf("group %d has a turn that it has not used, or waits for what it is not to have", g.id)
		}
		groups[g.spec.Owner]++
		for _, t := range g.trees() {
			for i := range t.sites {
				devices[t.sites[i].on] = true
			}
		}
	}
	drafts := map[string]int{}
	for _, d := range c.drafts {
		if d.request == nil {
			planning++
		} else {
			waiting++
			drafts[d.owner]++
		}
	}
	for d := range devices {
		for _, h := range d.holdings {
			if g := c.groups[h.Group]; g != nil {
				slots[g.spec.Owner] += h.Slots
			}
		}
	}
	if building != c.building || planning != c.planning || waiting != c.turns.Len() {
		return fmt.Errorf("%d groups build, counted %d; %d plans are out, counted %d; %d wait, counted %d", building, c.building, planning, c.planning, waiting, c.turns.Len())
	}
	if waiting > 0 && building < c.cfg.MaxBuilding && planning < c.cfg.MaxPlanning {
		return fmt.Errorf("%d wait, while %d build and %d plans are out", waiting, building, planning)
	}
	all := [...]int{len(c.groups), 0, 0}
	for owner := range groups {
		all[1] += slots[owner]
		if g, s := c.book.Use(quota.ByHost, owner, quota.Groups), c.book.Use(quota.ByHost, owner, quota.Slots); owner != "" && (g != groups[owner] || s != slots[owner]) {
			return fmt.Errorf("%q has %d groups and %d slots, in the books %d and %d", owner, groups[owner], slots[owner], g, s)
		}
	}
	for _, n := range drafts {
		all[2] += n
	}
	for r, n := range all {
		if is := c.book.Use(quota.All, "", quota.Resource(r)); is != n {
			return fmt.Errorf("all have %d %v, in the books %d", n, quota.Resource(r), is)
		}
	}
	return nil
}
