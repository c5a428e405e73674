package manager

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Draft is the question which stripes or parts a communicator could have. Whoever
// plans for a Core answers it with Choose; the Core takes no note of it.
type Draft struct {
	graph *topology.Graph
	group *group // what is asked for, as if it were one group; the Core does not have it
	kind  BundleKind
	count int // that is wanted
	// perRail: no two stripes share a member's link.
	perRail bool
	room    int // that the slots of the members' switches allow
	// stand are the trees that stripes of the bundle have, and indexes these stripes'
	// own; they rise.
	stand   []pathsel.Plan
	indexes []int
	// requests are tried in their order: a later one takes fewer slots.
	requests []pathsel.Request
}

// Graph returns the graph whose numbers the answer has.
func (d *Draft) Graph() *topology.Graph { return d.graph }

// GroupPlan is the groups that a communicator could have.
type GroupPlan struct {
	// Groups are stripes that are apart, or parts by their lowest ranks. Stripes have no
	// Ranks: they have all. One that stands is at its index, unless there are fewer.
	Groups []pathsel.Part
	Fewer  error // why they are fewer than were wanted; nil: they are not
}

// Draft returns the question which stripes or parts a communicator of in's members
// and options could have: those that in.Bundle says, whose Index does not count. Name
// and Secret do not count either.
func (c *Core) Draft(in Create) (Draft, error) {
	in.Bundle.Index = 0
	if in.Bundle.Name == "" {
		in.Bundle.Name = "-"
	}
	err := in.Bundle.Validate()
	if err == nil && in.Bundle.Kind == NoBundle {
		err = fmt.Errorf("neither stripes nor parts are asked for: %w", ErrRequest)
	}
	if err != nil {
		return Draft{}, fmt.Errorf("plan group: %w", err)
	}
	if err := c.checkOptions(&in); err != nil {
		return Draft{}, fmt.Errorf("plan group: %w", err)
	}
	hosts, absent := find(c.graph, in.Members)
	if len(absent) > 0 {
		return Draft{}, fmt.Errorf("plan group: %q: %w", absent[0], ErrUnknownHost)
	}
	g := &group{hosts: hosts, spec: &Spec{
		Members: in.Members, ChunkBytes: in.ChunkBytes, Window: in.Window,
		Functions: in.Functions, Types: in.Types, Purpose: in.Purpose, Bundle: in.Bundle, Protection: in.Protection,
	}}
	d := Draft{graph: c.graph, group: g, kind: in.Bundle.Kind, count: in.Bundle.Count, perRail: in.Bundle.PerRail}
	if b := c.bundles[in.Bundle.Name]; b != nil && d.kind == Stripes && b.Kind == Stripes {
		for i, stripe := range b.groups {
			if stripe != nil && slices.Equal(stripe.spec.Members, in.Members) {
				g.members = stripe.members // whose rails are known
			}
			if stripe != nil && stripe.newest() != nil {
				d.stand, d.indexes = append(d.stand, stripe.newest().plan), append(d.indexes, i)
			}
		}
	}
	if d.perRail {
		d.count = min(d.count, c.leastLinks(g))
	}
	c.requests(&d)
	return d, nil
}

// leastLinks returns the least number of usable links of a member's host, at least 1.
func (c *Core) leastLinks(g *group) int {
	least := MaxBundle
	for rank, host := range g.hosts {
		n := 0
		for _, l := range c.graph.Adjacent(host) {
			if c.view.Usable(l) && (g.members == nil || c.railFault(g, uint32(rank), l) == "") {
				n++
			}
		}
		least = min(least, n)
	}
	return max(least, 1)
}

// requests makes the requests of a draft: with the window that its groups would
// begin with and, where that is too much for some switch, with the smallest.
func (c *Core) requests(d *Draft) {
	g := d.group
	w := c.firstWindow(g)
	d.room = d.count
	if d.kind == Stripes {
		more, free := d.count-len(d.stand), c.leastFree(g)
		for 2*int(w)*more > free && w/2 >= c.cfg.MinWindow {
			w /= 2
		}
		d.room = len(d.stand) + min(more, free/(2*int(w)))
	}
	for {
		g.round = round{window: w}
		r := c.request(g)
		for _, stripe := range d.stand {
			r.Avoid = append(r.Avoid, stripe.Tree)
		}
		c.exclude(g, &r)
		c.shutRails(g, &r)
		d.requests = append(d.requests, r)
		if len(g.round.full) == 0 || w <= c.cfg.MinWindow {
			return
		}
		w = c.cfg.MinWindow
	}
}

