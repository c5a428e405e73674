package pathsel

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// TestApartFromOthers plans random groups beside trees of theirs, in fabrics of every
// kind, and compares with what an exhaustive ban finds: no link is shared where there
// is a tree without those of the others.
func TestApartFromOthers(t *testing.T) {
	for _, name := range []string{"fat-tree:4", "leaf-spine:4,6,2", "four-switches:5", "railed"} {
		g := smallFabric(t, name)
		p, rng := planner(t, g), rand.New(rand.NewPCG(71, 72))
		for range 30 {
			req := usual(randomGroup(rng, g, 6))
			first, err := p.Plan(g.View(), nil, req)
			if err != nil {
				t.Fatal(err)
			}
			req.Avoid = []Tree{first.Tree}
			plan, err := p.Plan(g.View(), nil, req)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			plain := req
			plain.Avoid = nil
			checkTree(t, g.View(), nil, plain, plan.Tree)
			if n := Shared(g, plan.Tree, req.Avoid); n != plan.Shared {
				t.Errorf("%s: %d links are shared, it says %d", name, n, plan.Shared)
			}
			if said := "apart from the other tree of its communicator"; strings.Contains(plan.Reason, said) != (plan.Shared == 0) {
				t.Errorf("%s: %d links are shared: %s", name, plan.Shared, plan.Reason)
			}
			for _, v := range first.Tree.Vertices {
				if v.Up != topology.NoLink {
					plain.ExcludeLinks = append(plain.ExcludeLinks, v.Up)
				}
			}
			if _, err := p.Plan(g.View(), nil, plain); err == nil && plan.Shared > 0 && len(plan.Tree.Vertices) > 1 {
				t.Errorf("%s: %d links are shared, though there is a tree without", name, plan.Shared)
			}
		}
	}
}

// TestApartByDegrees: other switches and members' links where there are such, then
// other switches above, then other links, then any.
func TestApartByDegrees(t *testing.T) {
	var b topology.Builder
	ref := map[string]topology.Ref{}
	var err error
	for _, name := range []string{"h0", "h1"} {
		ref[name], err = b.AddHost(name)
		fatal(t, err)
	}
	for _, name := range []string{"a0", "a1", "b0", "b1", "top", "side"} {
		ref[name], err = b.AddSwitch(name, topology.DefaultCapability())
		fatal(t, err)
	}
	for _, l := range [][2]string{ // two rails, a and b; a has two ways over top, and one over side
		{"h0", "a0"}, {"h1", "a1"}, {"h0", "b0"}, {"h1", "b1"}, {"b0", "b1"},
		{"a0", "top"}, {"top", "a1"}, {"a0", "top"}, {"top", "a1"}, {"a0", "side"}, {"side", "a1"},
	} {
		_, err = b.Connect(ref[l[0]], 0, ref[l[1]], 0, topology.DefaultLink())
		fatal(t, err)
	}
	g, err := b.Build()
	fatal(t, err)
	p, req := planner(t, g), usual(g.AllHosts())
	req.Exclude = []topology.NodeID{node(t, g, "b0")}
	down := func(names ...string) topology.View {
		var changes []topology.Change
		for _, name := range names {
			changes = append(changes, topology.NodeState(node(t, g, name), false))
		}
		return changed(t, g, changes...)
	}
	first, err := p.Plan(down("side"), nil, req) // over top
	fatal(t, err)
	req.Avoid = []Tree{first.Tree}
	for _, test := range []struct {
		view   topology.View
		over   string // a switch that the tree is on
		shared int
	}{
		{down(), "b0", 0}, {down("b0"), "side", 0}, {down("b0", "side"), "top", 0},
	} {
		req.Exclude = nil
		plan, err := p.Plan(test.view, nil, req)
		fatal(t, err)
		found := false
		for _, v := range plan.Tree.Vertices {
			found = found || v.Switch == node(t, g, test.over)
		}
		if !found || plan.Shared != test.shared {
			t.Errorf("%d links are shared; it is not over %s: %s", plan.Shared, test.over, plan.Reason)
		}
	}
	s, err := p.Stripes(g.View(), nil, req, 4)
	fatal(t, err)
	if last := s.Plans[3]; s.Apart != 3 || last.Shared == 0 || !strings.Contains(last.Reason, "since there is no tree without") {
		t.Errorf("%d stripes are apart; the last shares %d: %s", s.Apart, last.Shared, last.Reason)
	}
}

func TestAvoidedTreesAreOfTheGraph(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,1")
	p, req := planner(t, g), usual(g.AllHosts())
	for _, tree := range []Tree{
		{Leaves: []Leaf{{Link: topology.LinkID(g.Links())}}},
		{Vertices: []Vertex{{Switch: 0, Parent: -1, Up: topology.NoLink}}}, // a host
	} {
		req.Avoid = []Tree{tree}
		if _, err := p.Plan(g.View(), nil, req); !errors.Is(err, ErrRequest) {
			t.Errorf("%+v: %v", tree, err)
		}
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
