package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

func TestManagerCalls(t *testing.T) {
	f := &fakeManager{group: 12, found: true, explanation: someExplanation(), fabric: someFabric()}
	for i := range 2*piece + 1 {
		f.groups = append(f.groups, manager.Summary{
			Group: uint32(i + 1), Name: fmt.Sprint("group ", i), Members: 4, Watching: 3, State: manager.Active, Epoch: 2,
		})
	}
	c := dialManager(t, serve(t, Services{Manager: f}))
	ctx := testContext(t)

	create := manager.Create{
		Name: "job", Members: []string{"h0", "h1"}, ChunkBytes: 1432, Window: 64,
		Functions: topology.AllFunctions(), Types: topology.AllTypes(),
		Purpose: pathsel.Purpose{Collective: pathsel.Broadcast, Bytes: 1 << 40, Weights: pathsel.Weights{pathsel.FewestHops: 1, pathsel.LeastLoad: 2.5}},
		Bundle:  manager.Bundle{Name: "job", Kind: manager.Parts, Index: 2, Count: 3},
	}
	group, found, err := c.CreateGroup(ctx, create)
	check(t, "created", err, [2]any{uint32(12), true}, [2]any{group, found})
	create.Owner = "127.0.0.1" // without certificates
	check[any](t, "create", nil, create, f.asked)

	f.plan = GroupPlan{Groups: []PlannedGroup{
		{Ranks: []int{0}, Root: "leaf-0", Figures: pathsel.Figures{Hops: 1, Bandwidth: 50e9}}, {Ranks: []int{1}, Root: "leaf-1"},
	}}
	plan, err := c.PlanGroup(ctx, create)
	check(t, "plan", err, f.plan, plan)
	check[any](t, "planned", nil, create, f.asked)
	f.plan = GroupPlan{Groups: []PlannedGroup{{Root: "spine-0"}}, Fewer: fmt.Errorf("%w: 1 of 2", manager.ErrFewer)}
	if plan, err = c.PlanGroup(ctx, create); err != nil || !errors.Is(plan.Fewer, manager.ErrFewer) || plan.Fewer.Error() != f.plan.Fewer.Error() {
		t.Errorf("a plan of fewer: %+v, %v", plan, err)
	}

	check[any](t, "release", c.ReleaseGroup(ctx, 12), uint32(12), f.asked)
	check[any](t, "drain", c.DrainSwitch(ctx, "leaf-0", true), [2]any{"leaf-0", true}, f.asked)

	f.difference = TopologyDifference{Version: 3, What: []string{"host h9 added"}, More: 2}
	file := TopologyFile{
		Name: "t.yaml", Content: bytes.Repeat([]byte("# much\n"), maxPiece/3), Agents: map[string]string{"leaf-0": "10.0.0.1:7"}, Version: 2, DryRun: true,
	}
	for what, call := range map[string]func(context.Context, TopologyFile) (TopologyDifference, error){
		"set": c.SetTopology, "edit": c.EditTopology, "diff": c.DiffTopology,
	} {
		d, err := call(ctx, file)
		check(t, what, err, f.difference, d)
		check[any](t, what, nil, file, f.asked)
	}
	if _, err := c.DiffTopology(ctx, TopologyFile{}); err != nil || len(f.asked.(TopologyFile).Content) > 0 {
		t.Errorf("a diff without a file: %v", err)
	}
	f.file = TopologyFile{Name: "map.yaml", Content: file.Content, Version: 9}
	got, err := c.TopologyFile(ctx, true)
	check(t, "file", err, f.file, got)
	check[any](t, "file", nil, true, f.asked)
	f.changes = []MapChange{{At: time.Unix(5, 0).UTC(), Version: 4, Cause: "a cable", What: []string{"h0 is down"}, More: 1}}
	changes, err := c.TopologyHistory(ctx)
	check(t, "history", err, f.changes, changes)

	groups, err := c.Groups(ctx)
	check(t, "groups", err, f.groups, groups)

	e, err := c.Explain(ctx, GroupRef{Group: 12})
	check[any](t, "explain by number", nil, GroupRef{Group: 12}, f.asked)
	if err != nil || e.Refusal == nil || e.Refusal.Error() != f.explanation.Refusal.Error() || !errors.Is(e.Refusal, manager.ErrNoTree) {
		t.Errorf("explain: %v; refusal %v", err, e.Refusal)
	}
	e.Refusal = f.explanation.Refusal
	check(t, "explanation", nil, fmt.Sprintf("%+v", f.explanation), fmt.Sprintf("%+v", e))
	if _, err = c.Explain(ctx, GroupRef{Name: "job"}); err != nil {
		t.Error(err)
	}
	check[any](t, "explain by name", nil, GroupRef{Name: "job"}, f.asked)

	fabric, err := c.Topology(ctx)
	check(t, "topology", err, f.fabric, fabric)
}

