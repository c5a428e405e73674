package pathsel

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

func TestStripesAreApart(t *testing.T) {
	for _, test := range []struct {
		fabric      string
		n, apart, k int
	}{
		{"fat-tree:8", 4, 4, 4}, {"fat-tree:8", 6, 4, 6}, {"leaf-spine:2,4,3", 3, 3, 3}, {"leaf-spine:2,1,0", 2, 1, 2},
	} {
		g := fabric(t, test.fabric)
		load := NewLoad(g)
		req := usual(g.AllHosts())
		s, err := planner(t, g).Stripes(g.View(), load, req, test.n)
		if err != nil || s.Apart != test.apart || len(s.Plans) != test.k {
			t.Fatalf("%s: %d of %d stripes are apart, %v", test.fabric, s.Apart, len(s.Plans), err)
		}
		used := map[topology.LinkID]int{}
		for i, plan := range s.Plans {
			checkTree(t, g.View(), load, req, plan.Tree)
			for _, v := range plan.Tree.Vertices {
				if v.Up == topology.NoLink {
					continue
				}
				if used[v.Up]++; used[v.Up] > 1 && i < s.Apart || used[v.Up] > 2 {
					t.Errorf("%s: %s is on %d stripes", test.fabric, g.LinkName(v.Up), used[v.Up])
				}
			}
		}
		empty := NewLoad(g)
		empty.priced()
		if !reflect.DeepEqual(load.links, empty.links) || !reflect.DeepEqual(load.slots, empty.slots) {
			t.Errorf("%s: the load is not as it was", test.fabric)
		}
	}
}

// TestStripesOverSlowSwitches has spines of several speeds: a stripe is no use over a
// switch that makes it slower than another stripe over a fast one, and of use over all
// others.
func TestStripesOverSlowSwitches(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,2")
	fast, hard := topology.Speed{Bytes: 4e9}, topology.Speed{Bytes: topology.LineRate}
	for name, test := range map[string]struct {
		leaves, one, other topology.Speed
		apart              int
	}{
		"alike":           {fast, fast, topology.Speed{Bytes: 3e9}, 2},
		"not known":       {fast, fast, topology.Speed{}, 2},
		"half as fast":    {fast, fast, topology.Speed{Bytes: 2e9}, 2},
		"slow":            {fast, fast, topology.Speed{Bytes: 4e8}, 1},
		"all slow":        {fast, topology.Speed{Bytes: 4e8}, topology.Speed{Bytes: 4e8}, 2},
		"beside hardware": {hard, hard, fast, 1},
	} {
		for _, by := range []Criterion{FewestHops, LeastLatency, WidestLink} {
			req := usual(g.AllHosts())
			req.Bytes, req.Criterion = 1<<22, by
			view := paced(t, g, func(n topology.NodeID) topology.Speed {
				switch g.Name(n) {
				case "spine-0":
					return test.one
				case "spine-1":
					return test.other
				}
				return test.leaves
			})
			s, err := planner(t, g).Stripes(view, nil, req, 2)
			if err != nil || len(s.Plans) != 2 || s.Apart != test.apart {
				t.Fatalf("%s, by %v: %d of %d stripes are apart, %v", name, by, s.Apart, len(s.Plans), err)
			}
			both, reason := s.Plans[0].Tree.Root() == s.Plans[1].Tree.Root(), s.Plans[1].Reason
			if both != (test.apart == 1) || both && g.Name(s.Plans[0].Tree.Root()) != "spine-0" || both != strings.Contains(reason, "since the tree without has a slow switch (") {
				t.Errorf("%s, by %v: %s", name, by, reason)
			}
		}
	}
}

