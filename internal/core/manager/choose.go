package manager

import (
	"errors"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Choose makes the plan that is asked for: over switches that all reduce and,
// where that cannot be, with some that forward. It is for whoever plans for a
// Core; load is as it was when it returns.
func (r *PlanRequest) Choose(p *pathsel.Planner, view topology.View, load *pathsel.Load) (pathsel.Plan, error) {
	r.lift(load, -1)
	defer r.lift(load, 1)
	req := r.Request
	req.Forward = false
	plan, err := p.Plan(view, load, req)
	if no := (*pathsel.Refusal)(nil); !r.Request.Forward || !errors.As(err, &no) {
		return plan, err
	}
	req.Forward = true
	if forwarded, again := p.Plan(view, load, req); again == nil {
		return forwarded, nil
	} else if faster := (*pathsel.HostsFaster)(nil); errors.As(again, &faster) {
		return pathsel.Plan{}, again
	}
	return plan, err
}

// lift takes what the group has itself off the load, or puts it back.
func (r *PlanRequest) lift(load *pathsel.Load, sign int) {
	for _, t := range r.Own {
		if sign < 0 {
			load.Remove(t, 0)
		} else {
			load.Add(t, 0)
		}
	}
	for _, u := range r.OwnSlots {
		load.SetSlots(u.Switch, load.UsedSlots(u.Switch)+sign*u.Slots)
	}
}