func someExplanation() Explanation {
	return Explanation{
		Summary: manager.Summary{Group: 12, Name: "job", Members: 2, Watching: 1, State: manager.Preparing, Bundle: someStripe(0)},
		Sisters: []manager.Summary{{Group: 13, Name: "job/1", Members: 2, State: manager.Active, Epoch: 4, Bundle: someStripe(1)}},
		Purpose: pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 4096, Criterion: pathsel.LeastLoad},
		Missing: []uint32{1},
		Trees: []TreeState{{
			Epoch: 2, Stage: manager.TreePrepared, Window: 64,
			Switches: []TreeVertex{
				{"spine-0", -1, nil, topology.SoftwareReducer()}, {"leaf-0", 0, []string{"leaf-0:2--spine-0:1"}, someReducer()},
				{"leaf-1", 0, []string{"leaf-1:2--plain:1", "plain:2--spine-0:2"}, topology.Reducer{}},
			},
			Members: []TreeLeaf{{"h0", 1, []string{"h0:1--leaf-0:1"}, "eth0 (10.0.0.1)"}, {"h1", 2, []string{"h1:1--leaf-1:1"}, ""}},
			Figures: pathsel.Figures{Hops: 5, Depth: 3, Latency: 7 * time.Microsecond, Bandwidth: 50e9, Use: 1, Price: 1.5, Share: 0.25},
			RunnersUp: []Alternative{
				{"spine-1", "levels", pathsel.Figures{Hops: 5, Depth: 3, Use: 3}, "2 more trees"},
			},
			Criterion: pathsel.LeastLoad, Because: "it was given", Method: "steiner", Exact: true,
			Forecast: pathsel.Forecast{Switches: 30 * time.Microsecond, Hosts: time.Millisecond},
			Reason:   "least load",
		}},
		Refusal: &manager.Refusal{Reason: manager.ErrNoTree, Resource: "slots", Switch: "leaf-1", Counted: true, Need: 128, Free: 0},
		Offload: 1, Hosts: 1,
		History:    []Change{{time.Unix(1700000000, 5).UTC(), "created"}},
		Mismatches: []LinkMismatch{someMismatch},
	}
}

func someStripe(index int) manager.Bundle {
	return manager.Bundle{Name: "job", Kind: manager.Stripes, Index: index, Count: 2}
}

var someMismatch = LinkMismatch{
	Link: "leaf-0:5--spine-0:1", Switch: "leaf-0", Interface: "port5", Sent: true, Expected: 98000, Seen: 60,
	Trees: []TreeShare{{12, 2, 90000}, {13, 4, 8000}}, Since: time.Unix(1700000001, 0).UTC(),
}

func TestMismatchString(t *testing.T) {
	want := "link leaf-0:5--spine-0:1: switch leaf-0 sent 98000 bytes of group 12 epoch 2, group 13 epoch 4 over it, and its interface port5 carried 60"
	if got := someMismatch.String(); got != want {
		t.Errorf("it reads %s", got)
	}
	if !someMismatch.Of(13) || someMismatch.Of(14) {
		t.Error("it is of other groups")
	}
}

