package managerd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// without returns g without some nodes, the numbers of the others changed.
func without(t *testing.T, g *topology.Graph, names ...string) *topology.Graph {
	t.Helper()
	b := topology.Builder{Fabric: g.Fabric()}
	refs := map[topology.NodeID]topology.Ref{}
	for n := topology.NodeID(g.Nodes() - 1); n >= 0; n-- {
		var err error
		if slices.Contains(names, g.Name(n)) {
			continue
		}
		if g.IsSwitch(n) {
			refs[n], err = b.AddSwitch(g.Name(n), g.Capability(n))
		} else {
			refs[n], err = b.AddHost(g.Name(n))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range g.AllLinks() {
		x, y := link.Ends[0], link.Ends[1]
		a, okA := refs[x.Node]
		z, okZ := refs[y.Node]
		if !okA || !okZ {
			continue
		}
		if _, err := b.Connect(z, y.Port, a, x.Port, link.LinkSpec); err != nil {
			t.Fatal(err)
		}
	}
	next, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// set puts a fabric into effect, with the agents that the test has of its switches.
func (f *fabric) set(g *topology.Graph, cause string, states ...topology.Change) {
	f.Helper()
	agents := map[string]string{}
	for name, address := range f.at {
		if n, ok := g.Lookup(name); ok && g.IsSwitch(n) {
			agents[name] = address
		}
	}
	if err := f.manager.SetFabric(managerd.FabricChange{Graph: g, Agents: agents, States: states, Cause: cause}); err != nil {
		f.Fatal(err)
	}
}

// TestFabricGrowsFromNothing begins with no map at all: a group waits for its hosts,
// has a tree when they are there, and goes over to others as the fabric changes.
func TestFabricGrowsFromNothing(t *testing.T) {
	f := startFabric(t, nil)
	f.manager.Kill()
	f.at = maps.Clone(f.cfg.Agents)
	f.cfg.Topology, f.cfg.Agents = nil, nil
	f.startManager()
	g := f.newGroup(f.spec("job"))
	if why := g.members[3].notice().Err; !errors.Is(why, manager.ErrAbsent) || !strings.Contains(why.Error(), "h0 h1 h2 h3") {
		t.Fatalf("refused because of %v", why)
	}
	f.set(without(t, f.graph, "h3", "spine-1"), "it was found")
	if why := g.members[3].notice().Err; !errors.Is(why, manager.ErrAbsent) || !strings.Contains(why.Error(), "(h3)") {
		t.Fatalf("refused because of %v", why)
	}
	f.set(f.graph, "h3 was found, and a spine")
	f.connected()
	offers := g.offers(0)
	g.allreduce(offers, 0)

	// Another order of the same, and a link that no tree is on: nothing moves.
	root := g.root(offers[0].Epoch)
	f.set(without(t, f.graph), "")
	g.allreduce(offers, 1)

	// The root goes.
	f.set(without(t, f.graph, root), "somebody took it away")
	if why := g.members[2].withdrawal(offers[0].Epoch).Why; !strings.Contains(why, root+": it is not in the fabric any more: somebody took it away") {
		t.Errorf("withdrawn because %s", why)
	}
	later := g.offers(offers[0].Epoch)
	g.allreduce(later, 0)
	e := g.explain()
	if !slices.ContainsFunc(e.History, func(c rpc.Change) bool { return strings.Contains(c.What, "somebody took it away") }) {
		t.Errorf("history %v", e.History)
	}

	// It is back, with another agent at another address.
	f.agents[root].Kill()
	c := agentConfig(root)
	f.cfg.Agents = map[string]string{}
	f.startAgent(root, c)
	f.at[root] = f.agents[root].Addr()
	f.set(f.graph, "it is back")
	f.connected()

	// What is down stays so in another graph, and when it comes back.
	other := g.root(later[0].Epoch)
	n, _ := f.graph.Lookup(other)
	f.set(f.graph, "it is broken", topology.NodeState(n, false))
	g.members[1].withdrawal(later[0].Epoch)
	last := g.offers(later[0].Epoch)
	g.allreduce(last, 0)
	f.set(without(t, f.graph, other), "")
	f.set(without(t, f.graph), "")
	f.eventually(other+" is down", func(ctx context.Context) (bool, error) {
		fabric, err := f.manager.Topology(ctx)
		at := slices.IndexFunc(fabric.Nodes, func(n rpc.FabricNode) bool { return n.Name == other })
		return err == nil && at >= 0 && !fabric.Nodes[at].Up && fabric.Nodes[at].Why == "discovery: it is broken", err
	})
	g.allreduce(last, 1)

	history, err := f.manager.TopologyHistory(t.Context())
	if err != nil || len(history) < 7 {
		t.Fatalf("history %v, %v", history, err)
	}
	if c := history[0]; c.Cause != "it was found" || !slices.Contains(c.What, "switch leaf-0 added") || c.At.IsZero() {
		t.Errorf("it begins with %+v", c)
	}
	if !slices.ContainsFunc(history, func(c rpc.MapChange) bool {
		return slices.Equal(c.What, []string{other + " is down by discovery: it is broken"})
	}) {
		t.Errorf("history %v", history)
	}
}

// TestFabricsThatCannotBe leave everything as it is.
func TestFabricsThatCannotBe(t *testing.T) {
	f := newFabric(t, nil)
	for name, c := range map[string]managerd.FabricChange{
		"no graph":            {},
		"agent of nobody":     {Graph: f.graph, Agents: map[string]string{"leaf-9": "127.0.0.1:1"}},
		"agent of a host":     {Graph: f.graph, Agents: map[string]string{"h0": "127.0.0.1:1"}},
		"no address":          {Graph: f.graph, Agents: map[string]string{"leaf-0": ""}},
		"state of a stranger": {Graph: f.graph, States: []topology.Change{topology.NodeState(99, false)}},
	} {
		if err := f.manager.SetFabric(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	g := f.newGroup(f.spec("job"))
	g.allreduce(g.offers(0), 0)
	if history, err := f.manager.TopologyHistory(t.Context()); len(history) > 0 || err != nil {
		t.Errorf("history %v, %v", history, err)
	}
	f.manager.Close()
	if err := f.manager.SetFabric(managerd.FabricChange{Graph: f.graph}); !errors.Is(err, rpc.ErrClosing) {
		t.Errorf("after the end: %v", err)
	}
}

// TestFabricChangesAllTheTime goes from graph to graph while groups come and go.
func TestFabricChangesAllTheTime(t *testing.T) {
	f := newFabric(t, nil)
	f.at = maps.Clone(f.cfg.Agents)
	shapes := []*topology.Graph{f.graph, without(t, f.graph, "spine-0"), without(t, f.graph), without(t, f.graph, "spine-1", "h3"), without(t, f.graph, "leaf-1")}
	for i := range 40 {
		f.set(shapes[i%len(shapes)], fmt.Sprint("change ", i))
		if i%8 == 0 {
			f.newGroup(f.spec(fmt.Sprint("job", i)))
		}
	}
	f.set(f.graph, "the end")
	f.connected()
	last := f.newGroup(f.spec("last"))
	last.allreduce(last.offers(0), 0)
	for _, s := range must(f.client.Groups(testContext(t))) {
		f.eventually(fmt.Sprint("group ", s.Group, " has a tree"), func(ctx context.Context) (bool, error) {
			e, err := f.client.Explain(ctx, rpc.GroupRef{Group: s.Group})
			return err == nil && e.State == manager.Active, err
		})
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
