package managerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/metrics"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// discovered is the name of a fabric of which no file gives one.
const discovered = "discovered"

// discover starts to discover the fabric, if that is wanted.
func (d *Daemon) discover() (err error) {
	if d.cfg.Discovery == nil {
		return nil
	}
	c := *d.cfg.Discovery
	c.Trust, c.Log, c.Apply = d.cfg.Trust, d.log, d.discovered
	o := d.Operator()
	c.Operator = operatorGraph(&o)
	if g := d.view().Graph(); g != o.Graph && g.Nodes() > 0 {
		c.Wait = restoredWait // the map of before, on which trees may run, is not to shrink meanwhile
	}
	c.Alarm = d.raise
	d.running.Go(func() { d.keepAlarms(d.life) })
	d.discoverer, err = discoverer.Start(c)
	return err
}

// raise takes alarms for the map's history. It does not wait.
func (d *Daemon) raise(all []discovery.AlarmChange) {
	for i := range all {
		state := "alarm is over: "
		if all[i].Raised {
			state = "alarm: "
		}
		if !d.raised.Put(state + all[i].String()) {
			d.unnamed.Add(1)
		}
	}
}

// keepAlarms adds what is raised to the map's history, until the context ends.
func (d *Daemon) keepAlarms(ctx context.Context) {
	for {
		lines, err := d.raised.Take(ctx)
		if err != nil {
			return
		}
		d.rememberAlarms(lines)
	}
}

func (d *Daemon) rememberAlarms(lines []string) {
	d.fabric.Lock()
	defer d.fabric.Unlock()
	d.remember(&d.history.alarms, d.entry("discovery", lines, int(d.unnamed.Swap(0))))
}

// miscablings returns the alarms of discovery that hold.
func (d *Daemon) miscablings(ctx context.Context) ([]rpc.Alarm, error) {
	if d.discoverer == nil {
		return nil, nil
	}
	found, _, err := d.discoverer.Alarms(ctx)
	all := make([]rpc.Alarm, len(found))
	for i, a := range found {
		all[i] = rpc.Alarm{Kind: a.Kind.String(), Places: []rpc.AlarmPlace{rpc.AlarmPlace(a.Places[0])}, What: a.Text, Since: d.discoverer.When(a.Since)}
		if a.Places[1] != (discovery.Place{}) {
			all[i].Places = append(all[i].Places, rpc.AlarmPlace(a.Places[1]))
		}
	}
	return all, d.excuse(err)
}

// restoredWait is how long a map from the store stays without what discovery knows.
const restoredWait = 10 * time.Second

// operatorGraph returns the operator's part as discovery takes it; nil: there is none.
func operatorGraph(o *Operator) *topology.Graph {
	if o.Graph.Nodes() == 0 {
		return nil
	}
	return o.Graph
}

// discovered puts a map into effect. It runs on a goroutine of the discoverer.
func (d *Daemon) discovered(n discoverer.News) {
	var err error
	if n.Structural() {
		err = d.goOver(n)
	} else {
		err = d.followStates(n.Changes)
	}
	if err != nil && !errors.Is(err, rpc.ErrClosing) {
		d.log.Error("the discovered map is not put into effect", slog.Any("error", err))
	}
}

// goOver goes over to the graph of a map.
func (d *Daemon) goOver(n discoverer.News) error {
	operator := d.Operator()
	name := cmp.Or(operator.Graph.Fabric(), discovered)
	g, states, err := n.Graph(name)
	if err != nil {
		return err
	}
	agents := n.Agents()
	maps.Copy(agents, agentsIn(g, operator.Agents)) // the operator's come first
	return d.SetFabric(FabricChange{Graph: g, States: states, Agents: agents, Cause: causeOf(n), marks: d.ups(g, n.Map), measured: !n.Whole})
}

// agentsIn returns the agents of the switches that g has.
func agentsIn(g *topology.Graph, agents map[string]string) map[string]string {
	all := map[string]string{}
	for name, address := range agents {
		if n, ok := g.Lookup(name); ok && g.IsSwitch(n) {
			all[name] = address
		}
	}
	return all
}

// ups returns that what discovery has said is down is up again, as far as it is in g and
// not down in m.
func (d *Daemon) ups(g *topology.Graph, m discovery.Map) []mark {
	down := map[string]bool{}
	for i := range m.Links {
		down[linkOf(m.Links[i].Ends)] = !m.Links[i].Up
	}
	for i := range m.Nodes {
		down[m.Nodes[i].Name] = !m.Nodes[i].Up
	}
	d.fabric.Lock()
	defer d.fabric.Unlock()
	return slices.DeleteFunc(d.outages.of(byDiscovery), func(x mark) bool { return down[x.what] || !has(g, x.what) })
}

func linkOf(e discovery.Ends) string { return linkBetween(e[0].String(), e[1].String()) }

// followStates follows links and nodes that went down or came up.
func (d *Daemon) followStates(changes []discovery.Change) error {
	marks := make([]mark, 0, len(changes))
	for i := range changes {
		switch c := &changes[i]; c.What {
		case discovery.LinkDown, discovery.LinkUp:
			marks = append(marks, mark{linkOf(c.Link.Ends), byDiscovery, c.What == discovery.LinkUp, c.Cause})
		case discovery.NodeDown, discovery.NodeUp:
			marks = append(marks, mark{c.Node.Name, byDiscovery, c.What == discovery.NodeUp, c.Cause})
		}
	}
	d.fabric.Lock()
	defer d.fabric.Unlock()
	return d.change(marks)
}

// causeOf sums up why a map has changed.
func causeOf(n discoverer.News) string {
	const most = 3
	var causes []string
	for i := range n.Changes {
		if c := n.Changes[i].Cause; c != "" && !slices.Contains(causes, c) {
			causes = append(causes, c)
		}
	}
	if more := len(causes) - most; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(causes[:most], "; "), more)
	}
	return strings.Join(causes, "; ")
}

// collectDiscovery reports how far discovery has come.
func (d *Daemon) collectDiscovery(to metrics.Values) {
	if d.discoverer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	all, has, err := d.discoverer.Alarms(ctx)
	if err != nil {
		to.Failed(descTargets, d.excuse(err))
		return
	}
	to.Count(descTargets, has.Connected, "connected")
	to.Count(descTargets, has.Targets-has.Connected, "away")
	alarms := map[string]int{}
	for i := range all {
		alarms[all[i].Kind.String()]++
	}
	for kind, n := range alarms {
		to.Count(descAlarms, n, kind)
	}
	n := d.discoverer.Counts()
	to.Counter(descUpdates, n.Updates.Load(), "applied")
	to.Counter(descUpdates, n.Ignored.Load(), "ignored")
	to.Counter(descUpdates, n.Malformed.Load(), "malformed")
	to.Counter(descUpdates, n.Beyond.Load(), "beyond")
	to.Counter(descTargetFailures, n.Failures.Load())
	to.Counter(descUndialled, has.Refused)
}
