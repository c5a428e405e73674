package managerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

var _ rpc.Manager = (*Daemon)(nil)

// CreateGroup implements rpc.Manager.
func (d *Daemon) CreateGroup(ctx context.Context, c manager.Create) (uint32, bool, error) {
	if _, err := rand.Read(c.Secret[:]); err != nil {
		return 0, false, fmt.Errorf("managerd: drawing a secret: %w", err)
	}
	r, err := d.request(ctx, func(req uint64) manager.Input { c.Req = req; return c })
	return r.Group, r.Found, err
}

// ReleaseGroup implements rpc.Manager.
func (d *Daemon) ReleaseGroup(ctx context.Context, group uint32) error {
	_, err := d.request(ctx, func(req uint64) manager.Input { return manager.Release{Req: req, Group: group} })
	return err
}

// DrainSwitch implements rpc.Manager.
func (d *Daemon) DrainSwitch(ctx context.Context, name string, on bool) error {
	_, err := d.request(ctx, func(req uint64) manager.Input { return manager.Drain{Req: req, Switch: name, On: on} })
	return err
}

// PlanGroup implements rpc.Manager.
func (d *Daemon) PlanGroup(ctx context.Context, c manager.Create) (rpc.GroupPlan, error) {
	over, err := d.turn(ctx, c)
	if err != nil {
		return rpc.GroupPlan{}, err
	}
	defer over()
	var draft manager.Draft
	var plan manager.GroupPlan
	wrong := manager.ErrRedrawn
	for errors.Is(wrong, manager.ErrRedrawn) { // the planner may be behind the core, or ahead of the draft
		if err := d.loop.Do(ctx, func() { draft, wrong = d.core.Draft(c) }); err != nil {
			return rpc.GroupPlan{}, d.excuse(err)
		}
		if wrong != nil {
			return rpc.GroupPlan{}, wrong
		}
		err := d.planner.ask(ctx, func(p *pathsel.Planner, view topology.View, load *pathsel.Load) {
			plan, wrong = draft.Choose(p, view, load)
		})
		if err != nil {
			return rpc.GroupPlan{}, d.excuse(err)
		}
	}
	if wrong != nil {
		if err := d.loop.Do(ctx, func() { wrong = d.core.Refused(&draft, wrong) }); err != nil {
			return rpc.GroupPlan{}, d.excuse(err)
		}
		return rpc.GroupPlan{}, wrong
	}
	return rpc.NewGroupPlan(plan, draft.Graph()), nil
}

// turn waits for a turn at the planner, which ends with over. Who does not wait any more
// leaves the queue.
func (d *Daemon) turn(ctx context.Context, c manager.Create) (over func(), err error) {
	var asked uint64
	over = func() { _ = d.post(manager.TurnOver{Req: asked}) } // the error is that the manager ends
	_, err = d.request(ctx, func(req uint64) manager.Input {
		asked = req
		return manager.Turn{Req: req, Owner: c.Owner, Cost: len(c.Members) * max(1, c.Bundle.Count)}
	})
	if err != nil {
		over()
		return nil, err
	}
	return over, nil
}

// request posts a request and waits for its reply.
func (d *Daemon) request(ctx context.Context, input func(req uint64) manager.Input) (manager.Reply, error) {
	r, err := d.desk.Ask(ctx, d.gone, func(req uint64) error { return d.loop.Post(ctx, input(req)) })
	if err != nil {
		return r, d.excuse(err)
	}
	return r, r.Err
}

// excuse turns the error of a loop that has ended into the service's.
func (d *Daemon) excuse(err error) error {
	if errors.Is(err, runner.ErrClosed) {
		return rpc.ErrClosing
	}
	return err
}

// shutdown frees who waits for a reply or an event.
func (d *Daemon) shutdown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.gone)
	for _, s := range d.sessions {
		s.events.Close()
	}
}

func (d *Daemon) ending() bool {
	select {
	case <-d.gone:
		return true
	default:
		return false
	}
}

// Groups implements rpc.Manager.
func (d *Daemon) Groups(ctx context.Context) (all []manager.Summary, err error) {
	err = d.loop.Do(ctx, func() { all = d.core.Groups() })
	return all, d.excuse(err)
}

