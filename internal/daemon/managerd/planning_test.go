package managerd_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// toil is a processor that is busy for half of the time between two readings.
type toil struct{ reads atomic.Int64 }

func (c *toil) Read() (processor.Time, error) {
	n := time.Duration(c.reads.Add(1))
	return processor.Time{Busy: n * time.Second, Total: 2 * n * time.Second}, nil
}

// TestBusySwitchIsAvoided: an agent reports how busy its CPU is; groups keep away from
// it by load, and by what their purpose decides, until it is gone.
func TestBusySwitchIsAvoided(t *testing.T) {
	f := newFabric(t, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Verify = time.Millisecond
		agents["spine-0"].Processor = new(toil).Read
	})
	cpu := func(want float64) {
		t.Helper()
		f.eventually("spine-0's CPU is known", func(ctx context.Context) (bool, error) {
			s, err := f.switchState(ctx, "spine-0")
			return s.CPU == want, err
		})
	}
	cpu(0.5)
	for _, name := range []string{"a", "b", "c"} {
		spec := f.spec(name)
		spec.Purpose.Criterion = pathsel.LeastLoad
		g := f.newGroup(spec)
		offers := g.offers(0)
		e := g.explain()
		tree := e.Trees[0]
		if e.Purpose != spec.Purpose || tree.Criterion != pathsel.LeastLoad || tree.Figures.Price == 0 || len(tree.RunnersUp) == 0 {
			t.Errorf("%+v", e)
		}
		if name == "a" && tree.Switches[0].Switch != "spine-1" {
			t.Errorf("the root is %s: %s", tree.Switches[0].Switch, tree.Reason)
		}
		g.allreduce(offers, 0)
	}
	for name, purpose := range map[string]pathsel.Purpose{
		"of any use": {}, "short": {Collective: pathsel.Allreduce, Bytes: 64}, "long": {Collective: pathsel.Allreduce, Bytes: 8 << 20},
	} {
		spec := f.spec(name)
		spec.Purpose = purpose
		g := f.newGroup(spec)
		g.allreduce(g.offers(0), 0)
		tree := g.explain().Trees[0]
		if !strings.Contains(tree.Reason, "root spine-1") || strings.Contains(tree.Reason, "lost by") && !strings.Contains(tree.Reason, "lost by a slow switch (spine-0 reduces") {
			t.Errorf("%s: %s", name, tree.Reason)
		}
	}
	f.agents["spine-0"].Kill()
	cpu(0)
}

// TestTopologyEvents: what the operator says of nodes and links moves the trees
// that are concerned, and no other.
func TestTopologyEvents(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	first := g.offers(0)[0].Epoch
	root := g.root(first)
	other := map[string]string{"spine-0": "spine-1", "spine-1": "spine-0"}[root]
	on, _ := f.graph.Lookup(root)
	off, _ := f.graph.Lookup(other)
	change := func(changes ...topology.Change) {
		t.Helper()
		if err := f.manager.ChangeTopology(changes...); err != nil {
			t.Fatal(err)
		}
	}
	change(topology.NodeState(off, false), topology.NodeUtilization(on, 1))
	change(topology.NodeState(off, true))
	change() // nothing
	change(topology.NodeState(on, false))
	second := g.offers(first)[0].Epoch
	if got := g.root(second); got != other || second != first+2 {
		t.Errorf("epoch %d after %d has the root %s", second, first, got)
	}
	if e := g.explain(); e.Trees[len(e.Trees)-1].Stage != manager.TreeActive {
		t.Errorf("%+v", e)
	}
}
