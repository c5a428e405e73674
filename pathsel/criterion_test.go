package pathsel

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// TestDecide has all groups balanced that name no criterion, within what they need.
func TestDecide(t *testing.T) {
	m := DefaultModel()
	for _, test := range []struct {
		req  Purpose
		need Criterion
	}{
		{Purpose{}, FewestHops},
		{Purpose{Collective: Gather, Bytes: 1 << 30}, FewestHops},
		{Purpose{Collective: AllToAll, Bytes: 1}, FewestHops},
		{Purpose{Collective: Barrier, Bytes: 0}, LeastLatency},
		{Purpose{Collective: Allreduce, Bytes: 64}, LeastLatency},
		{Purpose{Collective: Broadcast, Bytes: 64 << 20}, WidestLink},
		{Purpose{Bytes: m.even()}, LeastLatency},
		{Purpose{Bytes: m.even() + 1}, WidestLink},
	} {
		if by, why := test.req.need(m); by != test.need || why == "" {
			t.Errorf("%+v needs %v, since %q; want %v", test.req, by, why, test.need)
		}
		by, why := test.req.Decide(m)
		if _, need := test.req.need(m); by != LeastLoad || !strings.HasSuffix(why, need) || !strings.HasPrefix(why, "nothing else was asked for, ") {
			t.Errorf("%+v: %v, since %q", test.req, by, why)
		}
		for c := FewestHops; c < criteria; c++ {
			test.req.Criterion = c
			if by, why := test.req.Decide(m); by != c || why != "it was given" {
				t.Errorf("%+v: %v, since %q", test.req, by, why)
			}
		}
	}
}

