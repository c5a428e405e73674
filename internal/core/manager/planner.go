package manager

import (
	"slices"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Planner chooses the trees that a Core requests, one after the other, so that each
// choice counts those before it. Planning takes its time: a driver gives the Planner
// what Steps put out, and calls Next when that time is there, in a goroutine of its
// own or in virtual time. Of a group's requests the last one counts alone, so that
// no more plans wait than there are groups.
//
// Its methods are not safe for concurrent use.
type Planner struct {
	planner *pathsel.Planner
	view    topology.View
	load    *pathsel.Load
	queue   []task
	latest  map[uint32]uint64 // last plan that was requested, by group
}

// task is what is done, in its order.
type task struct {
	plan uint64                 // that it makes; 0: none
	do   func() (Planned, bool) // and whether it made one
}

// NewPlanner returns a planner for a fabric.
func NewPlanner(g *topology.Graph, c pathsel.Config) (*Planner, error) {
	p, err := pathsel.NewPlanner(g, c)
	if err != nil {
		return nil, err
	}
	return &Planner{planner: p, view: g.View(), load: pathsel.NewLoad(g), latest: map[uint32]uint64{}}, nil
}

// Put queues what a Step has put out: the fabric before its loads, and those before its
// plans.
func (p *Planner) Put(o *Output) {
	if o.Anew {
		clear(p.latest) // what waits has the numbers of another graph
	}
	if view, anew := o.View, o.Anew; view.Graph() != nil {
		p.Use(func(*pathsel.Planner, topology.View, *pathsel.Load) {
			if p.view = view; anew {
				p.planner, p.load = p.planner.For(view.Graph()), pathsel.NewLoad(view.Graph())
			}
		})
	}
	if len(o.Loads)+len(o.Unloads)+len(o.Slots) > 0 {
		loads, unloads, slots := slices.Clone(o.Loads), slices.Clone(o.Unloads), slices.Clone(o.Slots)
		p.Use(func(*pathsel.Planner, topology.View, *pathsel.Load) {
			for _, tree := range loads {
				p.load.Add(tree, 0) // the core accounts for slots itself
			}
			for _, tree := range unloads {
				p.load.Remove(tree, 0)
			}
			for _, u := range slots {
				p.load.SetSlots(u.Switch, u.Slots)
			}
		})
	}
	for _, r := range o.Plans {
		p.latest[r.Group] = r.Plan
		p.queue = append(p.queue, task{r.Plan, func() (Planned, bool) { return p.plan(&r) }})
	}
	for _, c := range o.Cancels {
		if p.latest[c.Group] == c.Plan {
			delete(p.latest, c.Group)
		}
		p.queue = slices.DeleteFunc(p.queue, func(t task) bool { return t.plan == c.Plan })
	}
}

// Use queues a call of f, which sees what was requested before it.
func (p *Planner) Use(f func(p *pathsel.Planner, view topology.View, load *pathsel.Load)) {
	p.queue = append(p.queue, task{0, func() (Planned, bool) {
		f(p.planner, p.view, p.load)
		return Planned{}, false
	}})
}

// Waits reports whether a plan waits to be made.
func (p *Planner) Waits() bool { return len(p.latest) > 0 }

// Next makes the next plan, after all that was queued before it. It reports false
// when nothing is queued any more.
func (p *Planner) Next() (Planned, bool) {
	for len(p.queue) > 0 {
		do := p.queue[0].do
		p.queue[0] = task{} // for the garbage collector
		if p.queue = p.queue[1:]; len(p.queue) == 0 {
			p.queue = nil
		}
		if planned, ok := do(); ok {
			return planned, true
		}
	}
	return Planned{}, false
}

// plan makes a plan, unless a later one was requested.
func (p *Planner) plan(r *PlanRequest) (Planned, bool) {
	if p.latest[r.Group] != r.Plan {
		return Planned{}, false
	}
	delete(p.latest, r.Group)
	plan, err := r.Choose(p.planner, p.view, p.load)
	if err == nil {
		p.load.Add(plan.Tree, 0)
	}
	return Planned{Group: r.Group, Plan: r.Plan, Chosen: plan, Err: err}, true
}