func someFabric() Fabric {
	f := Fabric{Name: "leaf-spine:2,2,2", Version: 9, Hosts: 2 * piece, Switches: 1, Links: 2 * piece}
	for i := range f.Hosts {
		name := fmt.Sprint("h", i)
		f.Nodes = append(f.Nodes, FabricNode{Name: name, Up: i%2 == 0})
		f.Cables = append(f.Cables, FabricLink{
			A: FabricEnd{name, 1}, B: FabricEnd{"leaf-0", topology.Port(i + 1)}, Up: i%3 == 0,
			Carries: topology.LinkSpec{Bandwidth: 25e9, Latency: time.Microsecond}, Trees: i,
		})
	}
	f.Cables[2].Foreign, f.Nodes[3].Speed = 0.25, topology.Speed{Packets: 1}
	f.Alarms = slices.Repeat([]Alarm{
		{Kind: "loop", Places: []AlarmPlace{{"leaf-0", "eth1"}, {"leaf-0", "eth2"}}, What: "both are ports of leaf-0", Since: time.Unix(7, 0).UTC()},
		{Kind: "unreachable", Places: []AlarmPlace{{"", "10.0.0.9:7410"}}},
	}, 3*piece/4)
	f.Cables[1].Mismatches = []LinkMismatch{someMismatch, {Link: "h1:1--leaf-0:2"}}
	f.Nodes = append(f.Nodes, FabricNode{Name: "leaf-0", Up: true, Switch: &SwitchState{
		Capability: topology.DefaultCapability(), Connected: true, Draining: true, Trees: 3, SlotsUsed: 256, AgentVersion: "v1.2.3", Unusable: "it is wedged", CPU: 0.5,
	}})
	return f
}

func TestManagerWatch(t *testing.T) {
	refused := &manager.Refusal{Reason: manager.ErrNoTree, Resource: "path"}
	sent := []manager.Event{
		{Reply: &manager.Reply{Req: 1 << 40, Group: 12, Found: true}},
		{Reply: &manager.Reply{Req: 3, Err: manager.ErrExists}},
		{Costs: &pathsel.Costs{Rates: pathsel.DefaultCosts().Rates, Processors: 2, Links: pathsel.Links{Rate: 200e6}}},
		{Links: &manager.Links{Group: 12, Rank: 3, Links: pathsel.Links{Rate: 100e9, Uplink: 25e9, Leaf: 40}}},
		{Notice: &manager.Notice{Group: 12, Rank: 3, Err: refused}},
		{Notice: &manager.Notice{Group: 12, Rank: 3}},
		{Offer: &manager.Offer{
			Group: 12, Rank: 3, Epoch: 2, Cookie: 1<<48 - 1, Window: 64,
			Parent: netip.MustParseAddrPort("10.0.0.1:4000"), Source: netip.MustParseAddr("10.0.0.9"), Index: 7, Probes: 8, Idle: 10 * time.Second,
			Reducers: []manager.TreeReducer{{Reducer: someReducer(), Switches: 9, Names: []string{"leaf-0", "leaf-1"}}, {Switches: 1, Names: []string{"old"}}},
		}},
		{Withdrawal: &manager.Withdrawal{Group: 12, Rank: 3, Epoch: 2, Why: "switch leaf-1 died"}},
		{Notice: &manager.Notice{Group: 12, Rank: 3, Err: manager.ErrReleased, End: true}},
	}
	f := &fakeManager{events: make(chan manager.Event, len(sent))}
	for _, e := range sent {
		f.events <- e
	}
	close(f.events)
	c := dialManager(t, serve(t, Services{Manager: f}))
	watch := manager.Watch{Group: 12, Rank: 3, DataAddr: netip.MustParseAddrPort("10.0.0.9:5"), Entered: 1, Speed: topology.Speed{Bytes: 5e9, Packets: topology.NoSpeed}, OnlyRails: true,
		Rails: []manager.Rail{{Name: "eth0", Address: netip.MustParseAddr("10.0.0.9")}, {Name: "b", Address: netip.MustParseAddr("fd00::1"), Fault: "no carrier"}}}
	i := 0
	err := ask(testContext(t), c, watch, func(e manager.Event) {
		want := sent[i]
		i++
		if want.Notice != nil && e.Notice != nil && want.Notice.Err != nil {
			if !errors.Is(e.Notice.Err, want.Notice.Err) && !errors.Is(e.Notice.Err, manager.ErrNoTree) {
				t.Errorf("notice says %v, want %v", e.Notice.Err, want.Notice.Err)
			}
			e.Notice.Err = want.Notice.Err
		}
		if want.Reply != nil && e.Reply != nil && want.Reply.Err != nil {
			if !errors.Is(e.Reply.Err, want.Reply.Err) {
				t.Errorf("the reply says %v, want %v", e.Reply.Err, want.Reply.Err)
			}
			e.Reply.Err = want.Reply.Err
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v", spread(want)), fmt.Sprintf("%+v", spread(e))); diff != "" {
			t.Error(diff)
		}
	})
	if err != nil || i != len(sent) {
		t.Errorf("after %d of %d events: %v", i, len(sent), err)
	}
	check[any](t, "watch", nil, watch, f.asked)
}

