package managerd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// FabricChange is a fabric to go over to.
type FabricChange struct {
	Graph  *topology.Graph
	States []topology.Change // of Graph's nodes and links, beyond what is known of them: that they are down, or up again
	Agents map[string]string // "host:port" of each switch's agent, by the switch's name; those of other switches are left
	Cause  string            // for people, such as "an operator has edited the topology"

	marks    []mark // beyond States
	measured bool   // another latency of a link is that of a measurement
}

// ErrFabric is wrapped by SetFabric's errors about what it was given.
var ErrFabric = errors.New("managerd: invalid fabric")

// SetFabric puts another fabric into effect. What is in both, nodes by name and links by
// both ends' node and port, keeps its state, and trees on it run on; trees on anything
// else are replaced. Connections to agents are made, kept or ended. It returns when all
// that follows is under way; with an error, nothing has changed.
func (d *Daemon) SetFabric(c FabricChange) error {
	if err := checkFabric(c.Graph, c.Agents); err != nil {
		return err
	}
	d.fabric.Lock()
	defer d.fabric.Unlock()
	return d.setFabric(c)
}

// checkFabric reports agents of what is no switch, or without an address.
func checkFabric(g *topology.Graph, agents map[string]string) error {
	if g == nil {
		return fmt.Errorf("%w: no graph", ErrFabric)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		if n, ok := g.Lookup(name); !ok || !g.IsSwitch(n) {
			errs = append(errs, fmt.Errorf("%w: agent at %q: the topology has no switch %q", ErrFabric, agents[name], name))
		} else if agents[name] == "" {
			errs = append(errs, fmt.Errorf("%w: agent of switch %s has no address", ErrFabric, name))
		}
	}
	return errors.Join(errs...)
}

// setFabric is SetFabric for who holds fabric.
func (d *Daemon) setFabric(c FabricChange) error {
	if d.ended {
		return rpc.ErrClosing
	}
	if g := d.overlay.View().Graph(); topology.Equal(c.Graph, g) {
		c.Graph = g
	}
	fresh, err := d.dial(c.Agents)
	if err != nil {
		return err
	}
	if err := d.redraw(c); err != nil {
		closeLinks(fresh)
		return err
	}
	d.relink(fresh, c.Agents)
	d.agents = c.Agents
	if d.cfg.Merge != nil {
		select { // the one before need not be stored any more
		case <-d.maps:
		default:
		}
		d.maps <- Operator{Graph: c.Graph, Agents: c.Agents}
	}
	return nil
}

// redraw has the core and the planner go over to a graph. The caller holds fabric.
func (d *Daemon) redraw(c FabricChange) error {
	was, g := d.overlay, c.Graph
	m := topology.NewMapping(was.View().Graph(), g)
	overlay, err := was, error(nil)
	if m.From() != g {
		if overlay, err = m.Overlay(was); err != nil {
			return fmt.Errorf("managerd: %w", err)
		}
	}
	var other []topology.Change
	marks, err := d.marksOf(overlay, c.States, byDiscovery, c.Cause, &other)
	if err != nil {
		return err
	}
	marks = append(marks, c.marks...)
	for _, l := range d.agentLinks() {
		if l.address != c.Agents[l.name] {
			marks = append(marks, d.outages.of(byAgent(l.name))...) // it has no say any more
			continue
		}
		if l.ports != nil {
			marks = append(marks, l.portMarks(g)...)
		}
		if n, known := g.Lookup(l.name); known && l.capability.Load() != nil {
			other = append(other, topology.SwitchCapability(n, withSpeed(*l.capability.Load(), g, n)))
		}
	}
	states := d.note(marks)
	if overlay, err = overlay.With(append(d.outages.changes(overlay.View()), other...)...); err != nil {
		return fmt.Errorf("managerd: %w", err)
	}
	d.overlay = overlay
	d.reroute() // before trees that need it
	differences := topology.Compare(m.From(), g)
	if c.measured {
		differences = d.withoutLatencies(differences, m.From(), &c)
	}
	d.record(c.Cause, append(lines(differences), states...))
	if len(differences) > 0 {
		d.counts.redrawn.Add(1)
	}
	grown := slices.ContainsFunc(differences, func(x topology.Difference) bool {
		return x.What == "link" && (x.Kind == topology.Added || x.Kind == topology.Moved)
	})
	if err := d.post(manager.Redrawn{View: d.overlay.View(), Unattended: unattended(g, c.Agents), Grown: grown, Cause: c.Cause}); err != nil {
		return rpc.ErrClosing
	}
	return nil
}

