package pathsel

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

// paced returns a view in which switches have the speeds that a function gives.
func paced(t testing.TB, g *topology.Graph, speed func(topology.NodeID) topology.Speed, more ...topology.Change) topology.View {
	t.Helper()
	for i := range g.Switches() {
		c := g.Capability(g.Switch(i))
		c.Speed = speed(g.Switch(i))
		more = append(more, topology.SwitchCapability(g.Switch(i), c))
	}
	return changed(t, g, more...)
}

// reported returns one speed of all members; nil if nothing is known of it.
func reported(req Request, s topology.Speed) map[topology.NodeID]topology.Speed {
	if !s.Known() {
		return nil
	}
	all := map[topology.NodeID]topology.Speed{}
	for _, m := range req.Members {
		all[m] = s
	}
	return all
}

// TestEqualSpeeds has switches of one speed, and of speeds that differ by as much as
// measurements do: trees are those of switches of which nothing is known.
func TestEqualSpeeds(t *testing.T) {
	names, planners := smallPlanners(t, "torus:1,3,3", "clos:2,2,2,2,2")
	rapid.Check(t, func(rt *rapid.T) {
		p := planners[rapid.SampledFrom(names).Draw(rt, "fabric")]
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		req := randomRequest(rng, p.graph)
		base := rapid.SampledFrom([]int64{1, 1e6, 3e9, 40e9}).Draw(rt, "bytes")
		packets := rapid.SampledFrom([]int64{0, 1e3, 2e6}).Draw(rt, "packets")
		noise := rapid.SampledFrom([]float64{0, 0.19}).Draw(rt, "noise")
		view := paced(t, p.graph, func(topology.NodeID) topology.Speed {
			off := 1 + noise*(2*rng.Float64()-1) // so that none is 1.5 times as fast as another
			return topology.Speed{Bytes: max(int64(float64(base)*off), 1), Packets: int64(float64(packets) * off)}
		})
		want, err := p.Plan(p.graph.View(), nil, req)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := p.Plan(view, nil, req)
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(got.Tree, want.Tree) || got.Method != want.Method || got.Exact != want.Exact || len(got.Rivals) != len(want.Rivals) {
			rt.Fatalf("%s\nwithout speeds: %s", got.Reason, want.Reason)
		}
	})
}

// TestSlowerIsNeverPreferred slows down one switch: it is on no tree then that it was
// not on before.
func TestSlowerIsNeverPreferred(t *testing.T) {
	names, planners := smallPlanners(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := planners[rapid.SampledFrom(names).Draw(rt, "fabric")]
		g := p.graph
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		req := randomRequest(rng, g)
		classes := rapid.SampledFrom([][]int64{{8e9}, {8e9, 8e9, 8e9, 1e9}, {8e9, 4e9, 1e9, 2e8}}).Draw(rt, "classes")
		speeds := make([]topology.Speed, g.Switches())
		for i := range speeds {
			speeds[i].Bytes = classes[rng.IntN(len(classes))]
		}
		of := func(n topology.NodeID) topology.Speed { return speeds[g.SwitchIndex(n)] }
		before, err := p.Plan(paced(t, g, of), nil, req)
		if err != nil {
			rt.Fatal(err)
		}
		slow := g.Switch(rapid.IntRange(0, g.Switches()-1).Draw(rt, "slow"))
		var more []topology.Change
		if rapid.Bool().Draw(rt, "busy") {
			more = append(more, topology.NodeUtilization(slow, float64(rapid.IntRange(1, 8).Draw(rt, "eighths"))/8))
		} else {
			speeds[g.SwitchIndex(slow)].Bytes /= rapid.Int64Range(2, 100).Draw(rt, "factor")
		}
		after, err := p.Plan(paced(t, g, of, more...), nil, req)
		if err != nil {
			rt.Fatal(err)
		}
		on := func(plan *Plan) bool {
			return slices.ContainsFunc(plan.Tree.Vertices, func(v Vertex) bool { return v.Switch == slow })
		}
		if !on(&before) && on(&after) {
			rt.Fatalf("%s became slower.\nbefore: %s\nafter: %s", g.Name(slow), before.Reason, after.Reason)
		}
		checkPlan(t, p.graph.View(), nil, req, &after)
	})
}

