package managerd_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

func TestTreeIsBuiltAndReduces(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	offers := g.offers(0)
	if offers[0].Epoch%2 != 0 || offers[0].Window != 8 {
		t.Errorf("offer %+v", offers[0])
	}
	for chunk := range uint32(20) {
		g.allreduce(offers, chunk)
	}

	e := g.explain()
	if e.Name != "job" || e.State != manager.Active || e.Members != 4 || e.Watching != 4 || e.Epoch != offers[0].Epoch ||
		len(e.Missing) != 0 || e.Refusal != nil || len(e.History) == 0 || e.History[0].At.After(time.Now()) {
		t.Errorf("explanation %+v", e)
	}
	tree := e.Trees[0]
	if len(tree.Switches) != 3 || !strings.HasPrefix(tree.Switches[0].Switch, "spine") || tree.Figures.Hops != 6 || tree.Method != "levels" || !tree.Exact || len(tree.RunnersUp) == 0 || tree.Reason == "" {
		t.Errorf("tree %+v", tree)
	}
	for rank, l := range tree.Members {
		if l.Host != f.hosts()[rank] || !strings.HasPrefix(tree.Switches[l.Vertex].Switch, "leaf") {
			t.Errorf("rank %d is %+v", rank, l)
		}
	}
	fabric, err := f.client.Topology(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	trees := 0
	for _, l := range fabric.Cables {
		trees += l.Trees
	}
	if trees != 6 || fabric.Hosts != 4 || fabric.Switches != 4 || fabric.Links != 8 {
		t.Errorf("%d links of trees in %d hosts, %d switches, %d links", trees, fabric.Hosts, fabric.Switches, fabric.Links)
	}
	for rank, name := range f.hosts() {
		at := slices.IndexFunc(fabric.Nodes, func(n rpc.FabricNode) bool { return n.Name == name })
		if fabric.Nodes[at].Speed != speedOf(uint32(rank)) {
			t.Errorf("%s reduces %v", name, fabric.Nodes[at].Speed)
		}
	}
	root, err := f.switchState(testContext(t), tree.Switches[0].Switch)
	if err != nil || !root.Connected || root.Trees != 1 || root.SlotsUsed != 16 {
		t.Errorf("root %+v, %v", root, err)
	}
	groups, err := f.client.Groups(testContext(t))
	if err != nil || len(groups) != 1 || groups[0] != e.Summary {
		t.Errorf("groups %+v, %v", groups, err)
	}
	byName, err := f.client.Explain(testContext(t), rpc.GroupRef{Name: "job"})
	if err != nil || byName.Group != g.id {
		t.Errorf("by name: %+v, %v", byName, err)
	}
}

func TestTwoGroupsTakeTwoRoots(t *testing.T) {
	f := newFabric(t, nil)
	a, b := f.newGroup(f.spec("a")), f.newGroup(f.spec("b"))
	first, second := a.offers(0), b.offers(0)
	if x, y := a.root(first[0].Epoch), b.root(second[0].Epoch); x == y {
		t.Errorf("both have the root %s", x)
	}
	a.allreduce(first, 0)
	b.allreduce(second, 0)
}

func TestDeathOfTheRoot(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	before := g.offers(0)
	epoch := before[0].Epoch
	root := g.root(epoch)
	f.agents[root].Kill()
	for _, m := range g.members {
		if w := m.withdrawal(epoch); !strings.Contains(w.Why, root) {
			t.Errorf("rank %d: withdrawn because %q", m.rank, w.Why)
		}
	}
	after := g.offers(epoch)
	if other := g.root(after[0].Epoch); other == root {
		t.Errorf("the new root is %s again", other)
	}
	g.allreduce(after, 0)

	f.restartAgent(root)
	f.eventually("the agent is met again", func(ctx context.Context) (bool, error) {
		s, err := f.switchState(ctx, root)
		return err == nil && s.Connected, err
	})
	g.allreduce(after, 1)
}

func TestLastWayDiesAndComesBack(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	epoch := g.offers(0)[0].Epoch
	const leaf = "leaf-0"
	f.agents[leaf].Kill()
	for _, m := range g.members {
		m.withdrawal(epoch)
		var refusal *manager.Refusal
		if n := m.notice(); !errors.As(n.Err, &refusal) || !errors.Is(n.Err, manager.ErrNoTree) || refusal.Switch != leaf {
			t.Errorf("rank %d: noticed %v", m.rank, n.Err)
		}
	}
	f.restartAgent(leaf)
	g.allreduce(g.offers(epoch), 0)
}

func TestManagerRestarts(t *testing.T) {
	for name, end := range map[string]func(*managerd.Daemon){"close": (*managerd.Daemon).Close, "kill": (*managerd.Daemon).Kill} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) { c.Store = new(managerd.Memory) })
			g := f.newGroup(f.spec("job"))
			offers := g.offers(0)
			end(f.manager)
			end(f.manager)
			if err := f.manager.Err(); err != nil {
				t.Errorf("the server ended with %v", err)
			}
			for _, m := range g.members {
				if err := <-m.ended; !errors.Is(err, rpc.ErrUnavailable) {
					t.Errorf("rank %d: %v", m.rank, err)
				}
			}
			g.allreduce(offers, 0) // without a manager

			f.startManager()
			id, found, err := f.client.CreateGroup(testContext(t), f.spec("job"))
			if err != nil || !found || id != g.id {
				t.Fatalf("group %d, found %v, %v", id, found, err)
			}
			for _, m := range g.members {
				m.watch(offers[0].Epoch)
			}
			for i, o := range g.offers(0) {
				if diff := cmp.Diff(offers[i].Parent.String(), o.Parent.String()); diff != "" || o.Epoch != offers[i].Epoch || o.Cookie != offers[i].Cookie {
					t.Errorf("rank %d: offered %+v, before it was %+v", i, o, offers[i])
				}
			}
			g.allreduce(offers, 1)
		})
	}
}

