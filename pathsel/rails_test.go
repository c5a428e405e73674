package pathsel

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// multirail is a fabric of pods, in each of which every host has a link to each of some
// leaves; the leaves of all pods have a link to each spine.
type multirail struct {
	hosts, pods, rails, spines int
	single                     []int // hosts that have a link to the first leaf alone
	double                     bool  // all links of hosts lead to the first leaf
}

func (r *multirail) graph(t *testing.T) *topology.Graph {
	t.Helper()
	var b topology.Builder
	ref := map[string]topology.Ref{}
	add := func(name string, f func(string) (topology.Ref, error)) {
		var err error
		ref[name], err = f(name)
		fatal(t, err)
	}
	capable := func(name string) (topology.Ref, error) { return b.AddSwitch(name, topology.DefaultCapability()) }
	join := func(x, y string) {
		_, err := b.Connect(ref[x], 0, ref[y], 0, topology.DefaultLink())
		fatal(t, err)
	}
	for h := range r.hosts {
		add(fmt.Sprint("h", h), b.AddHost)
	}
	for s := range r.spines {
		add(fmt.Sprint("spine-", s), capable)
	}
	for pod := range r.pods {
		for rail := range r.rails {
			leaf := fmt.Sprintf("leaf-%d-%d", pod, rail)
			add(leaf, capable)
			for s := range r.spines {
				join(leaf, fmt.Sprint("spine-", s))
			}
		}
		for h := range r.hosts {
			if h%r.pods != pod {
				continue
			}
			for rail := range r.rails {
				switch {
				case r.double:
					join(fmt.Sprint("h", h), fmt.Sprintf("leaf-%d-0", pod))
				case rail == 0 || !slices.Contains(r.single, h):
					join(fmt.Sprint("h", h), fmt.Sprintf("leaf-%d-%d", pod, rail))
				}
			}
		}
	}
	g, err := b.Build()
	fatal(t, err)
	return g
}

// apartAtMembers returns how many of the first stripes share no member's link.
func apartAtMembers(plans []Plan) int {
	n := 0
	for n < len(plans) && plans[n].SharedOwn == 0 {
		n++
	}
	return n
}

// TestStripesOverRails: stripes take links of their own at every member, as many as the
// member that has the fewest.
func TestStripesOverRails(t *testing.T) {
	for _, hosts := range []int{2, 4, 64} {
		for rails := 1; rails <= 3; rails++ {
			for _, r := range []multirail{
				{pods: 1}, {pods: 1, spines: 1}, {pods: 2, spines: rails}, {pods: 2, spines: 1},
				{pods: 1, spines: 1, single: []int{1}}, {pods: 2, spines: 2, single: []int{1}},
				{pods: 1, double: true}, {pods: 2, spines: 3, double: true},
			} {
				r.hosts, r.rails = hosts, rails
				g := r.graph(t)
				req := usual(g.AllHosts())
				s, err := planner(t, g).Stripes(g.View(), nil, req, rails)
				if err != nil {
					t.Fatalf("%+v: %v", r, err)
				}
				want := rails
				if r.single != nil {
					want = 1
				}
				if n := apartAtMembers(s.Plans); n != want || len(s.Plans) != rails {
					t.Errorf("%+v: %d of %d stripes have links of their own, want %d", r, n, len(s.Plans), want)
				}
				used := map[topology.LinkID]int{}
				for i, plan := range s.Plans {
					checkTree(t, g.View(), nil, req, plan.Tree)
					shared := 0
					for rank, l := range plan.Tree.Leaves {
						if used[l.Link]++; used[l.Link] > 1 {
							shared++
						}
						// A member with one link shares that alone, and its way to a spine with a third stripe.
						if single := slices.Contains(r.single, rank); used[l.Link] > 1 && !single && r.spines > 0 && (r.single == nil || i < 2) {
							t.Errorf("%+v: stripe %d shares %s", r, i, g.LinkName(l.Link))
						}
					}
					if shared != plan.SharedOwn {
						t.Errorf("%+v: stripe %d shares %d links, it says %d", r, i, shared, plan.SharedOwn)
					}
				}
			}
		}
	}
}

// TestStripeLosesARail: a stripe whose rail a member has lost goes on where the other one
// is, at that member at least, and back when the rail is there again.
func TestStripeLosesARail(t *testing.T) {
	for _, spines := range []int{0, 2} {
		r := multirail{hosts: 4, pods: 1, rails: 2, spines: spines}
		g := r.graph(t)
		p, req := planner(t, g), usual(g.AllHosts())
		s, err := p.Stripes(g.View(), nil, req, 2)
		fatal(t, err)
		lost := s.Plans[0].Tree.Leaves[2].Link
		req.Avoid, req.Old, req.ExcludeLinks = []Tree{s.Plans[1].Tree}, s.Plans[0].Tree, []topology.LinkID{lost}
		plan, err := p.Plan(g.View(), nil, req)
		fatal(t, err)
		want := 4 // without a spine nothing joins the leaves
		if spines > 0 {
			want = 1
		}
		if plan.SharedOwn != want || plan.Tree.Leaves[2].Link != s.Plans[1].Tree.Leaves[2].Link {
			t.Errorf("%d spines: %d links are shared, want %d: %s", spines, plan.SharedOwn, want, plan.Reason)
		}
		req.Old, req.ExcludeLinks = plan.Tree, nil
		if plan, err = p.Plan(g.View(), nil, req); err != nil || plan.SharedOwn != 0 || plan.Shared != 0 {
			t.Errorf("%d spines: it does not go back: %d links are shared, %v", spines, plan.SharedOwn, err)
		}
	}
}
