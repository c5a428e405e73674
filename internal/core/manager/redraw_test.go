package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// shape is how a redrawn fabric differs from smallFabric.
type shape struct {
	without map[string]bool // nodes, and links by their ends' nodes
	moved   map[int]int     // hosts by number: so many leaves further
	turn    int             // numbers begin elsewhere
	spines  int             // more than smallFabric has
}

// graph draws it. Nodes and ports have the names that they have in smallFabric.
func (s *shape) graph() *topology.Graph {
	var b topology.Builder
	refs := map[string]topology.Ref{}
	for i := range 6 {
		if name := fmt.Sprint("h", (i+s.turn)%6); !s.without[name] {
			refs[name] = must(b.AddHost(name))
		}
	}
	for i := range 3 {
		if name := fmt.Sprint("leaf-", (i+s.turn)%3); !s.without[name] {
			refs[name] = must(b.AddSwitch(name, topology.DefaultCapability()))
		}
	}
	for i := range 2 + s.spines {
		if name := fmt.Sprint("spine-", (i+s.turn)%(2+s.spines)); !s.without[name] {
			refs[name] = must(b.AddSwitch(name, topology.DefaultCapability()))
		}
	}
	link := func(x string, xPort int, y string, yPort int) {
		a, okA := refs[x]
		z, okZ := refs[y]
		if okA && okZ && !s.without[x+"+"+y] {
			if s.turn%2 == 1 {
				a, xPort, z, yPort = z, yPort, a, xPort
			}
			must(b.Connect(a, topology.Port(xPort), z, topology.Port(yPort), topology.DefaultLink()))
		}
	}
	for h := range 6 {
		at, port := h/2, h%2+1
		if by := s.moved[h]; by > 0 {
			at, port = (at+by)%3, 10+h
		}
		link(fmt.Sprint("h", h), 1, fmt.Sprint("leaf-", at), port)
	}
	for leaf := range 3 {
		for spine := range 2 + s.spines {
			link(fmt.Sprint("leaf-", leaf), 3+spine, fmt.Sprint("spine-", spine), leaf+1)
		}
	}
	return must(b.Build())
}

// redraw has somebody change the fabric's graph.
func (w *world) redraw(which, detail byte) {
	s := &w.shape
	if s.without == nil {
		s.without, s.moved = map[string]bool{}, map[int]int{}
	}
	i := int(detail)
	toggle := func(name string) { s.without[name] = !s.without[name] }
	switch which % 8 {
	case 0:
		toggle(fmt.Sprint("h", i%6))
	case 1:
		toggle(fmt.Sprint("leaf-", i%3))
	case 2, 3:
		toggle(fmt.Sprint("spine-", i%3))
	case 4:
		toggle(fmt.Sprint("leaf-", i%3, "+spine-", i/3%3))
	case 5:
		s.moved[i%6] = i / 6 % 3
	case 6:
		s.spines = i % 2
	}
	s.turn = int(which/8) % 6
	w.redrawTo(s.graph())
}

// redrawTo has the manager go over to another graph. What the planner has chosen in
// the one before comes too late.
func (w *world) redrawTo(g *topology.Graph) {
	var late []Input
	if len(w.plans) > 0 {
		p := w.plans[0]
		plan, err := p.Choose(w.planner, w.overlay.View(), w.load)
		late = append(late, Planned{Group: p.Group, Plan: p.Plan, Chosen: plan, Err: err})
	}
	grown := g.Links() > w.graph.Links()
	w.overlay = must(topology.NewMapping(w.graph, g).Overlay(w.overlay))
	w.graph = g
	w.seat()
	w.step(Redrawn{View: w.overlay.View(), Grown: grown})
	w.step(late...)
	w.checkRestored()
}