func TestAgentsComeLate(t *testing.T) {
	f := newFabric(t, nil)
	f.manager.Kill()
	for _, a := range f.agents {
		a.Kill()
	}
	f.startManager()
	g := f.newGroup(f.spec("job"))
	if n := g.members[0].notice(); !errors.Is(n.Err, manager.ErrNoTree) {
		t.Errorf("noticed %v", n.Err)
	}
	for name := range f.agents {
		f.restartAgent(name)
	}
	g.allreduce(g.offers(0), 0)
}

func TestRelease(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	g.offers(0)
	if err := f.client.ReleaseGroup(testContext(t), g.id); err != nil {
		t.Fatal(err)
	}
	for _, m := range g.members {
		if n := m.notice(); !errors.Is(n.Err, manager.ErrReleased) || !n.End {
			t.Errorf("rank %d: noticed %+v", m.rank, n)
		}
		if err := <-m.ended; err != nil {
			t.Errorf("rank %d: the stream ended with %v", m.rank, err)
		}
	}
	for name, a := range f.agents {
		f.eventually(name+" holds nothing", func(ctx context.Context) (bool, error) {
			s, err := a.State(ctx)
			return len(s.Holds) == 0, err
		})
	}
	f.eventually("the group is gone", func(ctx context.Context) (bool, error) {
		groups, err := f.client.Groups(ctx)
		return len(groups) == 0, err
	})
}

func TestDrainMovesTheTree(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	offers := g.offers(0)
	root := g.root(offers[0].Epoch)
	if err := f.client.DrainSwitch(testContext(t), root, true); err != nil {
		t.Fatal(err)
	}
	later := g.offers(offers[0].Epoch)
	g.allreduce(offers, 0) // the old tree stays until all have left it
	for _, m := range g.members {
		m.reports(manager.Report{Entered: later[0].Epoch, Transport: manager.Offload})
	}
	g.allreduce(later, 1)
	f.eventually("the drained switch carries nothing", func(ctx context.Context) (bool, error) {
		s, err := f.agents[root].State(ctx)
		return len(s.Holds) == 0, err
	})
	if e := g.explain(); e.Offload != 4 || e.Epoch != later[0].Epoch {
		t.Errorf("explanation %+v", e)
	}
}

func TestDrainAtTheAgentIsSeen(t *testing.T) {
	f := newFabric(t, nil)
	if err := f.agents["spine-0"].Drain(testContext(t), true); err != nil {
		t.Fatal(err)
	}
	f.eventually("the manager sees it", func(ctx context.Context) (bool, error) {
		s, err := f.switchState(ctx, "spine-0")
		return err == nil && s.Draining, err
	})
	g := f.newGroup(f.spec("job"))
	if root := g.root(g.offers(0)[0].Epoch); root != "spine-1" {
		t.Errorf("the root is %s", root)
	}
}

func TestLossThatMembersReport(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	offers := g.offers(0)
	epoch := offers[0].Epoch
	for _, m := range g.members {
		m.reports(manager.Report{Entered: epoch + 1, Transport: manager.HostTree, Lost: epoch})
	}
	later := g.offers(epoch + 1)
	g.allreduce(later, 0)
}

func TestTopologyChanges(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	epoch := g.offers(0)[0].Epoch
	root := g.root(epoch)
	n, _ := f.graph.Lookup(root)
	if err := f.manager.ChangeTopology(topology.LinkState(f.graph.Adjacent(n)[0], false)); err != nil {
		t.Fatal(err)
	}
	later := g.offers(epoch)
	if other := g.root(later[0].Epoch); other == root {
		t.Errorf("the root is still %s", root)
	}
	g.allreduce(later, 0)
	if err := f.manager.ChangeTopology(topology.LinkState(topology.LinkID(f.graph.Links()), false)); err == nil {
		t.Error("a link that is not there was taken down")
	}
}