// Explain implements rpc.Manager.
func (d *Daemon) Explain(ctx context.Context, which rpc.GroupRef) (rpc.Explanation, error) {
	var e manager.Explanation
	var g *topology.Graph
	found := false
	err := d.loop.Do(ctx, func() {
		g = d.core.View().Graph()
		id := which.Group
		if which.Name != "" {
			id, found = d.core.Find(which.Name)
			if !found {
				return
			}
		}
		e, found = d.core.Group(id)
	})
	if err != nil {
		return rpc.Explanation{}, d.excuse(err)
	}
	if !found {
		return rpc.Explanation{}, fmt.Errorf("explain %s: %w", which, manager.ErrUnknownGroup)
	}
	x := rpc.NewExplanation(e, g, func(c manager.Change) time.Time {
		return d.started.Add(time.Duration(c.At))
	})
	for _, m := range d.mismatches(g) {
		if m.Of(x.Group) {
			x.Mismatches = append(x.Mismatches, m)
		}
	}
	return x, nil
}

// Topology implements rpc.Manager.
func (d *Daemon) Topology(ctx context.Context) (rpc.Fabric, error) {
	var switches []manager.SwitchState
	speeds := map[string]topology.Speed{}
	err := d.loop.Do(ctx, func() {
		switches = d.core.Switches()
		g := d.core.View().Graph()
		for n := range topology.NodeID(g.Hosts()) {
			if s := d.core.HostSpeed(n); s.Known() {
				speeds[g.Name(n)] = s
			}
		}
	})
	if err != nil {
		return rpc.Fabric{}, d.excuse(err)
	}
	var f rpc.Fabric
	var g *topology.Graph
	err = d.planner.ask(ctx, func(_ *pathsel.Planner, view topology.View, load *pathsel.Load) {
		f, g = newFabric(view), view.Graph()
		describe(&f, view, load, switches, speeds)
	})
	if err != nil {
		return rpc.Fabric{}, d.excuse(err)
	}
	for name, l := range d.agentLinks() {
		if n, ok := g.Lookup(name); ok && g.IsSwitch(n) {
			s := f.Nodes[n].Switch
			s.AgentVersion, s.Unusable, s.Agent = l.version(), l.unusable(), l.address
		}
	}
	for _, m := range d.mismatches(g) {
		if l, ok := g.LookupLink(m.Link); ok {
			f.Cables[l].Mismatches = append(f.Cables[l].Mismatches, m)
		}
	}
	d.explainOutages(&f, g)
	f.Alarms, err = d.miscablings(ctx)
	return f, err
}

// explainOutages says why what is down is so.
func (d *Daemon) explainOutages(f *rpc.Fabric, g *topology.Graph) {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	for name := range d.outages {
		if l, ok := g.LookupLink(name); ok && !f.Cables[l].Up {
			f.Cables[l].Why = d.outages.why(name)
		} else if n, ok := g.Lookup(name); ok && !f.Nodes[n].Up {
			f.Nodes[n].Why = d.outages.why(name)
		}
	}
}

func newFabric(view topology.View) rpc.Fabric {
	g := view.Graph()
	return rpc.Fabric{
		Name: g.Fabric(), Version: view.Version(), Hosts: g.Hosts(), Switches: g.Switches(), Links: g.Links(),
		Nodes: make([]rpc.FabricNode, g.Nodes()), Cables: make([]rpc.FabricLink, g.Links()),
	}
}

// describe fills f's nodes and links in.
func describe(f *rpc.Fabric, view topology.View, load *pathsel.Load, switches []manager.SwitchState, speeds map[string]topology.Speed) {
	g := view.Graph()
	states := make(map[string]*manager.SwitchState, len(switches)) // the core may be ahead of the planner
	for i := range switches {
		states[switches[i].Name] = &switches[i]
	}
	for n := range topology.NodeID(g.Nodes()) {
		f.Nodes[n] = rpc.FabricNode{Name: g.Name(n), Up: view.NodeUp(n)}
		if g.IsSwitch(n) {
			s := states[g.Name(n)]
			if s == nil {
				s = &manager.SwitchState{}
			}
			f.Nodes[n].Switch = &rpc.SwitchState{
				Capability: view.Capability(n), Connected: s.Connected, Draining: s.Drained,
				Trees: load.SwitchTrees(n), SlotsUsed: s.Used, SlotsMost: s.Most, Wanted: s.Wanted, CPU: view.NodeUtilization(n),
			}
		} else {
			f.Nodes[n].Speed = speeds[g.Name(n)]
		}
	}
	for l, link := range g.AllLinks() {
		a, b := link.Ends[0], link.Ends[1]
		f.Cables[l] = rpc.FabricLink{
			A: rpc.FabricEnd{Node: g.Name(a.Node), Port: a.Port}, B: rpc.FabricEnd{Node: g.Name(b.Node), Port: b.Port},
			Up: view.LinkUp(l), Carries: link.LinkSpec, Trees: load.LinkTrees(l),
			Foreign: view.LinkUtilization(l),
		}
	}
}
