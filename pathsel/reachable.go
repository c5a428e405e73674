package pathsel

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/topology"
)

// PlanReachable is Plan, except that members which nothing joins with the others
// are left out: the most that hang together have the tree, and Plan.LeftOut says
// which have none, and why. It fails as Plan does if not even one is left.
func (p *Planner) PlanReachable(view topology.View, load *Load, req Request) (Plan, error) {
	plan, err := p.Plan(view, load, req)
	if no := (*Refusal)(nil); err == nil || !errors.As(err, &no) {
		return plan, err
	}
	a := p.ask(view, load, &req)
	if entered := p.enter(view, load, &req); entered != nil {
		return Plan{}, fmt.Errorf("plan tree: %w", entered)
	}
	kept := p.together(a)
	p.leave(&req)
	if len(kept) == 0 || len(kept) == len(req.Members) {
		return Plan{}, err
	}
	less, out := req, []Omission(nil)
	less.Members = nil
	f := newSubgraph(a)
	for rank, m := range req.Members {
		if len(kept) > 0 && kept[0] == rank {
			kept = kept[1:]
			less.Members = append(less.Members, m)
			continue
		}
		why := f.refuseMember(rank).text
		if f.reachesAny(m) {
			why = fmt.Sprintf("rank %d (%s): usable switches do not join it with the others", rank, p.graph.Name(m))
		}
		out = append(out, Omission{Rank: rank, Host: m, Why: why})
	}
	plan, err = p.Plan(view, load, less)
	plan.LeftOut = out
	return plan, err
}

// reachesAny reports whether a host has a usable switch.
func (f *subgraph) reachesAny(m topology.NodeID) bool {
	if !f.view.NodeUp(m) {
		return false
	}
	for _, l := range f.view.Graph().Adjacent(m) {
		if _, ok := f.usable(l, m); ok {
			return true
		}
	}
	return false
}
