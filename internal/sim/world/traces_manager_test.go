package world

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/topology"
)

// The traces of issue 2, point 5, in which the manager has a part. Each test
// cites its words.

// estate is a scene on a whole fabric: two spines above two leaves with two
// hosts each, an agent on every switch, a manager, and a group of all hosts.
type estate struct {
	*scene
	*Fabric
}

const (
	storeDelay = 100 * time.Microsecond
	planDelay  = 50 * time.Microsecond
)

func newEstate(t *testing.T, disturb func(w *sim.World)) *estate {
	t.Helper()
	w, err := sim.New(sceneConfig())
	if err != nil {
		t.Fatal(err)
	}
	e, err := buildEstate(w)
	if err != nil {
		t.Fatal(err)
	}
	e.T = t
	if disturb != nil {
		disturb(w)
	}
	return e
}

func buildEstate(w *sim.World) (*estate, error) {
	graph, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		return nil, err
	}
	reg := newRegistry()
	f, err := NewFabric(w, graph, FabricConfig{
		Manager: managerConfig(), Plan: planDelay, Store: storeDelay, Redial: 300 * time.Microsecond,
		Installed: reg.installed,
	})
	if err != nil {
		return nil, err
	}
	// Neighbours by rank are not on one leaf: trees of switches and of hosts
	// give different bits.
	hosts := []topology.NodeID{0, 2, 1, 3}
	g, err := f.NewGroup("all", hosts, endpoint.Config{Group: 1, Cookie: 7, ChunkBytes: chunkBytes, Window: 4, Timing: timing()})
	if err != nil {
		return nil, err
	}
	s := &scene{w: w, rand: rand.New(rand.NewPCG(1, 2)), crew: newCrew(g, reg), ids: f.Switches}
	return &estate{scene: s, Fabric: f}, nil
}

// active returns the manager's number of the group and the epoch of its tree.
func (e *estate) active() (group, epoch uint32) {
	for _, s := range e.ManagerNode().Core().Groups() {
		if s.State == manager.Active {
			return s.Group, s.Epoch
		}
	}
	return 0, 0
}

// root returns the node of the present tree's root.
func (e *estate) root() sim.NodeID {
	e.Helper()
	group, epoch := e.active()
	x, ok := e.ManagerNode().Core().Group(group)
	if !ok {
		e.Fatal("there is no group")
	}
	for _, t := range x.Trees {
		if t.Epoch == epoch {
			return e.Switches[e.Graph.SwitchIndex(t.Plan.Tree.Root())]
		}
	}
	e.Fatalf("there is no tree of epoch %d", epoch)
	return 0
}

// settle waits until all members are in the manager's tree.
func (e *estate) settle() {
	e.Helper()
	e.until("all have entered the manager's tree", func() bool {
		_, epoch := e.active()
		return epoch > 0 && e.allIn(epoch)
	})
}

// clean waits until the switches have nothing reserved any more.
func (e *estate) clean() {
	e.Helper()
	e.until("nothing is left on the switches", e.isClean)
}

func (e *estate) isClean() bool { return (&story{world: e.w, fabric: e.Fabric}).clean() }

// TestManagedGroup: the usual life of a group: a tree, its death, another tree,
// the group's end, and nothing left behind.
func TestManagedGroup(t *testing.T) {
	e := newEstate(t, nil)
	e.settle()
	k := e.sum(20)
	e.startAll(k)
	e.until("it is done", e.idle)
	_, first := e.active()
	e.number, _ = e.active()
	e.inSwitchTree(k, first)
	dead := e.root()
	e.w.Crash(dead)
	l := e.sum(20)
	e.startAll(l)
	e.until("there is another tree", func() bool { _, epoch := e.active(); return epoch > 0 && e.root() != dead })
	e.settle()
	m := e.sum(20)
	e.startAll(m)
	e.startAll(e.leave())
	e.finish()
	if h := e.Hosts[0].Completions[2]; h.OffloadDone != h.Chunks {
		t.Errorf("the third operation: %+v, want all by offload", h)
	}
	e.clean()
}

// TestRootAndManagerDeadAtOnce: "the root and the manager dead at once": in the
// middle of an operation. It goes on over hosts, and the switches that live free
// by themselves what nobody renews.
func TestRootAndManagerDeadAtOnce(t *testing.T) {
	e := newEstate(t, nil)
	e.settle()
	k := e.sum(40)
	e.startAll(k)
	e.until("some chunks are done", func() bool { return e.Hosts[3].Core().Counters().Results >= 10 })
	e.w.Crash(e.root())
	e.w.Crash(e.Manager)
	e.startAll(e.leave())
	e.finish()
	for r, h := range e.Hosts {
		if c := h.Completions[0]; c.OffloadDone < 10 || c.OffloadDone == c.Chunks || c.LastEpoch%2 == 0 {
			t.Errorf("rank %d: %+v, want the end of it over hosts", r, c)
		}
	}
	e.clean()
}

