package managerd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// planner has a goroutine for the core's plans.
type planner struct {
	box    runner.Mailbox[func(*manager.Planner)]
	core   *manager.Planner // owned by run
	counts *counts
	ended  chan struct{}
}

func newPlanner(g *topology.Graph, model pathsel.Model, counts *counts) (*planner, error) {
	p, err := manager.NewPlanner(g, pathsel.Config{Model: model})
	if err != nil {
		return nil, fmt.Errorf("managerd: %w", err)
	}
	return &planner{core: p, counts: counts, ended: make(chan struct{})}, nil
}

// put takes what a step of the core wants planned.
func (p *planner) put(out *manager.Output) {
	if out.View.Graph() == nil && len(out.Loads)+len(out.Unloads)+len(out.Slots)+len(out.Plans)+len(out.Cancels) == 0 {
		return
	}
	o := &manager.Output{
		View: out.View, Anew: out.Anew,
		Loads: slices.Clone(out.Loads), Unloads: slices.Clone(out.Unloads), Slots: slices.Clone(out.Slots), Plans: slices.Clone(out.Plans), Cancels: slices.Clone(out.Cancels),
	}
	p.box.Put(func(c *manager.Planner) { c.Put(o) })
}

// ask calls f with what plans are made of, and returns nil after it. Where it
// returns an error, f may yet be called.
func (p *planner) ask(ctx context.Context, f func(*pathsel.Planner, topology.View, *pathsel.Load)) error {
	asked := make(chan struct{})
	use := func(planner *pathsel.Planner, view topology.View, load *pathsel.Load) {
		if ctx.Err() == nil { // else nobody waits for it
			f(planner, view, load)
		}
		close(asked)
	}
	p.box.Put(func(c *manager.Planner) { c.Use(use) })
	select {
	case <-asked:
		return ctx.Err()
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
		news, err := p.box.Take(ctx)
		if err != nil {
			return
		}
		for more := true; more; {
			for _, f := range news {
				f(p.core)
			}
			begun := time.Now()
			var planned manager.Planned
			if planned, more = p.core.Next(); more {
				p.counts.planned(time.Since(begun), planned.Err)
				if post(planned) != nil {
					return
				}
			}
			news = p.box.Poll() // a later request may replace one that waits
			more = more || len(news) > 0
		}
	}
}
