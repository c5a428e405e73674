package manager

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// newFor makes a group for a purpose of hosts 0, 2 and 4, and returns the request
// for its plan.
func (w *world) newFor(t *testing.T, purpose pathsel.Purpose) PlanRequest {
	t.Helper()
	w.watchAll(w.createFor(purpose, "g", 16, 0, 2, 4).Group)
	if w.fault != nil || len(w.plans) != 1 {
		t.Fatalf("%d plans are asked for; %v", len(w.plans), w.fault)
	}
	return w.plans[0]
}

func TestPurposeIsPlannedBy(t *testing.T) {
	purpose := pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 64, Weights: pathsel.Weights{pathsel.LeastLoad: 2}}
	w := connected(1000)
	p := w.newFor(t, purpose)
	if r := &p.Request; r.Purpose != purpose || !r.Forward || !r.Hosts || len(r.Old.Vertices) > 0 || len(p.Own)+len(p.OwnSlots) > 0 {
		t.Errorf("%+v", p)
	}
	// The same group again, and one of another purpose.
	if r := w.createFor(purpose, "g", 16, 0, 2, 4); r.Err != nil || !r.Found {
		t.Errorf("the same: %+v", r)
	}
	if r := w.create("g", 16, 0, 2, 4); !errors.Is(r.Err, ErrExists) {
		t.Errorf("another purpose: %v", r.Err)
	}
	purpose.Criterion = pathsel.FewestHops
	if r := w.createFor(purpose, "both", 16, 0, 2); !errors.Is(r.Err, ErrRequest) || !errors.Is(r.Err, pathsel.ErrRequest) {
		t.Errorf("a criterion and weights: %v", r.Err)
	}
	if err := (Config{NoForward: true, Slim: true}).Validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("to forward never, and where it is better: %v", err)
	}
	w = newWorld(smallFabric(), Config{NoForward: true, NoHosts: true}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	if r := w.newFor(t, pathsel.Purpose{}).Request; r.Forward || r.Hosts {
		t.Errorf("%+v", r)
	}
}

// A plan that takes the place of a tree knows what the group has already, and is
// not to make it leave the switches.
func TestPlanInPlaceOfATree(t *testing.T) {
	w := running(t)
	w.ask(Drain{Switch: w.agents[w.on(0)].name, On: true})
	w.wait(time.Second)
	if len(w.plans) != 1 {
		t.Fatalf("%d plans are asked for", len(w.plans))
	}
	p, active := w.plans[0], w.core.groups[1].active
	if !same(&p.Request.Old, &active.plan.Tree) || len(p.Own) != 1 || !same(&p.Own[0], &active.plan.Tree) || p.Request.Hosts {
		t.Errorf("%+v", p)
	}
	slots := 0
	for _, u := range p.OwnSlots {
		slots += u.Slots
	}
	if len(p.OwnSlots) != 4 || slots != 4*32 {
		t.Errorf("its own are %+v", p.OwnSlots)
	}
	w.settle() // the load is held against the books at every step
	w.run(time.Second)
	w.want(t, Active, 4)
}

func TestHostsAreFaster(t *testing.T) {
	w := connected(1000)
	faster := &pathsel.HostsFaster{Forecast: pathsel.Forecast{Switches: time.Second, Hosts: time.Millisecond}}
	answer := func() {
		p := w.plans[0]
		w.plans = w.plans[1:]
		w.step(Planned{Group: p.Group, Plan: p.Plan, Err: faster})
	}
	w.newFor(t, pathsel.Purpose{Bytes: 64})
	answer()
	w.want(t, OnHosts, 0)
	e, _ := w.core.Group(1)
	var reported *pathsel.HostsFaster
	if !errors.Is(e.Refusal, ErrHostsFaster) || !errors.As(e.Refusal, &reported) || reported != faster || errors.Is(e.Refusal, ErrNoTree) {
		t.Errorf("refusal %v", e.Refusal)
	}
	if n := w.core.Census().Groups[OnHosts]; n != 1 {
		t.Errorf("%d groups are on hosts", n)
	}
	// Slots that are taken and freed are no reason to ask again.
	other := w.create("other", 16, 1, 3).Group
	w.watchAll(other)
	w.settle()
	w.ask(Release{Group: other})
	w.run(time.Hour)
	if len(w.plans) > 0 {
		t.Fatalf("it is planned again: %+v", w.plans)
	}
	// That something is faster now, is.
	can := w.graph.Capability(w.agents[0].node)
	can.Children++
	w.overlay = must(w.overlay.With(topology.SwitchCapability(w.agents[0].node, can)))
	w.step(TopologyChanged{View: w.overlay.View()})
	w.wait(time.Minute)
	if len(w.plans) != 1 {
		t.Fatalf("%d plans are asked for", len(w.plans))
	}
	w.settle()
	w.want(t, Active, 2)
}