// checkRestored holds the manager against one that begins with the graph from what
// is stored: it has the same trees, on the same nodes and links.
func (w *world) checkRestored() {
	for len(w.toStore) > 0 && !w.full {
		w.store()
	}
	if w.full || w.fault != nil {
		return
	}
	records := w.records()
	if w.now%2 == 0 { // names survive JSON, numbers mean nothing
		var read []Record
		if err := json.Unmarshal(asJSON(records), &read); err != nil {
			w.fail("records: %w", err)
		}
		records = read
	}
	other := must(Restore(w.graph, w.cfg, records))
	var out Output
	other.Step(w.now, []Input{TopologyChanged{View: w.overlay.View()}}, &out)
	if err := other.check(); err != nil {
		w.fail("restored: %w", err)
	}
	if got, want := recorded(other), recorded(w.core); !maps.Equal(got, want) {
		w.fail("a manager that is restored has the trees\n%v\nand not\n%v", got, want)
	}
	for id, g := range other.groups {
		if g.epoch > w.core.groups[id].epoch || !slices.Equal(g.absent, w.core.groups[id].absent) || !slices.Equal(g.hosts, w.core.groups[id].hosts) {
			w.fail("a manager that is restored has group %d in epoch %d, without %v; not %d and %v", id, g.epoch, g.absent, w.core.groups[id].epoch, w.core.groups[id].absent)
		}
	}
	for i, d := range w.core.fleet {
		if o := other.fleet[i]; o.name != d.name || o.drained != d.drained || o.node != d.node {
			w.fail("a manager that is restored has %+v, not %+v", o, d)
		}
	}
}

// recorded returns the trees that members may know of, in words.
func recorded(c *Core) map[string]string {
	all := map[string]string{}
	for id, g := range c.groups {
		for _, t := range g.trees() {
			if t.recorded && !g.released { // or it may be removed at once
				text := t.plan.Tree.Text(c.graph)
				for l := range t.plan.Tree.Links() {
					text += " " + c.graph.LinkName(l)
				}
				all[fmt.Sprint(id, " ", t.epoch)] = text
			}
		}
	}
	return all
}

// everything brings the whole of smallFabric, and a spine more, back.
func (w *world) everything() {
	w.shape.without, w.shape.moved, w.shape.spines = map[string]bool{}, map[int]int{}, 1
	w.redrawTo(w.shape.graph())
}

// TestRedrawn changes the fabric under a running tree, and sees what becomes of it.
func TestRedrawn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, s *shape)
		moves  bool
		why    string // in the history
	}{
		"only numbers":    {func(*world, *shape) {}, false, ""},
		"another spine":   {func(_ *world, s *shape) { s.spines = 1 }, false, ""},
		"a host more":     {func(_ *world, s *shape) { delete(s.without, "h5") }, false, ""},
		"the root goes":   {func(w *world, s *shape) { s.without[w.agents[w.on(0)].name] = true }, true, "it is not in the fabric any more: somebody did it"},
		"a link goes":     {func(w *world, s *shape) { s.without["leaf-0+"+w.agents[w.on(0)].name] = true }, true, "link leaf-0:3--spine-0:1: it is not in the fabric any more: somebody did it"},
		"a member moves":  {func(_ *world, s *shape) { s.moved[2] = 1 }, true, "link h2:1--leaf-1:1: it is"},
		"a stranger does": {func(_ *world, s *shape) { s.moved[3] = 1 }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			w.enterAll(2)
			w.run(time.Second)
			s := &w.shape
			s.without, s.moved = map[string]bool{"h5": true}, map[int]int{}
			s.turn = 1
			c.change(w, s)
			g := s.graph()
			w.overlay = must(topology.NewMapping(w.graph, g).Overlay(w.overlay))
			w.graph = g
			w.seat()
			w.step(Redrawn{View: w.overlay.View(), Cause: "somebody did it"})
			if lost := len(w.out.Withdrawals) > 0; lost != c.moves {
				t.Errorf("lost: %v", lost)
			}
			if old := w.core.groups[1].lost; c.moves && (old == nil || len(old.plan.Tree.Vertices) == 0) {
				t.Error("nothing is left to repair")
			}
			w.checkRestored()
			w.reconnect() // for a switch that was away or is new
			w.run(time.Second)
			e, _ := w.core.Group(1)
			want := uint32(2)
			if c.moves {
				want = 4
			}
			w.want(t, Active, want)
			if c.why != "" && !slices.ContainsFunc(e.History, func(h Change) bool {
				return strings.HasPrefix(h.What, "epoch 2 lost: ") && strings.Contains(h.What, c.why)
			}) {
				t.Errorf("history %v", e.History)
			}
			w.enterAll(want)
			w.run(time.Minute)
			w.checkSwitches()
			if w.fault != nil {
				t.Error(w.fault)
			}
		})
	}
}