// TestRootAndManagerDeadManagerComesBack: the same, and the manager comes back
// from its disk: it finds the tree dead and offers another.
func TestRootAndManagerDeadManagerComesBack(t *testing.T) {
	e := newEstate(t, nil)
	e.settle()
	_, first := e.active()
	k := e.sum(40)
	e.startAll(k)
	e.until("some chunks are done", func() bool { return e.Hosts[3].Core().Counters().Results >= 10 })
	e.w.Crash(e.root())
	e.w.Crash(e.Manager)
	e.until("it is done", e.idle)
	e.RestartManager()
	e.until("there is another tree", func() bool { _, epoch := e.active(); return epoch > first })
	e.settle()
	l := e.sum(20)
	e.startAll(l)
	e.startAll(e.leave())
	e.finish()
	if c := e.Hosts[0].Completions[1]; c.OffloadDone != c.Chunks {
		t.Errorf("the second operation: %+v, want all by offload", c)
	}
	e.clean()
}

// TestManagerDiesBetweenNotifyingTwoMembers: "a manager that dies between notifying
// two members". Rank 0 holds an offer that rank 1 will never get: nobody enters
// it. The manager's next life finds the tree in its records.
func TestManagerDiesBetweenNotifyingTwoMembers(t *testing.T) {
	e := newEstate(t, nil)
	e.w.SetLink(e.Manager, e.node(1), sim.Link{Delay: 5 * time.Millisecond})
	held := map[sim.NodeID]bool{}
	e.rule(func(p *packet, _ *sim.Fate) {
		if _, ok := p.frame.(*wire.Holding); ok {
			held[p.from] = true
		}
	})
	e.until("the tree is active", func() bool { _, epoch := e.active(); return epoch > 0 })
	group, epoch := e.active()
	e.run(time.Millisecond)
	e.w.Cut(e.Manager, e.node(1)) // so that nothing arrives of what is under way
	e.w.Crash(e.Manager)
	e.w.Repair(e.Manager, e.node(1))
	if !held[e.node(2)] || !held[e.node(3)] || held[e.node(1)] {
		t.Fatalf("these members hold the offer: %v; want all but rank 1", held)
	}
	k := e.sum(10)
	e.startAll(k)
	e.until("it is done", e.idle)
	for r, h := range e.Hosts {
		if len(h.Entered) > 0 || h.Completions[0].OffloadDone > 0 {
			t.Errorf("rank %d: %+v %+v, want it on the tree of hosts", r, h.Entered, h.Completions[0])
		}
	}
	e.RestartManager()
	e.settle()
	if g, now := e.active(); g != group || now != epoch {
		t.Errorf("the tree is epoch %d of group %d, was epoch %d of group %d", now, g, epoch, group)
	}
	l := e.sum(10)
	e.startAll(l)
	e.startAll(e.leave())
	e.finish()
	if c := e.Hosts[0].Completions[1]; c.OffloadDone != c.Chunks {
		t.Errorf("the second operation: %+v, want all by offload", c)
	}
	e.clean()
}

// TestRestartedSwitchNeverRejoins: "a switch that restarts empty in the same
// epoch", before anyone has noticed that it was away: its next life refuses the
// epoch, and the group goes on in another.
func TestRestartedSwitchNeverRejoins(t *testing.T) {
	e := newEstate(t, nil)
	e.settle()
	_, first := e.active()
	k := e.sum(40)
	e.startAll(k)
	e.until("some chunks are done", func() bool { return e.Hosts[3].Core().Counters().Results >= 10 })
	root := e.root()
	late := e.once(
		func(p *packet) bool { return p.offload && p.to == root && p.Type == wire.Contribution },
		func(fate *sim.Fate) { fate.Copy, fate.CopyDelay = true, 20*time.Millisecond })
	e.run(2 * hop)
	for i, id := range e.Switches {
		if id == root {
			e.RestartSwitch(i)
		}
	}
	l := e.sum(5)
	e.startAll(l)
	e.until("it is done", e.idle)
	e.settle()
	if _, epoch := e.active(); epoch <= first {
		t.Errorf("the tree is epoch %d, was %d", epoch, first)
	}
	e.run(20 * time.Millisecond)
	e.happened("an old packet comes to the switch's next life", late)
	e.startAll(e.leave())
	e.finish()
	e.clean()
}