// Choose answers the question: with as many groups as were wanted, or the most of
// them that there can be. The error is why there is not one, or ErrRedrawn; load is as
// it was when it returns.
func (d *Draft) Choose(p *pathsel.Planner, view topology.View, load *pathsel.Load) (GroupPlan, error) {
	if view.Graph() != d.graph {
		return GroupPlan{}, ErrRedrawn
	}
	best := d.standing()
	most := max(1, min(d.count, d.room)) // where there is no room for one the planner says why
	var refused error
	for _, r := range d.requests {
		if len(best) >= most {
			break
		}
		groups, err := d.choose(p, view, load, r)
		if err != nil {
			refused = err
		} else if len(groups) > len(best) {
			best = groups
		}
	}
	switch {
	case len(best) == 0:
		return GroupPlan{}, fmt.Errorf("plan group: %w", refused)
	case len(best) == d.count:
		return GroupPlan{Groups: best}, nil
	}
	why := "trees with no link in common"
	switch {
	case d.kind == Parts:
		why = "switches beneath which there are members"
	case len(best) == d.room:
		why = "slots"
	}
	return GroupPlan{best, fmt.Errorf("%w: %d of %d %v, for want of %s", ErrFewer, len(best), d.count, d.kind, why)}, nil
}

// Refused makes of an error of d.Choose a *Refusal, which is as near to a switch as
// can be. An error that is not about the fabric it returns as it is.
func (c *Core) Refused(d *Draft, err error) error {
	var no *pathsel.Refusal
	if !errors.As(err, &no) || d.graph != c.graph {
		return err
	}
	return fmt.Errorf("plan group: %w", c.whyNone(d.group, no, no))
}

// standing returns the stripes that are there, as many as are wanted.
func (d *Draft) standing() (stripes []pathsel.Part) {
	for _, stripe := range d.stand[:min(len(d.stand), d.count)] {
		stripes = append(stripes, pathsel.Part{Plan: stripe})
	}
	return stripes
}

// choose answers one request: over switches that all reduce and, where that
// cannot be, with some that forward.
func (d *Draft) choose(p *pathsel.Planner, view topology.View, load *pathsel.Load, r pathsel.Request) ([]pathsel.Part, error) {
	forward := r.Forward
	r.Forward = false
	groups, err := d.several(p, view, load, r)
	if no := (*pathsel.Refusal)(nil); !forward || !errors.As(err, &no) {
		return groups, err
	}
	r.Forward = true
	if forwarded, again := d.several(p, view, load, r); again == nil {
		return forwarded, nil
	}
	return nil, err
}

func (d *Draft) several(p *pathsel.Planner, view topology.View, load *pathsel.Load, r pathsel.Request) ([]pathsel.Part, error) {
	if d.kind == Parts {
		return p.Parts(view, load, r, d.count)
	}
	stripes := d.standing()
	more, err := p.Stripes(view, load, r, max(1, min(d.count, d.room)-len(stripes)))
	if err != nil {
		return nil, err
	}
	for i, plan := range more.Plans {
		// The first may be the only one that there is.
		if i < more.Apart && !(d.perRail && plan.SharedOwn > 0) || len(stripes) == 0 {
			stripes = append(stripes, pathsel.Part{Plan: plan})
		}
	}
	return d.byIndex(stripes), nil
}

// byIndex puts stripes, of which those that stand are the first, in the order of their
// indexes: the others take the lowest that are free.
func (d *Draft) byIndex(stripes []pathsel.Part) []pathsel.Part {
	known := min(len(d.stand), len(stripes))
	ordered := stripes[known:len(stripes):len(stripes)]
	for i, stripe := range stripes[:known] {
		ordered = slices.Insert(ordered, min(d.indexes[i], len(ordered)), stripe)
	}
	return ordered
}