// Members that the fabric does not have keep their group waiting, with a reason that
// names them; it has a tree as soon as they are there.
func TestAbsentMembers(t *testing.T) {
	empty := must((&topology.Builder{}).Build())
	w := newWorld(empty, smallConfig(), 1000)
	w.hostNames = []string{"h0", "h1", "h2", "h3", "h4", "h5"}
	if r := w.create("g", 16, 0, 2, 4); r.Err != nil || r.Group != 1 {
		t.Fatalf("%+v", r)
	}
	w.watchAll(1)
	w.settle()
	e, _ := w.core.Group(1)
	var absent *Absence
	if e.State != Refusing || !errors.Is(e.Refusal, ErrAbsent) || !errors.As(e.Refusal, &absent) || !slices.Equal(absent.Hosts, []string{"h0", "h2", "h4"}) {
		t.Fatalf("%v: %v", e.State, e.Refusal)
	}
	notices := 0
	w.watcher = func(out *Output) {
		for _, n := range out.Notices {
			if errors.Is(n.Err, ErrAbsent) {
				notices++
			}
		}
	}
	w.shape.without = map[string]bool{"h4": true}
	w.redrawTo(w.shape.graph())
	w.reconnect()
	w.run(time.Second)
	e, _ = w.core.Group(1)
	if !errors.As(e.Refusal, &absent) || !slices.Equal(absent.Hosts, []string{"h4"}) || notices != 3 || len(w.plans) > 0 {
		t.Fatalf("%v, %d notices, %d plans", e.Refusal, notices, len(w.plans))
	}
	w.everything()
	w.reconnect()
	w.run(time.Second)
	w.want(t, Active, 2)
	w.shape.without["h0"] = true
	w.redrawTo(w.shape.graph())
	w.run(time.Second)
	w.want(t, Refusing, 0)
	w.killManager()
	w.reconnect()
	w.watchAll(1)
	w.run(time.Second)
	if e, _ := w.core.Group(1); !errors.Is(e.Refusal, ErrAbsent) {
		t.Errorf("after a restart: %+v", e)
	}
	w.everything()
	w.run(time.Second)
	if e, _ := w.core.Group(1); e.State != Active || w.fault != nil {
		t.Errorf("%v, %v; %v", e.State, e.Refusal, w.fault)
	}
}

// A switch that is drained is so when it is back, and after a restart without it.
func TestDrainedWhileAway(t *testing.T) {
	w := running(t)
	w.ask(Drain{Switch: "spine-1", On: true})
	w.shape.without = map[string]bool{"spine-1": true}
	w.redrawTo(w.shape.graph())
	w.killManager()
	w.everything()
	for _, s := range w.core.Switches() {
		if s.Drained != (s.Name == "spine-1") {
			t.Errorf("%s is drained: %v", s.Name, s.Drained)
		}
	}
}

// A link whose ends have other addresses is another link to who sends over it.
func TestAddressesChange(t *testing.T) {
	addressed := func(last byte) *topology.Graph {
		var b topology.Builder
		h0, h1 := must(b.AddHost("h0")), must(b.AddHost("h1"))
		s := must(b.AddSwitch("s", topology.DefaultCapability()))
		x := must(b.Connect(h0, 1, s, 1, topology.DefaultLink()))
		y := must(b.Connect(h1, 1, s, 2, topology.DefaultLink()))
		must(0, b.SetAddresses(x, netip.AddrFrom4([4]byte{10, 0, 0, last}), netip.AddrFrom4([4]byte{10, 0, 0, 2})))
		must(0, b.SetAddresses(y, netip.AddrFrom4([4]byte{10, 0, 1, 1}), netip.AddrFrom4([4]byte{10, 0, 1, 2})))
		return must(b.Build())
	}
	for name, c := range map[string]struct {
		ip    netip.Addr
		moves bool
	}{
		"the member listens everywhere":        {netip.IPv4Unspecified(), true},
		"the member has an address of its own": {netip.AddrFrom4([4]byte{192, 168, 1, 1}), false},
	} {
		w := newWorld(addressed(1), smallConfig(), 1000)
		w.connect(0)
		w.create("g", 16, 0, 1)
		for rank := range uint32(2) {
			w.members[[2]uint32{1, rank}] = &fakeMember{addr: netip.AddrPortFrom(c.ip, 5000)}
		}
		w.seen = nil // members are not where it expects them
		w.watchAll(1)
		w.settle()
		w.want(t, Active, 2)
		w.graph = addressed(3)
		w.overlay = topology.NewOverlay(w.graph)
		w.step(Redrawn{View: w.overlay.View()})
		if lost := len(w.out.Withdrawals) > 0; lost != c.moves || w.fault != nil {
			t.Errorf("%s: lost %v; %v", name, lost, w.fault)
		}
	}
}