func TestParseCriteria(t *testing.T) {
	for c := ByFunction; c < criteria; c++ {
		if got, err := ParseCriterion(c.String()); got != c || err != nil {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	for c := AnyCollective; c < collectives; c++ {
		if got, err := ParseCollective(c.String()); got != c || err != nil {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	w, err := ParseWeights("hops=1, load=2.5")
	if err != nil || w[FewestHops] != 1 || w[LeastLoad] != 2.5 || w[WidestLink] != 0 {
		t.Errorf("%v, %v", w, err)
	}
	for _, bad := range []string{"", "hops", "hops=", "hops=x", "hops=-1", "auto=1", "speed=1", "hops=1,", "hops=NaN", "hops=1 2"} {
		if _, err := ParseWeights(bad); !errors.Is(err, ErrRequest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPlanRefusesBadTerms(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,1")
	p := planner(t, g)
	for name, change := range map[string]func(*Request){
		"no members":        func(r *Request) { r.Members = nil },
		"a switch":          func(r *Request) { r.Members = append(r.Members, g.Switch(0)) },
		"a member twice":    func(r *Request) { r.Members = append(r.Members, 0) },
		"negative bytes":    func(r *Request) { r.Bytes = -1 },
		"unknown criterion": func(r *Request) { r.Criterion = 77 },
		"both":              func(r *Request) { r.Criterion, r.Weights = FewestHops, Weights{0, 1} },
		"negative weight":   func(r *Request) { r.Weights = Weights{0, -1} },
		"excluded host":     func(r *Request) { r.Exclude = []topology.NodeID{1} },
	} {
		req := usual([]topology.NodeID{0, 2})
		change(&req)
		if _, err := p.Plan(g.View(), nil, req); !errors.Is(err, ErrRequest) || errors.Is(err, ErrNoTree) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := p.Plan(g.View(), nil, usual([]topology.NodeID{0, 2})); err != nil {
			t.Fatalf("after %s the planner is no more what it was: %v", name, err)
		}
	}
	if _, err := p.Plan(fabric(t, "fat-tree:4").View(), nil, usual([]topology.NodeID{0})); !errors.Is(err, ErrRequest) {
		t.Errorf("another graph: %v", err)
	}
	if _, err := NewPlanner(g, Config{Work: -1}); !errors.Is(err, ErrRequest) {
		t.Errorf("a negative budget: %v", err)
	}
}

// uneven is a leaf-spine fabric of two spines: one with few hops of delay and
// narrow links, one the other way round.
func uneven(t testing.TB) *topology.Graph {
	t.Helper()
	var b topology.Builder
	spines := make([]topology.Ref, 2)
	specs := []topology.LinkSpec{
		{Bandwidth: 10e9, Latency: 100 * time.Nanosecond}, {Bandwidth: 100e9, Latency: 5 * time.Microsecond},
	}
	capability := topology.DefaultCapability()
	for i, name := range []string{"swift", "wide"} {
		c := capability
		c.Slots = 512 << (2 * i)
		s, err := b.AddSwitch(name, c)
		if err != nil {
			t.Fatal(err)
		}
		spines[i] = s
	}
	for _, name := range []string{"a", "b", "c"} {
		leaf, err := b.AddSwitch("leaf-"+name, capability)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range spines {
			if _, err := b.Connect(leaf, 0, s, 0, specs[i]); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range []string{"0", "1"} {
			h, err := b.AddHost("h" + name + n)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Connect(h, 0, leaf, 0, topology.DefaultLink()); err != nil {
				t.Fatal(err)
			}
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCriteriaDiffer has each criterion choose its own spine, by its own figure.
func TestCriteriaDiffer(t *testing.T) {
	g := uneven(t)
	p := planner(t, g)
	swift, wide := node(t, g, "swift"), node(t, g, "wide")
	busy := NewLoad(g)
	for _, l := range g.Adjacent(swift) {
		busy.links[l].trees = 30
	}
	for _, test := range []struct {
		by   Criterion
		load *Load
		want topology.NodeID
	}{
		{LeastLatency, nil, swift}, {WidestLink, nil, wide}, {MostCapable, nil, wide}, {LeastLoad, busy, wide}, {FewestHops, busy, wide},
	} {
		req := usual(g.AllHosts())
		req.Criterion = test.by
		plan, err := p.Plan(g.View(), test.load, req)
		if err != nil || plan.Tree.Root() != test.want || plan.Criterion != test.by {
			t.Fatalf("%v: %v, %v", test.by, plan.Reason, err)
		}
		checkPlan(t, g.View(), test.load, req, &plan)
		if len(plan.Rivals) != 1 || plan.Rivals[0].Root == test.want || plan.Rivals[0].Figures.Compare(plan.Figures, test.by) <= 0 {
			t.Errorf("%v: rivals %+v", test.by, plan.Rivals)
		}
	}
	for text, want := range map[string]topology.NodeID{
		"latency=1": swift, "bandwidth=1": wide, "latency=1,bandwidth=9": wide, "latency=9,bandwidth=1": swift,
	} {
		req := usual(g.AllHosts())
		req.Weights, _ = ParseWeights(text)
		plan, err := p.Plan(g.View(), nil, req)
		if err != nil || plan.Tree.Root() != want {
			t.Errorf("%s: %v, %v", text, plan.Reason, err)
		}
	}
}

// TestMeasuredUseCounts has measured use of a link or a CPU turn a choice.
func TestMeasuredUseCounts(t *testing.T) {
	g := fabric(t, "leaf-spine:2,3,2")
	p := planner(t, g)
	req := usual(g.AllHosts())
	for _, by := range []Criterion{WidestLink, LeastLoad} {
		for i := range 2 {
			spine, other := node(t, g, "spine-"+string(rune('0'+i))), node(t, g, "spine-"+string(rune('1'-i)))
			req.Criterion = by
			view := changed(t, g, topology.LinkUtilization(g.Adjacent(spine)[0], 0.7))
			plan, err := p.Plan(view, nil, req)
			if err != nil || plan.Tree.Root() != other {
				t.Errorf("%v with a busy link at %s: %v, %v", by, g.Name(spine), plan.Reason, err)
			}
			if by == WidestLink {
				continue
			}
			view = changed(t, g, topology.NodeUtilization(spine, 0.9))
			if plan, err = p.Plan(view, NewLoad(g), req); err != nil || plan.Tree.Root() != other {
				t.Errorf("with a busy CPU of %s: %v, %v", g.Name(spine), plan.Reason, err)
			}
		}
	}
}

// TestLatencyElsewhere holds plans of least latency in a ring against all trees
// of shortest paths: none is faster.
func TestLatencyElsewhere(t *testing.T) {
	g := railed(t)
	p, rng := planner(t, g), rand.New(rand.NewPCG(41, 42))
	for range 100 {
		req := usual(randomGroup(rng, g, 7))
		req.Criterion = LeastLatency
		plan, err := p.Plan(g.View(), nil, req)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, g.View(), nil, req, &plan)
		// All links and switches are alike here: time is depth.
		if _, depth, _ := newPlain(g.View(), nil, req).shallowest(); plan.Figures.Depth != depth {
			t.Fatalf("depth %d by %v; %d would do", plan.Figures.Depth, plan.Method, depth)
		}
	}
}

// shallowest returns the least depth of any tree of shortest paths.
func (p *plain) shallowest() (hops, depth int, ok bool) {
	for root := range p.switches {
		if h, d := p.from(root); d > 0 && (!ok || d < depth) {
			hops, depth, ok = h, d, true
		}
	}
	return hops, depth, ok
}