// TestNoFasterTree takes plans with slow switches, and has the planner leave these out
// by name, one speed after the other: there is no tree, or it takes longer by the
// model, its switches and links being shared with groups that were planned before, or it
// has more hops where these count.
func TestNoFasterTree(t *testing.T) {
	slowest, without := 0, 0
	for _, name := range append(smallFabrics, "torus:1,3,3") {
		g := smallFabric(t, name)
		p, rng := planner(t, g), rand.New(rand.NewPCG(31, 32))
		var load *Load
		var last Tree
		for round := range 300 {
			if round%20 == 0 {
				load = NewLoad(g)
			} else if round%20 <= 10 {
				load.Add(last, 0)
			}
			req := usual(randomGroup(rng, g, 6))
			req.Criterion, req.Bytes, req.HostSpeeds = []Criterion{FewestHops, LeastLatency, WidestLink}[rng.IntN(3)], 1<<20, reported(req, topology.Speed{Bytes: 2e9})
			view := paced(t, g, func(topology.NodeID) topology.Speed {
				return topology.Speed{Bytes: []int64{8e9, 8e9, 8e9, 2e9, 1e9, 1e8}[rng.IntN(6)]}
			})
			if rng.IntN(4) == 0 {
				req.Criterion, req.Weights = ByFunction, Weights{FewestHops: 1, WidestLink: rng.Float64(), LeastLoad: rng.Float64()}
			}
			plan, err := p.Plan(view, load, req)
			if err != nil {
				t.Fatal(err)
			}
			a := p.ask(view, load, &req)
			a.by = req.Criterion
			took := func(plan *Plan) time.Duration {
				return p.shared(a, &candidate{tree: plan.Tree, figures: plan.Figures})
			}
			last = plan.Tree
			if plan.Figures.Speed == 8e9 {
				without++
				continue
			}
			slowest++
			for _, least := range []int64{1e9, 2e9, 8e9} {
				if float64(least) < slack*float64(plan.Figures.Speed) {
					continue
				}
				strict := req
				for i := range g.Switches() {
					if n := g.Switch(i); view.Capability(n).Speed.Bytes < least {
						strict.Exclude = append(strict.Exclude, n)
					}
				}
				other, err := p.Plan(view, load, strict)
				if err != nil || a.fewest() && other.Figures.Hops > plan.Figures.Hops {
					continue
				}
				if took(&other) < took(&plan) {
					t.Fatalf("%s: %v over switches, %v without those below %d:\n%s\n%s", name, took(&plan), took(&other), least, plan.Reason, other.Reason)
				}
			}
		}
	}
	t.Logf("%d plans with slow switches, %d without", slowest, without)
	if slowest < 100 || without < 100 {
		t.Error("too few of one kind")
	}
}

// TestSlowSwitchIsLeftOut has a spine that is slow, or busy, avoided by every criterion
// that has to do with time, and the explanation say so; and used where it is the only
// way.
func TestSlowSwitchIsLeftOut(t *testing.T) {
	g := fabric(t, "leaf-spine:2,3,2")
	p := planner(t, g)
	for _, by := range []Criterion{FewestHops, LeastLatency, WidestLink} {
		req := usual(g.AllHosts())
		req.Criterion, req.Bytes, req.HostSpeeds = by, 1<<20, reported(req, topology.Speed{Bytes: 2e9})
		first, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		slow := first.Tree.Root()
		one := func(s topology.Speed, more ...topology.Change) topology.View {
			return paced(t, g, func(n topology.NodeID) topology.Speed {
				if n == slow {
					return s
				}
				return topology.Speed{Bytes: 6e9, Packets: 3e6}
			}, more...)
		}
		usual := topology.Speed{Bytes: 6e9, Packets: 3e6}
		for what, view := range map[string]topology.View{
			"reduces 500 MB/s, here it is 3.07 GB/s": one(topology.Speed{Bytes: 5e8}),
			"reduces 10.2 MB/s, here it is 3.07":     one(topology.Speed{Bytes: 9e9, Packets: 1e4}),
			"in use for 75 % of the time":            one(usual, topology.NodeUtilization(slow, 0.75)),
			"reduces 768 MB/s, its CPU being":        one(usual, topology.NodeUtilization(slow, 0.75)),
		} {
			plan, err := p.Plan(view, nil, req)
			if err != nil || plan.Tree.Root() == slow || plan.Exact || plan.Rivals[0].Root != slow ||
				!strings.Contains(plan.Reason, "lost by a slow switch ("+g.Name(slow)) || !strings.Contains(plan.Rivals[0].Lost, what) {
				t.Errorf("%v, %s: %s\n%+v, %v", by, what, plan.Reason, plan.Rivals, err)
			}
			checkPlan(t, view, nil, req, &plan)
			// It is the only way.
			req.Exclude = slices.DeleteFunc([]topology.NodeID{node(t, g, "spine-0"), node(t, g, "spine-1")}, func(n topology.NodeID) bool { return n == slow })
			only, err := p.Plan(view, nil, req)
			if err != nil || only.Tree.Root() != slow || strings.Contains(only.Reason, "slow") || only.Forecast.Switches <= plan.Forecast.Switches {
				t.Errorf("%v, %s, alone: %s, %v", by, what, only.Reason, err)
			}
			req.Exclude = nil
		}
		little := one(usual, topology.NodeUtilization(slow, 0.25))
		if plan, err := p.Plan(little, nil, req); err != nil || plan.Tree.Root() != slow {
			t.Errorf("%v: a quarter of a CPU moves a tree: %s, %v", by, plan.Reason, err)
		}
	}
	for _, by := range []Criterion{LeastLoad, MostCapable} { // one by prices, the other not at all
		req := usual(g.AllHosts())
		req.Criterion = by
		first, _ := p.Plan(g.View(), nil, req)
		view := paced(t, g, func(n topology.NodeID) topology.Speed {
			return topology.Speed{Bytes: 1e9 + 4e9*min(max(int64(n-first.Tree.Root()), -int64(n-first.Tree.Root())), 1)}
		})
		if plan, err := p.Plan(view, nil, req); err != nil || (plan.Tree.Root() == first.Tree.Root()) != (by == MostCapable) {
			t.Errorf("%v: %s, %v", by, plan.Reason, err)
		}
	}
}