// TestUsageMovesNoTree: how busy links and CPUs are counts in plans to come, and
// nowhere else.
func TestUsageMovesNoTree(t *testing.T) {
	w := running(t)
	full := w.create("full", 16, 1, 3).Group // waits for members
	up := w.core.groups[1].active.plan.Tree.Vertices[1].Up
	before, next := w.core.changes, w.core.Deadline()
	w.overlay = must(w.overlay.With(topology.LinkUtilization(up, 1), topology.NodeUtilization(w.agents[w.on(0)].node, 1)))
	w.step(TopologyChanged{View: w.overlay.View()})
	if w.core.changes != before || w.core.Deadline() != next {
		t.Errorf("it counts as a change: %d, then %d; to be stepped at %v, then %v", before, w.core.changes, next, w.core.Deadline())
	}
	w.run(time.Hour)
	w.want(t, Active, 2)
	if w.core.view.LinkUtilization(up) != 1 || full == 0 {
		t.Error("it is not known")
	}
}

// detour is two leaves joined by a spine, and by two more switches: a longer way.
func detour() *topology.Graph {
	var b topology.Builder
	node := map[string]topology.Ref{}
	for _, name := range []string{"h0", "h1", "h2", "h3"} {
		node[name] = must(b.AddHost(name))
	}
	for _, name := range []string{"leaf-0", "leaf-1", "spine", "far-0", "far-1"} {
		node[name] = must(b.AddSwitch(name, topology.DefaultCapability()))
	}
	for _, l := range [][2]string{
		{"h0", "leaf-0"}, {"h1", "leaf-0"}, {"h2", "leaf-1"}, {"h3", "leaf-1"}, {"leaf-0", "spine"}, {"leaf-1", "spine"},
		{"leaf-0", "far-0"}, {"far-0", "far-1"}, {"far-1", "leaf-1"},
	} {
		must(b.Connect(node[l[0]], 0, node[l[1]], 0, topology.DefaultLink()))
	}
	return must(b.Build())
}

