package whatif

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// placed is a group that has a tree.
type placed struct {
	group *Group
	req   pathsel.Request
	plan  pathsel.Plan
}

// desk is a question being answered.
type desk struct {
	*Config
	planner *pathsel.Planner
	view    topology.View
	load    *pathsel.Load
	index   *pathsel.Index
	placed  map[uint32]*placed // by number: the others from 1 on, and the group, 0
	report  *Report
}

// Run answers a question. An answer without a tree is no error: it is in the
// report. Errors are about the question.
func Run(c Config) (*Report, error) {
	if c.Model == (pathsel.Model{}) {
		c.Model = pathsel.DefaultModel()
	}
	planner, err := pathsel.NewPlanner(c.Graph, pathsel.Config{Model: c.Model})
	if err != nil {
		return nil, err
	}
	d := &desk{
		Config: &c, planner: planner, view: c.Graph.View(), load: pathsel.NewLoad(c.Graph), index: pathsel.NewIndex(c.Graph),
		placed: map[uint32]*placed{}, report: newReport(c.Graph),
	}
	changes, err := c.changes()
	if err != nil {
		return nil, err
	}
	after, err := topology.NewOverlay(c.Graph).With(changes...)
	if err != nil {
		return nil, err
	}
	for i := range c.Others {
		if err := d.placeOther(uint32(i) + 1); err != nil {
			return nil, fmt.Errorf("group %q: %w", c.Others[i].Name, err)
		}
	}
	if err := d.placeGroup(); err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		d.breakDown(after.View())
	}
	return d.report, nil
}

// placeOther plans a group that is there already.
func (d *desk) placeOther(id uint32) error {
	g := &d.Others[id-1]
	req, err := d.request(g)
	if err != nil {
		return err
	}
	plan, err := d.planner.PlanReachable(d.view, d.load, req)
	o := OtherReport{Name: g.Name, Members: len(req.Members)}
	switch {
	case errors.Is(err, pathsel.ErrNoTree):
		o.Refused = err.Error()
	case err != nil:
		return err
	default:
		o.Root, o.Hops = d.Graph.Name(plan.Tree.Root()), plan.Figures.Hops
		d.keep(id, &placed{g, only(req, plan), plan})
	}
	d.report.Others = append(d.report.Others, o)
	return nil
}

// only is a request without the members that its plan leaves out.
func only(req pathsel.Request, plan pathsel.Plan) pathsel.Request {
	if len(plan.LeftOut) > 0 {
		members := make([]topology.NodeID, len(plan.Tree.Leaves))
		for i, l := range plan.Tree.Leaves {
			members[i] = l.Host
		}
		req.Members = members
	}
	return req
}

func (d *desk) keep(id uint32, p *placed) {
	d.placed[id] = p
	d.load.Add(p.plan.Tree, p.req.Slots)
	d.index.Add(id, p.plan.Tree)
}

// placeGroup plans the group that the question is about.
func (d *desk) placeGroup() error {
	req, err := d.request(&d.Group)
	if err != nil {
		return err
	}
	d.report.Group, d.report.Members = d.Group, len(req.Members)
	plan, err := d.plan(d.view, req)
	if err != nil {
		return d.refused(err)
	}
	if err := d.several(req); err != nil {
		return err
	}
	d.report.Tree = d.tree(&plan)
	d.report.plan, d.report.view = &plan, d.view
	d.keep(0, &placed{&d.Group, only(req, plan), plan})
	return nil
}

func (d *desk) plan(view topology.View, req pathsel.Request) (pathsel.Plan, error) {
	if d.Partial {
		return d.planner.PlanReachable(view, d.load, req)
	}
	return d.planner.Plan(view, d.load, req)
}

// refused reports why there is no tree; other errors are about the question.
func (d *desk) refused(err error) error {
	if !errors.Is(err, pathsel.ErrNoTree) {
		return err
	}
	d.report.Refused = &RefusalReport{Why: err.Error()}
	var faster *pathsel.HostsFaster
	if errors.As(err, &faster) {
		d.report.Refused.HostsFaster = true
		d.report.Tree = d.tree(&faster.Plan)
		d.report.plan, d.report.view = &faster.Plan, d.view
		return nil
	}
	var no *pathsel.Refusal
	if errors.As(err, &no) {
		d.report.Refused.Resource = no.Resource.String()
		if d.Graph.IsSwitch(no.Switch) {
			d.report.Refused.Switch = d.Graph.Name(no.Switch)
			for _, id := range d.index.OnNode(no.Switch) {
				d.report.Refused.Holders = append(d.report.Refused.Holders, HolderReport{
					Group: d.placed[id].group.Name, Slots: d.placed[id].req.Slots,
				})
			}
		}
	}
	return nil
}