func TestAgentKnowsBetterThanTheTopology(t *testing.T) {
	f := newFabric(t, func(_ *managerd.Config, agents map[string]*agentd.Config) {
		for name, c := range agents {
			if strings.HasPrefix(name, "leaf") {
				c.Capability.Slots = 10
			}
		}
	})
	c := f.spec("large")
	g := f.newGroup(c)
	var refusal *manager.Refusal
	n := g.members[0].notice()
	for !errors.As(n.Err, &refusal) || refusal.Resource != "slots" { // agents are still being met
		n = g.members[0].notice()
	}
	if !refusal.Counted || refusal.Need != 16 || refusal.Free != 10 || !strings.HasPrefix(refusal.Switch, "leaf") {
		t.Errorf("refused: %+v", refusal)
	}
	c.Name, c.Window = "small", 4
	small := f.newGroup(c)
	small.allreduce(small.offers(0), 0)
}

func TestBadRequests(t *testing.T) {
	f := newFabric(t, nil)
	ctx := testContext(t)
	create := func(change func(*manager.Create)) error {
		c := f.spec("bad")
		change(&c)
		_, _, err := f.client.CreateGroup(ctx, c)
		return err
	}
	for name, tt := range map[string]struct{ got, want error }{
		"no name":        {create(func(c *manager.Create) { c.Name = "" }), manager.ErrRequest},
		"no members":     {create(func(c *manager.Create) { c.Members = nil }), manager.ErrTooFew},
		"one member":     {create(func(c *manager.Create) { c.Members = c.Members[:1] }), manager.ErrTooFew},
		"no host's name": {create(func(c *manager.Create) { c.Members[2] = "no body" }), manager.ErrUnknownHost},
		"switch as host": {create(func(c *manager.Create) { c.Members[2] = "leaf-0" }), manager.ErrUnknownHost},
		"duplicate":      {create(func(c *manager.Create) { c.Members[2] = c.Members[1] }), manager.ErrDuplicate},
		"window":         {create(func(c *manager.Create) { c.Window = 7 }), manager.ErrRequest},
		"release":        {f.client.ReleaseGroup(ctx, 99), manager.ErrUnknownGroup},
		"drain":          {f.client.DrainSwitch(ctx, "leaf-99", true), manager.ErrUnknownSwitch},
		"drain a host":   {f.client.DrainSwitch(ctx, f.hosts()[0], true), manager.ErrUnknownSwitch},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
	if _, err := f.client.Explain(ctx, rpc.GroupRef{Name: "nobody"}); !errors.Is(err, manager.ErrUnknownGroup) {
		t.Errorf("explain: %v", err)
	}
	g := f.newGroup(f.spec("job"))
	stray := &member{fabric: f, group: g.id, rank: 99, conn: g.members[0].conn}
	stray.watch(0)
	if n := stray.notice(); !n.End || !errors.Is(n.Err, manager.ErrUnknownRank) {
		t.Errorf("rank 99: noticed %+v", n)
	}
	other := f.spec("job")
	other.Window = 16
	if _, _, err := f.client.CreateGroup(ctx, other); !errors.Is(err, manager.ErrExists) {
		t.Errorf("same name, other terms: %v", err)
	}
}

func TestLaterStreamEndsTheEarlier(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	offers := g.offers(0)
	m := g.members[0]
	old, oldEnded := m.events, m.ended
	m.watch(0)
	if o := m.offer(0); o.Epoch != offers[0].Epoch {
		t.Errorf("offered %+v", o)
	}
	for e := range old {
		if e.Notice != nil && (!e.Notice.End || !errors.Is(e.Notice.Err, manager.ErrReplaced)) {
			t.Errorf("noticed %+v", e.Notice)
		}
	}
	if err := <-oldEnded; err != nil {
		t.Error(err)
	}
}

// flakyStore at first fails to store what trees need.
type flakyStore struct {
	managerd.Memory
	failures atomic.Int32 // left
}

func (s *flakyStore) Save(records []manager.Record) error {
	trees := slices.ContainsFunc(records, func(r manager.Record) bool { return r.Kind == manager.TreesRecord })
	if trees && s.failures.Add(-1) >= 0 {
		return errors.New("disk full")
	}
	return s.Memory.Save(records)
}

func TestStoreFailsForAWhile(t *testing.T) {
	s := new(flakyStore)
	s.failures.Store(3)
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) { c.Store = s })
	g := f.newGroup(f.spec("job"))
	g.allreduce(g.offers(0), 0)
	if left := s.failures.Load(); left >= 0 {
		t.Errorf("%d failures were not met", left+1)
	}
}