// ChangeTopology changes the fabric as the manager sees it: nodes or links go
// down or come up, capabilities change. Trees that this breaks are replaced.
func (d *Daemon) ChangeTopology(changes ...topology.Change) error {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	var other []topology.Change
	marks, err := d.marksOf(d.overlay, changes, byCaller, "", &other)
	if err != nil {
		return err
	}
	return d.change(marks, other...)
}

// marksOf returns what changes of state mean for outages, and adds the others to
// rest. The error is that one cannot be.
func (d *Daemon) marksOf(o *topology.Overlay, changes []topology.Change, source, why string, rest *[]topology.Change) (marks []mark, err error) {
	if _, err := o.With(changes...); err != nil {
		return nil, fmt.Errorf("managerd: %w", err)
	}
	g := o.View().Graph()
	for _, c := range changes {
		switch n, l, up, ok := c.State(); {
		case !ok:
			*rest = append(*rest, c)
		case n != topology.NoNode:
			marks = append(marks, mark{g.Name(n), source, up, why})
		default:
			marks = append(marks, mark{linkName(g, l), source, up, why})
		}
	}
	return marks, nil
}

// note takes marks, and returns what is news, in words. The caller holds fabric.
func (d *Daemon) note(marks []mark) (news []string) {
	now := time.Now()
	for _, m := range marks {
		before := d.outages.why(m.what)
		if !d.outages.set(m, now) {
			continue
		}
		switch why := d.outages.why(m.what); {
		case why == "":
			news = append(news, fmt.Sprintf("%s is up: it was down by %s", m.what, before))
		case before == "":
			news = append(news, fmt.Sprintf("%s is down by %s", m.what, why))
		}
	}
	return news
}

// change takes marks and other changes. How busy something is concerns plans alone.
// The caller holds fabric.
func (d *Daemon) change(marks []mark, other ...topology.Change) error {
	news := d.note(marks)
	next, delta, err := d.overlay.Apply(append(d.outages.changes(d.overlay.View()), other...)...)
	if err != nil {
		return fmt.Errorf("managerd: changing the topology: %w", err)
	}
	if delta.Empty() {
		return nil
	}
	d.overlay = next
	d.record("", news)
	if delta.Structural() {
		d.reroute() // before trees that need it
	}
	if err := d.post(manager.TopologyChanged{View: next.View()}); err != nil {
		return rpc.ErrClosing
	}
	return nil
}

func (d *Daemon) view() topology.View {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	return d.overlay.View()
}

// unattended returns the switches without an agent.
func unattended(g *topology.Graph, agents map[string]string) (all []string) {
	for i := range g.Switches() {
		if name := g.Name(g.Switch(i)); agents[name] == "" {
			all = append(all, name)
		}
	}
	return all
}

// dial makes the links to agents that the daemon does not have at these addresses. They
// begin to run in relink.
func (d *Daemon) dial(agents map[string]string) (fresh []*link, err error) {
	links := d.agentLinks()
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		if l := links[name]; l != nil && l.address == agents[name] {
			continue
		}
		client, err := rpc.DialAgent(agents[name], d.cfg.client(name, d.term))
		if err != nil {
			closeLinks(fresh)
			return nil, fmt.Errorf("managerd: agent of switch %s: %w", name, err)
		}
		fresh = append(fresh, newLink(d, name, agents[name], client))
	}
	return fresh, nil
}

func closeLinks(all []*link) {
	for _, l := range all {
		_ = l.client.Close() // its only error is that it was closed
	}
}

// agentLinks returns the links by the names of their switches, not to be changed.
func (d *Daemon) agentLinks() map[string]*link {
	if all := d.links.Load(); all != nil {
		return *all
	}
	return nil
}

// relink starts links, and ends those to agents that are not at their addresses any
// more. The caller holds fabric.
func (d *Daemon) relink(fresh []*link, agents map[string]string) {
	next := maps.Clone(d.agentLinks())
	if next == nil {
		next = map[string]*link{}
	}
	for name, l := range next {
		if agents[name] != l.address {
			l.stop()
			delete(next, name)
		}
	}
	for _, l := range fresh {
		l.after = d.closing[l.name]
		d.closing[l.name] = l.done
		next[l.name] = l
	}
	d.links.Store(&next)
	for _, l := range fresh {
		ctx, cancel := context.WithCancel(d.life)
		l.stop = cancel
		d.running.Go(func() { l.run(ctx) })
	}
}