func TestPartsHaveTheirOwnRoots(t *testing.T) {
	for _, name := range []string{"fat-tree:4", "leaf-spine:4,6,2", "four-switches:5", "railed"} {
		g := smallFabric(t, name)
		p, rng := planner(t, g), rand.New(rand.NewPCG(61, 62))
		for n := 1; n <= 5; n++ {
			req := usual(randomGroup(rng, g, g.Hosts()))
			parts, err := p.Parts(g.View(), nil, req, n)
			if err != nil || len(parts) > n {
				t.Fatalf("%s: %d parts for %d, %v", name, len(parts), n, err)
			}
			var ranks []int
			for i, part := range parts {
				of := req
				of.Members = nil
				for _, rank := range part.Ranks {
					of.Members = append(of.Members, req.Members[rank])
				}
				checkPlan(t, g.View(), nil, of, &part.Plan)
				if !slices.IsSorted(part.Ranks) || i > 0 && parts[i-1].Ranks[0] > part.Ranks[0] {
					t.Errorf("%s: parts out of order: %v", name, parts)
				}
				ranks = append(ranks, part.Ranks...)
			}
			slices.Sort(ranks)
			for i, rank := range ranks {
				if rank != i || len(ranks) != len(req.Members) {
					t.Fatalf("%s: ranks %v of %d members", name, ranks, len(req.Members))
				}
			}
		}
	}
}

func TestSeveralRefuseNone(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,1")
	p, req := planner(t, g), usual(g.AllHosts())
	if _, err := p.Stripes(g.View(), nil, req, 0); !errors.Is(err, ErrRequest) {
		t.Error(err)
	}
	if _, err := p.Parts(g.View(), nil, req, 0); !errors.Is(err, ErrRequest) {
		t.Error(err)
	}
	down := changed(t, g, topology.NodeState(node(t, g, "spine-0"), false))
	if _, err := p.Stripes(down, nil, req, 2); !errors.Is(err, ErrNoTree) {
		t.Error(err)
	}
	if _, err := p.Parts(down, nil, req, 2); !errors.Is(err, ErrNoTree) {
		t.Error(err)
	}
	req.Slots = 30000 // there is room for one
	if s, err := p.Stripes(g.View(), nil, req, 2); err != nil || len(s.Plans) != 1 {
		t.Errorf("%d stripes, %v", len(s.Plans), err)
	}
}

func TestPlanReachableSaysWhoIsLeftOut(t *testing.T) {
	g := fabric(t, "leaf-spine:2,3,1")
	p, req := planner(t, g), usual(g.AllHosts())
	for _, test := range []struct {
		change topology.Change
		out    []int
		why    string
	}{
		{topology.NodeState(0, false), []int{0}, "h0) is down"},
		{topology.NodeState(node(t, g, "leaf-0"), false), []int{0, 1}, "leaf-0 is down"},
		{topology.LinkState(g.Adjacent(node(t, g, "leaf-0"))[2], false), []int{0, 1}, "do not join it"},
		{topology.NodeState(node(t, g, "spine-0"), false), []int{2, 3, 4, 5}, "do not join it"},
	} {
		view := changed(t, g, test.change)
		if _, err := p.Plan(view, nil, req); !errors.Is(err, ErrNoTree) {
			t.Fatalf("%v: %v", test.why, err)
		}
		plan, err := p.PlanReachable(view, nil, req)
		if err != nil {
			t.Fatal(err)
		}
		var out []int
		for _, o := range plan.LeftOut {
			out = append(out, o.Rank)
			if !strings.Contains(o.Why, test.why) || o.Host != req.Members[o.Rank] {
				t.Errorf("%+v does not say %q", o, test.why)
			}
		}
		if !slices.Equal(out, test.out) || len(plan.Tree.Leaves)+len(out) != 6 {
			t.Errorf("%s: %v are left out, want %v", test.why, out, test.out)
		}
	}
	none := changed(t, g, topology.NodeState(g.Switch(0), false), topology.NodeState(g.Switch(1), false),
		topology.NodeState(g.Switch(2), false), topology.NodeState(g.Switch(3), false))
	if _, err := p.PlanReachable(none, nil, req); !errors.Is(err, ErrNoTree) {
		t.Errorf("no switch is left: %v", err)
	}
}