// TestOwnUseMovesNothing plans again for a group whose own traffic makes its switches
// busy.
func TestOwnUseMovesNothing(t *testing.T) {
	g := fabric(t, "fat-tree:4")
	p, rng := planner(t, g), rand.New(rand.NewPCG(51, 52))
	for range 60 {
		req := usual(randomGroup(rng, g, 8))
		req.Criterion, req.Bytes = Criterion(rng.IntN(int(LeastLoad))), 1<<20
		first, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		var busy []topology.Change
		for _, v := range first.Tree.Vertices {
			busy = append(busy, topology.NodeUtilization(v.Switch, float64(rng.IntN(9))/8))
		}
		view := changed(t, g, busy...)
		req.Old = first.Tree
		again, err := p.Plan(view, nil, req)
		if err != nil || !reflect.DeepEqual(again.Tree, first.Tree) {
			t.Fatalf("%s\nbefore: %s, %v", again.Reason, first.Reason, err)
		}
		// A slow switch is a reason to move, where there is another way.
		slow := paced(t, g, func(n topology.NodeID) topology.Speed {
			if n == first.Tree.Root() {
				return topology.Speed{Bytes: 1e8}
			}
			return topology.Speed{Bytes: 5e9}
		})
		moved, err := p.Plan(slow, nil, req)
		if err != nil || len(first.Tree.Vertices) > 3 && moved.Tree.Root() == first.Tree.Root() {
			t.Fatalf("%s, %v", moved.Reason, err)
		}
	}
}

