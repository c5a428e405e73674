package pathsel

import (
	"fmt"
	"time"
)

// Forecast is how long an operation takes by the model.
type Forecast struct {
	Switches, Hosts time.Duration
}

// HostsFaster says that a group needs no tree: its hosts reduce among
// themselves faster, by the model. It is an ErrNoTree.
type HostsFaster struct {
	Forecast
	Plan Plan // the best tree
}

// Error says it with the numbers.
func (h *HostsFaster) Error() string {
	return fmt.Sprintf("no tree: hosts are faster: %v over hosts, %v over switches (%d members, %d bytes, depth %d, up to %d children)",
		h.Hosts, h.Switches, h.Plan.Trip.Members, h.Plan.Trip.Bytes, h.Plan.Figures.Depth, h.Plan.Trip.Children)
}

// Is reports whether target is ErrNoTree.
func (h *HostsFaster) Is(target error) bool { return target == ErrNoTree }

// forecast fills in what the model says, and returns a *HostsFaster where that
// is the answer.
func (p *Planner) forecast(a asked, plan *Plan) error {
	if a.Bytes == 0 && a.Collective != Barrier {
		return nil
	}
	a.blind = !p.likeKnown(&a, &plan.Tree)
	plan.Trip = p.trip(a, &plan.Tree, &plan.Figures, false)
	plan.Forecast = Forecast{Switches: p.cfg.Model.Switches(plan.Trip), Hosts: p.cfg.Model.Hosts(plan.Trip)}
	if a.Hosts && plan.Forecast.Hosts < plan.Forecast.Switches {
		return &HostsFaster{Forecast: plan.Forecast, Plan: *plan}
	}
	return nil
}