// onDetour returns a world on that fabric, whose group 1 had to take the longer way.
func onDetour(t *testing.T) (w *world, spine topology.NodeID) {
	t.Helper()
	w = newWorld(detour(), Config{MinWindow: 2}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	w.watchAll(w.create("g", 16, 0, 1, 2, 3).Group)
	w.settle()
	w.want(t, Active, 2)
	spine, _ = w.graph.Lookup("spine")
	w.setNode(spine, false)
	w.run(time.Second)
	w.want(t, Active, 4)
	w.enterAll(4)
	w.settle()
	if n := len(w.core.groups[1].active.plan.Tree.Vertices); n != 4 {
		t.Fatalf("the tree is on %d switches", n)
	}
	return w, spine
}

func (w *world) setNode(n topology.NodeID, up bool) {
	w.overlay = must(w.overlay.With(topology.NodeState(n, up)))
	w.step(TopologyChanged{View: w.overlay.View()})
}

// TestMakeshiftTreeIsReviewed: once what was missing has been back for as long as
// Settle, the tree is replaced by the better one, without a word of loss.
func TestMakeshiftTreeIsReviewed(t *testing.T) {
	w, spine := onDetour(t)
	w.run(time.Hour)
	w.want(t, Active, 4) // nothing is back
	w.setNode(spine, true)
	withdrawn := 0
	w.watcher = func(out *Output) { withdrawn += len(out.Withdrawals) }
	settle := DefaultConfig().Settle
	w.run(settle - time.Millisecond)
	w.want(t, Active, 4)
	w.run(time.Second)
	w.want(t, Active, 6)
	if n := len(w.core.groups[1].active.plan.Tree.Vertices); n != 3 || withdrawn > 0 {
		t.Errorf("the tree is on %d switches; %d offers were withdrawn", n, withdrawn)
	}
	if e, _ := w.core.Group(1); !slices.ContainsFunc(e.History, func(c Change) bool { return strings.Contains(c.What, "epoch 4 to be replaced") }) {
		t.Errorf("history %+v", e.History)
	}
	w.enterAll(6)
	w.run(time.Hour)
	w.want(t, Active, 6)
	w.checkSwitches()
	if w.fault != nil {
		t.Error(w.fault)
	}
}

// TestFlappingMovesNoTree: while something goes and comes, trees that do without
// it stay where they are.
func TestFlappingMovesNoTree(t *testing.T) {
	w, spine := onDetour(t)
	for range 50 {
		w.setNode(spine, true)
		w.run(DefaultConfig().Settle * 9 / 10)
		w.setNode(spine, false)
		w.run(time.Second)
		w.want(t, Active, 4)
	}
	w.setNode(spine, true)
	w.run(time.Minute)
	w.want(t, Active, 6)
}

// TestEqualTreeIsKept: a review that finds nothing better changes nothing.
func TestEqualTreeIsKept(t *testing.T) {
	w := running(t)
	root := w.core.groups[1].active.plan.Tree.Root()
	w.setNode(root, false)
	w.run(time.Second)
	w.want(t, Active, 4)
	if !w.core.groups[1].active.makeshift {
		t.Error("the tree does not count as makeshift")
	}
	w.setNode(root, true)
	plans := 0
	w.watcher = func(out *Output) { plans += len(out.Plans) }
	w.run(time.Hour)
	w.want(t, Active, 4)
	if g := w.core.groups[1]; plans != 1 || g.active.makeshift || g.review || w.core.reviewing != 0 {
		t.Errorf("%d plans; makeshift %v, in review %v", plans, g.active.makeshift, g.review)
	}
}

// TestReviewInABadMoment loses the tree, releases the group, or drains a switch
// while the answer of a review is on its way.
func TestReviewInABadMoment(t *testing.T) {
	for name, test := range map[string]struct {
		do    func(*world)
		state State
	}{
		"lost":     {func(w *world) { w.step(Report{Group: 1, Entered: 4, Transport: HostTree, Lost: 4}) }, Active},
		"released": {func(w *world) { w.ask(Release{Group: 1}) }, Releasing},
		"drained":  {func(w *world) { w.ask(Drain{Switch: w.agents[w.on(1)].name, On: true}) }, Active},
		"gone":     {func(w *world) { w.step(Unwatch{Group: 1, Rank: 1, Stream: w.memberStream(1)}); w.watch(1, 1) }, Active},
		"crashed":  {func(w *world) { w.crash(w.graph.SwitchIndex(w.node("spine"))) }, Active},
	} {
		t.Run(name, func(t *testing.T) {
			w, spine := onDetour(t)
			w.setNode(spine, true)
			w.wait(DefaultConfig().Settle)
			if len(w.plans) != 1 || w.core.reviewing == 0 {
				t.Fatalf("%d plans are asked for", len(w.plans))
			}
			test.do(w)
			w.settle()
			w.run(time.Second)
			if e, _ := w.core.Group(1); w.fault != nil || e.State != test.state || w.core.reviewing != 0 {
				t.Errorf("the group is %v, %v; in review: %v; %v", e.State, e.Refusal, w.core.reviewing, w.fault)
			}
			if err := w.finish(); err != nil {
				t.Error(err)
			}
		})
	}
}

// node finds a node by its name.
func (w *world) node(name string) topology.NodeID {
	n, ok := w.graph.Lookup(name)
	if !ok {
		panic(name)
	}
	return n
}

// TestLostWhereItIsAskedFor loses a tree in the step that asks for a new one: what
// does not count for the plan is what is there after the step.
func TestLostWhereItIsAskedFor(t *testing.T) {
	w := newWorld(detour(), Config{MinWindow: 2}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	spine := w.node("spine")
	w.setNode(spine, false)
	for _, name := range []string{"a", "b"} {
		w.watchAll(w.create(name, 16, 0, 2).Group)
	}
	w.settle()
	w.setNode(spine, true)
	w.wait(DefaultConfig().Settle)
	if len(w.plans) != 1 || w.plans[0].Group != 1 {
		t.Fatalf("asked for %+v", w.plans)
	}
	p := w.plans[0]
	w.plans = nil
	plan, err := p.Choose(w.planner, w.overlay.View(), w.load)
	if err != nil {
		t.Fatal(err)
	}
	w.load.Add(plan.Tree, 0)
	w.loaded++
	lost := w.core.groups[2].active.epoch
	w.step(Planned{Group: 1, Plan: p.Plan, Chosen: plan}, Report{Group: 2, Entered: lost, Transport: HostTree, Lost: lost})
	if len(w.plans) != 1 || w.plans[0].Group != 2 || len(w.out.Unloads) == 0 {
		t.Fatalf("asked for %+v, %d trees are unloaded", w.plans, len(w.out.Unloads))
	}
	if n := len(w.plans[0].Own); n > 0 {
		t.Errorf("%d trees are to be taken off the load that do not count any more", n)
	}
	w.settle()
	w.run(time.Second)
	if err := w.finish(); err != nil || w.fault != nil {
		t.Error(err, w.fault)
	}
}

// TestReviewsComeOneAfterTheOther, so that groups without a tree need not wait.
func TestReviewsComeOneAfterTheOther(t *testing.T) {
	w := newWorld(detour(), Config{MinWindow: 2}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	spine := w.node("spine")
	w.setNode(spine, false)
	for _, name := range []string{"a", "b", "c"} {
		w.watchAll(w.create(name, 16, 0, 2).Group)
	}
	w.settle()
	w.setNode(spine, true)
	w.wait(DefaultConfig().Settle)
	for i := range uint32(3) {
		if len(w.plans) != 1 || w.plans[0].Group != i+1 {
			t.Fatalf("after %d: %+v", i, w.plans)
		}
		w.plan()
	}
	w.run(time.Second)
	for _, s := range w.core.Groups() {
		if s.State != Active || s.Epoch != 4 {
			t.Errorf("%+v", s)
		}
	}
}

// TestUnattendedSwitchesForward: they are not on a tree, and may be on its edges;
// one whose agent comes after all is one like others.
func TestUnattendedSwitchesForward(t *testing.T) {
	g := smallFabric()
	idle := g.Switch(3)
	w := newWorld(g, Config{Unattended: []string{g.Name(idle)}}, 1000)
	for i, a := range w.agents {
		if a.node != idle {
			w.connect(i)
		}
	}
	if r := w.newFor(t, pathsel.Purpose{}).Request; !slices.Equal(r.Idle, []topology.NodeID{idle}) || len(r.Exclude) > 0 {
		t.Errorf("idle %v, excluded %v", r.Idle, r.Exclude)
	}
	w.settle()
	w.want(t, Active, 2)
	w.connect(3)
	w.watchAll(w.create("later", 16, 1, 3).Group)
	if r := w.plans[0].Request; len(r.Idle) > 0 || len(r.Exclude) > 0 {
		t.Errorf("idle %v, excluded %v", r.Idle, r.Exclude)
	}
}

// portAt returns the port of a link at one of its ends.
func portAt(g *topology.Graph, l topology.LinkID, n topology.NodeID) topology.Port {
	ends := g.Link(l).Ends
	if ends[0].Node == n {
		return ends[0].Port
	}
	return ends[1].Port
}

// TestForwardedEdges holds the addresses and links of edges over a switch that
// only forwards against what each end of them is: the child is reached at the
// edge's first link, the parent at its last.
func TestForwardedEdges(t *testing.T) {
	var b topology.Builder
	h := []topology.Ref{must(b.AddHost("h0")), must(b.AddHost("h1")), must(b.AddHost("h2"))}
	a, plain := must(b.AddSwitch("a", topology.DefaultCapability())), must(b.AddSwitch("plain", topology.Capability{}))
	z := must(b.AddSwitch("z", topology.DefaultCapability()))
	for _, l := range [][2]topology.Ref{{h[0], a}, {a, plain}, {plain, z}, {h[1], z}, {h[2], plain}} { // links 0 to 4
		must(b.Connect(l[0], 0, l[1], 0, topology.DefaultLink()))
	}
	for l := range topology.LinkID(5) {
		must(0, b.SetAddresses(l, endAddress(l, 1), endAddress(l, 2)))
	}
	g := must(b.Build())
	made := build(t, g, func(topology.NodeID) netip.Addr { return netip.IPv4Unspecified() })
	if made.refusal != nil || len(made.configs) != 2 || len(made.offers) != 3 || len(made.tree.Routes) != 2 {
		t.Fatalf("%d configurations, %d offers, tree %+v, refusal %v", len(made.configs), len(made.offers), made.tree, made.refusal)
	}
	edges := made.tree.Edges()
	at := func(l topology.LinkID, n topology.NodeID) netip.AddrPort {
		return netip.AddrPortFrom(g.AddressAt(l, n), 1000+uint16(n))
	}
	for i, v := range made.tree.Vertices {
		site := made.sites[v.Switch][0]
		if i > 0 {
			links, above := edges.OfVertex(i), made.tree.Vertices[v.Parent].Switch
			if made.configs[v.Switch].Parent != at(links[len(links)-1], above) || site.Up != portAt(g, links[0], v.Switch) {
				t.Errorf("%s reaches its parent at %v over port %d", g.Name(v.Switch), made.configs[v.Switch].Parent, site.Up)
			}
		}
		for k, child := range made.tree.Children(i) {
			links, node := edges.OfLeaf(int(child.Lowest)), made.tree.Leaves[child.Lowest].Host
			if child.Vertex >= 0 {
				links, node = edges.OfVertex(int(child.Vertex)), made.tree.Vertices[child.Vertex].Switch
			}
			if made.configs[v.Switch].Children[k].Addr != at(links[0], node) || site.Children[k] != portAt(g, links[len(links)-1], v.Switch) {
				t.Errorf("%s reaches child %d at %v over port %d", g.Name(v.Switch), k, made.configs[v.Switch].Children[k].Addr, site.Children[k])
			}
		}
	}
	for rank, o := range made.offers {
		links := edges.OfLeaf(int(rank))
		if leaf := made.tree.Vertices[made.tree.Leaves[rank].Vertex].Switch; o.Parent != at(links[len(links)-1], leaf) {
			t.Errorf("rank %d is offered %v", rank, o.Parent)
		}
	}
}

// TestMembersReportSpeeds has members report their speeds: plans get each host's own,
// what the fabric has of a host counts before its report, and a later report before an
// earlier.
func TestMembersReportSpeeds(t *testing.T) {
	g, err := topology.Read(strings.NewReader(`version: 1
hosts: [h0, h1, {name: h2, speed: {bytes: 1}}]
switches: [{name: s}]
links: [{between: [h0, s]}, {between: [h1, s]}, {between: [h2, s]}]
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	c := must(New(g, Config{}))
	var out Output
	step := func(in ...Input) { out.Reset(); c.Step(1, in, &out) }
	step(Create{
		Name: "g", Members: []string{"h0", "h1", "h2"}, ChunkBytes: 64, Window: 8, Secret: [32]byte{1},
		Purpose: pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 100},
	})
	for _, r := range out.Persist {
		step(Stored{Seq: r.Seq})
	}
	group := c.groups[1]
	watch := func(rank uint32, s topology.Speed) map[topology.NodeID]topology.Speed {
		step(Watch{Group: 1, Rank: rank, DataAddr: netip.MustParseAddrPort("127.0.0.1:9"), Stream: uint64(rank), Speed: s})
		return c.speedsOf(group)
	}
	type speeds = map[topology.NodeID]topology.Speed
	first, second, last := topology.Speed{Bytes: 9, Packets: 5}, topology.Speed{Bytes: 7}, topology.Speed{Bytes: 8, Packets: topology.NoSpeed}
	for i, test := range []struct {
		rank uint32
		is   topology.Speed
		want speeds
	}{
		{0, topology.Speed{}, nil}, {0, first, speeds{0: first}}, {1, second, speeds{0: first, 1: second}},
		{2, topology.Speed{Bytes: 3}, speeds{0: first, 1: second}}, {1, topology.Speed{}, speeds{0: first, 1: second}},
		{1, last, speeds{0: first, 1: last}},
	} {
		if got := watch(test.rank, test.is); !maps.Equal(got, test.want) {
			t.Errorf("%d: %+v after rank %d has %+v, want %+v", i, got, test.rank, test.is, test.want)
		}
	}
	if a, b := c.HostSpeed(0), c.HostSpeed(2); a != (topology.Speed{Bytes: 9, Packets: 5}) || b != (topology.Speed{Bytes: 1}) {
		t.Errorf("%v and %v", a, b)
	}
}