// TestPlannerBeginsAnew: what was asked in another graph is not answered, and counts
// no longer.
func TestPlannerBeginsAnew(t *testing.T) {
	g := must(topology.LeafSpine(2, 2, 2))
	p := must(NewPlanner(g, pathsel.DefaultConfig()))
	request := func(group uint32, plan uint64) PlanRequest {
		return PlanRequest{Group: group, Plan: plan, Request: pathsel.Request{Members: []topology.NodeID{0, 1, 2, 3}, Slots: 2, ChunkBytes: 64}}
	}
	p.Put(&Output{Plans: []PlanRequest{request(1, 1)}})
	first, _ := p.Next()
	p.Put(&Output{Plans: []PlanRequest{request(1, 2), request(2, 3)}})
	next := must(topology.LeafSpine(2, 2, 1))
	tree := first.Chosen.Tree
	if tree.Root() == g.Switch(0) { // of the new graph's spine
		tree, _ = tree.Renumbered(topology.NewMapping(g, next))
	} else {
		tree = pathsel.Tree{}
	}
	p.Put(&Output{Anew: true, View: next.View(), Loads: []pathsel.Tree{tree}, Plans: []PlanRequest{request(2, 4)}})
	planned, ok := p.Next()
	if !ok || planned.Plan != 4 || planned.Err != nil || planned.Chosen.Tree.Validate(next.View()) != nil || p.Waits() {
		t.Errorf("%+v, %v", planned, ok)
	}
	p.Use(func(_ *pathsel.Planner, view topology.View, load *pathsel.Load) {
		if trees := load.SwitchTrees(next.Switch(0)); view.Graph() != next || trees != 1+min(1, len(tree.Vertices)) {
			t.Errorf("%d trees count", trees)
		}
	})
	p.Next()
}

// BenchmarkRedrawn goes over to another graph of the same fabric, with 100 groups.
func BenchmarkRedrawn(b *testing.B) {
	for _, spec := range []string{"leaf-spine:8,16,4", "leaf-spine:16,960,40", "fat-tree:64"} {
		b.Run("fabric="+spec, func(b *testing.B) {
			graphs := [2]*topology.Graph{must(topology.Parse(spec)), must(topology.Parse(spec))}
			c := must(New(graphs[0], Config{}))
			begin(b, c, 100, 32)
			var out Output
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				out.Reset()
				c.Step(c.now, []Input{Redrawn{View: graphs[(i+1)%2].View()}}, &out)
			}
			b.StopTimer()
			if len(out.Loads) != 100 || len(out.Withdrawals) > 0 {
				b.Fatalf("%d trees, %d withdrawals", len(out.Loads), len(out.Withdrawals))
			}
		})
	}
}

// begin has a core give trees to groups of so many members each.
func begin(t testing.TB, c *Core, groups, members int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	planner := must(pathsel.NewPlanner(c.graph, pathsel.Config{}))
	var todo []Input
	for i := range c.graph.Switches() {
		n := c.graph.Switch(i)
		todo = append(todo, SwitchUp{Switch: c.graph.Name(n), Incarnation: 1, Capability: c.graph.Capability(n)})
	}
	for g := range groups {
		create := Create{Name: fmt.Sprint("g", g), ChunkBytes: 1024, Window: 16, Secret: [32]byte{1}}
		for range members {
			h := topology.NodeID(random.IntN(c.graph.Hosts()))
			for slices.Contains(create.Members, c.graph.Name(h)) {
				h = (h + 1) % topology.NodeID(c.graph.Hosts())
			}
			create.Members = append(create.Members, c.graph.Name(h))
		}
		todo = append(todo, create)
		for rank := range members {
			todo = append(todo, Watch{Group: uint32(g + 1), Rank: uint32(rank), DataAddr: netip.MustParseAddrPort("10.9.0.1:9"), Stream: 1})
		}
	}
	var out Output
	for len(todo) > 0 {
		out.Reset()
		c.Step(0, todo, &out)
		todo = obedientTo(c, &out, planner)
	}
	if n := c.Census().Groups[Active]; n != groups {
		for _, s := range c.Groups() {
			if e, _ := c.Group(s.Group); e.State != Active {
				t.Errorf("%+v %v %v", e.State, e.Refusal, e.History)
			}
		}
		t.Fatalf("%d groups have trees", n)
	}
}