// TestUnknownSpeedIsUsual has a switch of which nothing is known neither preferred nor
// avoided beside others, however fast the model's are.
func TestUnknownSpeedIsUsual(t *testing.T) {
	g := fabric(t, "leaf-spine:2,3,2")
	p := planner(t, g)
	req := usual(g.AllHosts())
	first, err := p.Plan(g.View(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Switches() {
		view := paced(t, g, func(n topology.NodeID) topology.Speed {
			if n == g.Switch(i) {
				return topology.Speed{}
			}
			return topology.Speed{Bytes: 1e9}
		})
		if plan, err := p.Plan(view, nil, req); err != nil || !reflect.DeepEqual(plan.Tree, first.Tree) || plan.Figures.Speed != 1e9 {
			t.Errorf("%s is not known: %s, %v", g.Name(g.Switch(i)), plan.Reason, err)
		}
	}
}

// TestLineRate has hardware that reduces at line rate beside software: it is never slow,
// its agent's CPU does not count, an operation takes what its links take, and a switch of
// unknown speed is not taken for hardware.
func TestLineRate(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,2")
	p := planner(t, g)
	hard, soft := topology.Speed{Bytes: topology.LineRate}, topology.Speed{Bytes: 1e9}
	busy := topology.NodeUtilization(node(t, g, "spine-0"), 0.875)
	for name, test := range map[string]struct {
		spines, leaves [2]topology.Speed
		more           []topology.Change
		root           string
		speed          int64
	}{
		"one of the spines":       {spines: [2]topology.Speed{hard, soft}, leaves: [2]topology.Speed{hard, hard}, root: "spine-0", speed: topology.LineRate},
		"its agent is busy":       {spines: [2]topology.Speed{hard, soft}, leaves: [2]topology.Speed{hard, hard}, more: []topology.Change{busy}, root: "spine-0", speed: topology.LineRate},
		"packets as well":         {spines: [2]topology.Speed{{Bytes: topology.LineRate, Packets: topology.LineRate}, soft}, leaves: [2]topology.Speed{hard, hard}, root: "spine-0", speed: topology.LineRate},
		"all":                     {spines: [2]topology.Speed{hard, hard}, leaves: [2]topology.Speed{hard, hard}, speed: topology.LineRate},
		"a leaf is software":      {spines: [2]topology.Speed{hard, soft}, leaves: [2]topology.Speed{hard, soft}, speed: 1e9},
		"one is not known":        {spines: [2]topology.Speed{{}, soft}, leaves: [2]topology.Speed{hard, hard}, speed: 1e9},
		"hardware, and not known": {spines: [2]topology.Speed{{}, hard}, leaves: [2]topology.Speed{hard, hard}, root: "spine-1", speed: topology.LineRate},
	} {
		for _, by := range []Criterion{FewestHops, LeastLatency, WidestLink} {
			req := usual(g.AllHosts())
			req.Criterion, req.Bytes, req.HostSpeeds = by, 1<<20, reported(req, topology.Speed{Bytes: 2e9})
			view := paced(t, g, func(n topology.NodeID) topology.Speed {
				i := int(g.Name(n)[len(g.Name(n))-1] - '0')
				if strings.HasPrefix(g.Name(n), "spine") {
					return test.spines[i]
				}
				return test.leaves[i]
			}, test.more...)
			plan, err := p.Plan(view, nil, req)
			if err != nil || test.root != "" && g.Name(plan.Tree.Root()) != test.root || plan.Figures.Speed != test.speed {
				t.Errorf("%s, by %v: speed %d, %s, %v", name, by, plan.Figures.Speed, plan.Reason, err)
			}
			if links := (Model{HostMessage: p.cfg.Model.HostMessage, SwitchReduce: math.Inf(1)}); test.speed == topology.LineRate {
				wire := plan.Trip
				wire.Reduce, wire.Packet = 0, 0
				if off := plan.Forecast.Switches - links.Switches(wire); off < 0 || off > time.Microsecond {
					t.Errorf("%s, by %v: %v longer than its links take", name, by, off)
				}
			}
		}
	}
}

// TestLoadDoesNotOscillate plans again and again for a group while the load of all
// switches wavers, as own and other trees make it: no tree is come back to.
func TestLoadDoesNotOscillate(t *testing.T) {
	names, planners := smallPlanners(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := planners[rapid.SampledFrom(names).Draw(rt, "fabric")]
		g := p.graph
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		req := usual(randomGroup(rng, g, 6))
		req.Criterion, req.Bytes = []Criterion{FewestHops, LeastLatency, WidestLink}[rng.IntN(3)], int64(rng.IntN(1<<20))
		speeds := make([]topology.Speed, g.Switches())
		for i := range speeds {
			speeds[i].Bytes = []int64{0, 4e9, 5e9, 1e9}[rng.IntN(4)]
		}
		var had []Tree
		for range 20 {
			var load []topology.Change
			for i := range g.Switches() {
				load = append(load, topology.NodeUtilization(g.Switch(i), float64(rng.IntN(9))/8))
			}
			view := paced(t, g, func(n topology.NodeID) topology.Speed { return speeds[g.SwitchIndex(n)] }, load...)
			plan, err := p.Plan(view, nil, req)
			if err != nil {
				rt.Fatal(err)
			}
			is := func(o Tree) bool { return reflect.DeepEqual(o, plan.Tree) }
			if len(had) > 0 && is(had[len(had)-1]) {
				continue
			}
			if slices.ContainsFunc(had, is) {
				rt.Fatalf("back to a tree after %d others: %s", len(had)-slices.IndexFunc(had, is), plan.Reason)
			}
			had = append(had, plan.Tree)
			req.Old = plan.Tree
		}
	})
}

// TestSpeedOfNothing has a switch that reduces nothing on no tree.
func TestSpeedOfNothing(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,2")
	p := planner(t, g)
	req := usual(g.AllHosts())
	for _, none := range []topology.Speed{{Bytes: topology.NoSpeed}, {Bytes: 1e9, Packets: topology.NoSpeed}} {
		for name, ok := range map[string]bool{"spine-0": true, "spine-1": true, "leaf-1": false} {
			view := paced(t, g, func(n topology.NodeID) topology.Speed {
				if g.Name(n) == name {
					return none
				}
				return topology.Speed{}
			})
			for by := FewestHops; by < criteria; by++ {
				req.Criterion = by
				plan, err := p.Plan(view, nil, req)
				no := (*Refusal)(nil)
				switch {
				case ok && (err != nil || g.Name(plan.Tree.Root()) == name):
					t.Errorf("%v without %s: %s, %v", by, name, plan.Reason, err)
				case !ok && (!errors.As(err, &no) || no.Resource != Speed || !strings.Contains(no.Error(), "switch leaf-1 reduces nothing: its speed is 0")):
					t.Errorf("%v: %v", by, err)
				}
			}
		}
	}
}

// TestMembersOwnSpeeds has the slowest member decide how long hosts take.
func TestMembersOwnSpeeds(t *testing.T) {
	g, err := topology.Read(strings.NewReader(`version: 1
hosts: [{name: a, speed: {bytes: 50G}}, {name: b, speed: {bytes: 2G, packets: 1M}}, c]
switches: [{name: s, speed: {bytes: 6G}}]
links: [{between: [a, s]}, {between: [b, s]}, {between: [c, s]}]
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	p, m := planner(t, g), DefaultModel()
	plan := func(slowest topology.Speed, hosts ...topology.NodeID) Plan {
		req := usual(hosts)
		req.Bytes, req.HostSpeeds = 1<<20, reported(req, slowest)
		plan, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	for _, test := range []struct {
		got  Plan
		want float64
	}{
		{plan(topology.Speed{}, 0, 2), m.HostReduce}, {plan(topology.Speed{Bytes: 3e8}, 1, 2), 3e8}, {plan(topology.Speed{}, 0, 1, 2), 1432e6}, {plan(topology.Speed{Bytes: 3e8}, 0, 1), 1432e6},
		{plan(topology.Speed{Bytes: topology.NoSpeed}, 2), 1},
	} {
		if test.got.Trip.HostReduce != test.want || test.got.Forecast.Hosts != m.Hosts(test.got.Trip) {
			t.Errorf("%+v, want %v", test.got.Trip, test.want)
		}
		if test.got.Trip.Reduce != 6e9/float64(test.got.Trip.Children) || test.got.Figures.Speed != 6e9 {
			t.Errorf("%+v: the switch's speed does not count", test.got.Trip)
		}
	}
	fast, lame := plan(topology.Speed{}, 0, 2).Forecast, plan(topology.Speed{Bytes: 1e8}, 0, 2).Forecast
	if lame.Hosts <= fast.Hosts || lame.Switches != fast.Switches {
		t.Errorf("%+v with a slow member, %+v with fast ones", lame, fast)
	}
	// What is known of only the switches, or only the hosts, is not compared with the
	// model's of the others; how busy they are is.
	other := fabric(t, "leaf-spine:2,2,2")
	ask := func(view topology.View, hosts topology.Speed) Plan {
		req := usual(other.AllHosts())
		req.Bytes, req.HostSpeeds = 1<<20, reported(req, hosts)
		plan, err := planner(t, other).Plan(view, nil, req)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	slow := topology.Speed{Bytes: 1e6}
	switches := paced(t, other, func(topology.NodeID) topology.Speed { return slow })
	nothing := ask(other.View(), topology.Speed{})
	for _, half := range []Plan{nothing, ask(switches, topology.Speed{}), ask(other.View(), slow)} {
		if half.Trip.Reduce != 0 || half.Trip.HostReduce != 0 || half.Trip.Packet != 0 || half.Forecast != nothing.Forecast {
			t.Errorf("%+v", half.Trip)
		}
	}
	if both := ask(switches, slow).Forecast; both.Switches < 10*nothing.Forecast.Switches || both.Hosts < 10*nothing.Forecast.Hosts {
		t.Errorf("%+v, of fast ones %+v", both, nothing.Forecast)
	}
	busy := ask(changed(t, other, topology.NodeUtilization(node(t, other, "leaf-0"), 0.5), topology.NodeUtilization(0, 0.5)), topology.Speed{})
	if busy.Trip.HostReduce != m.HostReduce/2 || busy.Trip.Reduce != m.SwitchReduce/2/2 {
		t.Errorf("%+v", busy.Trip)
	}
}
