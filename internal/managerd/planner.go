package managerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/runner"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// planner chooses trees, one after the other, so that each choice sees those
// before it.
type planner struct {
	box     runner.Mailbox[task]
	planner *pathsel.Planner // owned by run, as are view and load
	view    topology.View
	load    *pathsel.Load
	counts  *counts
	ended   chan struct{}
}

// task is what a planner does next, in the order of its fields.
type task struct {
	view    *topology.View
	loads   []pathsel.Tree
	unloads []pathsel.Tree
	slots   []manager.SlotUse
	plans   []manager.PlanRequest
	call    func()
}

func newPlanner(g *topology.Graph, model pathsel.Model, counts *counts) (*planner, error) {
	p, err := pathsel.NewPlanner(g, pathsel.Config{Model: model})
	if err != nil {
		return nil, fmt.Errorf("managerd: %w", err)
	}
	return &planner{planner: p, view: g.View(), load: pathsel.NewLoad(g), counts: counts, ended: make(chan struct{})}, nil
}

// put takes what a step of the core wants planned.
func (p *planner) put(out *manager.Output) {
	if len(out.Loads)+len(out.Unloads)+len(out.Slots)+len(out.Plans) == 0 {
		return
	}
	p.box.Put(task{
		loads: slices.Clone(out.Loads), unloads: slices.Clone(out.Unloads), slots: slices.Clone(out.Slots), plans: slices.Clone(out.Plans),
	})
}

// see makes view the fabric of all plans to come.
func (p *planner) see(view topology.View) { p.box.Put(task{view: &view}) }

// ask calls f, which may use what is run's, and returns nil after it. Where it
// returns an error, f may yet be called.
func (p *planner) ask(ctx context.Context, f func()) error {
	asked := make(chan struct{})
	p.box.Put(task{call: func() { f(); close(asked) }})
	select {
	case <-asked:
		return nil
	case <-p.ended:
		return runner.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run plans until the context ends.
func (p *planner) run(ctx context.Context, post func(...manager.Input) error) {
	defer close(p.ended)
	for {
		tasks, err := p.box.Take(ctx)
		if err != nil {
			return
		}
		latest := map[uint32]uint64{}
		for _, t := range tasks {
			for _, r := range t.plans {
				latest[r.Group] = r.Plan
			}
		}
		for _, t := range tasks {
			if p.do(t, latest, post) != nil {
				return
			}
		}
	}
}

// do does a task. Plans that a later one of the same group replaces are not
// made: the core ignores them.
func (p *planner) do(t task, latest map[uint32]uint64, post func(...manager.Input) error) error {
	if t.view != nil {
		p.view = *t.view
	}
	for _, tree := range t.loads {
		p.load.Add(tree, 0) // the core accounts for slots itself
	}
	for _, tree := range t.unloads {
		p.load.Remove(tree, 0)
	}
	for _, u := range t.slots {
		p.load.SetSlots(u.Switch, u.Slots)
	}
	for _, r := range t.plans {
		if latest[r.Group] != r.Plan {
			continue
		}
		begun := time.Now()
		plan, err := r.Choose(p.planner, p.view, p.load)
		p.counts.planned(time.Since(begun), err)
		if err == nil {
			p.load.Add(plan.Tree, 0)
		}
		if failed := post(manager.Planned{Group: r.Group, Plan: r.Plan, Chosen: plan, Err: err}); failed != nil {
			return errors.Join(failed, err)
		}
	}
	if t.call != nil {
		t.call()
	}
	return nil
}
