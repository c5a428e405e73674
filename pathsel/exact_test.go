package pathsel

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/steinertest"
	"github.com/tributary-fabric/tributary/topology"
)

// optimum returns the fewest hops of any tree for a, limits on children aside.
func optimum(t testing.TB, p *Planner, a asked) (int, bool) {
	t.Helper()
	if err := p.enter(a.view, a.load, a.Request); err != nil {
		t.Fatal(err)
	}
	defer p.leave(a.Request)
	s := p.steinerInput(a)
	terminals := make([]int32, len(a.Members))
	for rank := range terminals {
		terminals[rank] = int32(rank)
	}
	hops, ok := steinertest.Optimum(len(s.nodes), s.ends, s.cost, s.limit, terminals)
	return int(hops), ok
}

// TestPlanAgainstTheOptimum holds plans of the fewest hops against the
// optimum: equal where children limits do not bind, on whole fabrics and damaged
// ones, larger than those that can be searched by hand.
func TestPlanAgainstTheOptimum(t *testing.T) {
	for _, name := range []string{"fat-tree:6", "leaf-spine:3,6,4", "four-switches:4", "railed"} {
		t.Run(name, func(t *testing.T) {
			g := smallFabric(t, name)
			p, rng := planner(t, g), rand.New(rand.NewPCG(101, 102))
			found := 0
			for round := range 60 {
				req := usual(randomGroup(rng, g, 9))
				if len(req.Members) < 2 {
					continue
				}
				view := g.View()
				if round%3 > 0 {
					view = cut(t, rng, g)
				}
				fewest, ok := optimum(t, p, asked{Request: &req, view: view})
				plan, err := p.Plan(view, nil, req)
				if (err == nil) != ok {
					t.Fatalf("%v; there is a tree: %v", err, ok)
				}
				if err != nil {
					continue
				}
				found++
				if plan.Figures.Hops != fewest {
					t.Fatalf("%d hops by %v, %d would do\n%s", plan.Figures.Hops, plan.Method, fewest, plan.Tree.Text(g))
				}
			}
			if found < 20 {
				t.Errorf("only %d plans", found)
			}
		})
	}
}

// cut takes links between switches down, about one of eight.
func cut(t testing.TB, rng *rand.Rand, g *topology.Graph) topology.View {
	var changes []topology.Change
	for l, link := range g.AllLinks() {
		if g.IsSwitch(link.Ends[0].Node) && g.IsSwitch(link.Ends[1].Node) && rng.IntN(8) == 0 {
			changes = append(changes, topology.LinkState(l, false))
		}
	}
	return changed(t, g, changes...)
}

func FuzzParseWeights(f *testing.F) {
	for _, seed := range []string{"hops=1", "hops=1,load=2.5", "latency=1e3", "=", "hops=1e999", "load=0x1p4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseWeights(text)
		if err != nil {
			if !errors.Is(err, ErrRequest) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if w.Validate() != nil || w[ByFunction] != 0 {
			t.Fatalf("%q gives %v", text, w)
		}
	})
}