// brokenStore cannot be loaded.
type brokenStore struct{ managerd.Memory }

var errBroken = errors.New("broken")

func (*brokenStore) Load() ([]manager.Record, error) { return nil, errBroken }

func TestConfig(t *testing.T) {
	g, err := topology.LeafSpine(1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*managerd.Config){
		"agents of nothing":  func(c *managerd.Config) { c.Topology, c.Agents["leaf-0"] = nil, "127.0.0.1:1" },
		"no address":         func(c *managerd.Config) { c.Listen = "" },
		"unknown switch":     func(c *managerd.Config) { c.Agents["leaf-9"] = "127.0.0.1:1" },
		"agent of a host":    func(c *managerd.Config) { c.Agents[g.Name(0)] = "127.0.0.1:1" },
		"no agent's address": func(c *managerd.Config) { c.Agents["leaf-0"] = "" },
		"heartbeat":          func(c *managerd.Config) { c.Heartbeat = -1 },
		"core":               func(c *managerd.Config) { c.Core.MaxWindow = 3 },
	} {
		c := managerd.Config{Topology: g, Agents: map[string]string{}, Listen: "127.0.0.1:0"}
		spoil(&c)
		if d, err := managerd.Start(c); !errors.Is(err, managerd.ErrConfig) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				d.Kill()
			}
		}
	}
	c := managerd.Config{Topology: g, Listen: "127.0.0.1:0", Store: new(brokenStore)}
	if _, err := managerd.Start(c); !errors.Is(err, errBroken) {
		t.Errorf("broken store: %v", err)
	}
}

// errorsLogged is a slog.Handler that hands on the errors in records.
type errorsLogged chan error

func (errorsLogged) Enabled(context.Context, slog.Level) bool { return true }
func (h errorsLogged) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h errorsLogged) WithGroup(string) slog.Handler          { return h }
func (h errorsLogged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			select {
			case h <- err:
			default:
			}
		}
		return true
	})
	return nil
}

func TestAgentOfAnotherSwitch(t *testing.T) {
	logged := make(errorsLogged, 100)
	f := startFabric(t, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Log = slog.New(logged)
		agents["leaf-0"].Switch = "leaf-1"
	})
	for !errors.Is(<-logged, managerd.ErrOtherSwitch) {
	}
	s, err := f.switchState(testContext(t), "leaf-0")
	if err != nil || s.Connected {
		t.Errorf("leaf-0 %+v, %v", s, err)
	}
}

func TestAbsentAgentIsNamed(t *testing.T) {
	logged := make(errorsLogged, 100)
	startFabric(t, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Log = slog.New(logged)
		c.Connect = 50 * time.Millisecond
		c.Agents["leaf-0"] = "127.0.0.1:1"
		delete(agents, "leaf-0")
	})
	for {
		text := (<-logged).Error() // others may be slow, too
		if strings.Contains(text, "agent 127.0.0.1:1:") {
			if !strings.Contains(text, "did not answer within 50ms") {
				t.Errorf("logged %v", text)
			}
			return
		}
	}
}

func TestMemory(t *testing.T) {
	var m managerd.Memory
	save := func(records ...manager.Record) {
		t.Helper()
		if err := m.Save(records); err != nil {
			t.Fatal(err)
		}
	}
	save(manager.Record{Seq: 1, Kind: manager.FleetRecord}, manager.Record{Seq: 2, Kind: manager.SpecRecord, Group: 1})
	save(manager.Record{Seq: 3, Kind: manager.SpecRecord, Group: 2}, manager.Record{Seq: 4, Kind: manager.FleetRecord})
	save(manager.Record{Seq: 5, Kind: manager.SpecRecord, Group: 1, Delete: true})
	all, err := m.Load()
	if err != nil || len(all) != 2 || all[0].Seq != 3 || all[1].Seq != 4 {
		t.Errorf("loaded %+v, %v", all, err)
	}
}

func TestSlotsAreRefusedByName(t *testing.T) {
	f := newFabric(t, func(_ *managerd.Config, agents map[string]*agentd.Config) {
		for _, c := range agents {
			c.Capability.Slots = 20
		}
	})
	first := f.newGroup(f.spec("first"))
	first.offers(0)
	second := f.newGroup(f.spec("second"))
	n := second.members[0].notice()
	var refusal *manager.Refusal
	if !errors.As(n.Err, &refusal) || refusal.Resource != agent.Slots.String() || refusal.Need != 16 || refusal.Free != 4 ||
		len(refusal.Holders) != 1 || refusal.Holders[0].Group != first.id {
		t.Fatalf("noticed %v", n.Err)
	}
	if err := f.client.ReleaseGroup(testContext(t), first.id); err != nil {
		t.Fatal(err)
	}
	second.allreduce(second.offers(0), 0)
}