// TestHostRequests sends every request of a host's.
func TestHostRequests(t *testing.T) {
	for _, in := range []manager.Input{
		manager.Create{Req: 7, Name: "job", Members: []string{"h0", "h1"}, ChunkBytes: 1432, Window: 64, Functions: topology.AllFunctions(), Types: topology.AllTypes()},
		manager.Release{Req: 1 << 40, Group: 12},
		manager.Watch{Group: 12, Rank: 3, DataAddr: netip.MustParseAddrPort("10.0.0.9:5"), Entered: 1},
		manager.Unwatch{Group: 12, Rank: 3},
		manager.Unwatch{Group: 12, Over: true},
		manager.Report{Group: 12, Rank: 3, Entered: 4, Transport: manager.HostTree, Lost: 2, Silent: true, Reason: "no answer", Demand: 8},
	} {
		f := &fakeManager{events: closed[manager.Event]()}
		err := ask(testContext(t), dialManager(t, serve(t, Services{Manager: f})), in, nil)
		if c, ok := in.(manager.Create); ok {
			c.Owner = "127.0.0.1" // without certificates
			in = c
		}
		check[any](t, fmt.Sprintf("%T", in), err, in, f.asked)
	}
}

// ask sends a request in a session, and hands on what comes until the manager ends
// it.
func ask(ctx context.Context, c *ManagerClient, in manager.Input, event func(manager.Event)) error {
	s, err := c.HostSession(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(in); err != nil && !errors.Is(err, io.EOF) { // then Recv knows why
		return err
	}
	for {
		e, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		event(e)
	}
}

// spread lets fmt see what an event points to.
func spread(e manager.Event) any {
	switch {
	case e.Reply != nil:
		return *e.Reply
	case e.Offer != nil:
		return *e.Offer
	case e.Withdrawal != nil:
		return *e.Withdrawal
	case e.Costs != nil:
		return *e.Costs
	case e.Links != nil:
		return *e.Links
	}
	return *e.Notice
}

func TestNewExplanation(t *testing.T) {
	g, err := topology.LeafSpine(1, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	planner, err := pathsel.NewPlanner(g, pathsel.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Plan(g.View(), nil, pathsel.Request{Members: []topology.NodeID{0, 1}, Slots: 2, ChunkBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range plan.Tree.Vertices {
		names = append(names, g.Name(v.Switch))
	}
	e := NewExplanation(manager.Explanation{
		Summary: manager.Summary{Group: 1}, Names: []string{g.Name(0), g.Name(1)},
		Trees:   []manager.TreeState{{Epoch: 2, Stage: manager.TreeActive, Window: 8, Plan: plan, Names: names}},
		History: []manager.Change{{At: 5, What: "created"}},
	}, g, func(c manager.Change) time.Time { return time.Unix(0, int64(c.At)) })
	tree := e.Trees[0]
	if tree.Members[0].Host != g.Name(0) || tree.Switches[0].Switch != g.Name(plan.Tree.Root()) || tree.Switches[0].Parent != -1 {
		t.Errorf("tree %+v", tree)
	}
	if leaf := plan.Tree.Leaves[1]; len(tree.Members[1].Links) != 1 || tree.Members[1].Links[0] != g.LinkName(leaf.Link) ||
		tree.Switches[1].Links[0] != g.LinkName(plan.Tree.Vertices[1].Up) || tree.Method != plan.Method.String() || tree.Figures != plan.Figures {
		t.Errorf("tree %+v of the plan %+v", tree, plan)
	}
	if !e.History[0].At.Equal(time.Unix(0, 5)) {
		t.Errorf("history %+v", e.History)
	}
}