// several plans stripes and parts, where they are asked for.
func (d *desk) several(req pathsel.Request) error {
	if d.Stripes > 0 {
		s, err := d.planner.Stripes(d.view, d.load, req, d.Stripes)
		if err != nil {
			return err
		}
		d.report.StripesApart = s.Apart
		for i := range s.Plans {
			d.report.Stripes = append(d.report.Stripes, d.tree(&s.Plans[i]))
		}
	}
	if d.Roots > 0 {
		parts, err := d.planner.Parts(d.view, d.load, req, d.Roots)
		if err != nil {
			return err
		}
		for i := range parts {
			d.report.Parts = append(d.report.Parts, PartReport{Ranks: parts[i].Ranks, Tree: d.tree(&parts[i].Plan)})
		}
	}
	return nil
}

// breakDown takes what is down away and repairs the trees that it broke, those
// of the others first.
func (d *desk) breakDown(view topology.View) {
	broken := d.index.Down(view)
	if len(broken) > 0 && broken[0] == 0 {
		broken = append(broken[1:], 0)
	}
	for _, id := range broken {
		d.repair(view, id)
	}
	if p := d.placed[0]; p != nil && len(d.report.Repairs) > 0 && d.report.Refused == nil {
		d.report.plan, d.report.view = &p.plan, view
	}
}

// repairReachable repairs the tree of the members that can still be joined, and
// has the group be these.
func (d *desk) repairReachable(view topology.View, p *placed) (pathsel.Repaired, error) {
	plan, err := d.planner.PlanReachable(view, d.load, p.req)
	if err != nil {
		return pathsel.Repaired{}, err
	}
	old, out := p.plan.Tree, plan.LeftOut
	old.Leaves = nil
	for rank, l := range p.plan.Tree.Leaves {
		if len(out) > 0 && out[0].Rank == rank {
			out = out[1:]
			continue
		}
		old.Leaves = append(old.Leaves, l)
	}
	p.req, p.plan.LeftOut = only(p.req, plan), append(p.plan.LeftOut, plan.LeftOut...)
	return d.planner.Repair(view, d.load, p.req, old)
}

// repair repairs one tree and compares the outcome with a fresh plan.
func (d *desk) repair(view topology.View, id uint32) {
	p := d.placed[id]
	d.load.Remove(p.plan.Tree, p.req.Slots)
	d.index.Remove(id, p.plan.Tree)
	r := RepairReport{Group: p.group.Name, Before: d.Graph.Name(p.plan.Tree.Root())}
	known := len(p.plan.LeftOut)
	fixed, err := d.planner.Repair(view, d.load, p.req, p.plan.Tree)
	if errors.Is(err, pathsel.ErrNoTree) && (id != 0 || d.Partial) {
		fixed, err = d.repairReachable(view, p)
	}
	if err != nil {
		r.Refused = err.Error()
		d.report.Repairs = append(d.report.Repairs, r)
		delete(d.placed, id)
		return
	}
	r.Root, r.Added, r.Lost, r.Dropped = d.Graph.Name(fixed.Tree.Root()), len(fixed.Added), len(fixed.Lost), len(fixed.Dropped)
	r.Figures, r.Anew = figures(fixed.Figures), fixed.Fresh
	if fresh, err := d.planner.Plan(view, d.load, p.req); err == nil {
		f := figures(fresh.Figures)
		r.Against, r.FreshFigures = fixed.Against(fresh), &f
	}
	for _, l := range fixed.Added {
		if len(r.AddedLinks) < maxListed {
			r.AddedLinks = append(r.AddedLinks, d.Graph.LinkName(l))
		}
	}
	for _, o := range p.plan.LeftOut[known:] {
		r.LeftOut = append(r.LeftOut, o.Why)
	}
	p.plan.Tree, p.plan.Figures = fixed.Tree, fixed.Figures
	d.keep(id, p)
	d.report.Repairs = append(d.report.Repairs, r)
	if id == 0 {
		d.report.After = d.tree(&p.plan)
	}
}
