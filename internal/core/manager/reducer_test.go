package manager

import (
	"reflect"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// TestReducersAreReported: members and operators hear what reduces on each switch of a
// tree, also from a manager that was restarted and learns it from what agents hold.
func TestReducersAreReported(t *testing.T) {
	w := connected(1000)
	p4 := topology.Reducer{Pipeline: topology.P4}
	p4.Own[reduce.Int32] = topology.FunctionsOf(reduce.Sum)
	for i, a := range w.agents {
		if a.reducer = p4; i == w.graph.SwitchIndex(w.graph.Across(w.graph.Adjacent(2)[0], 2)) {
			a.reducer = topology.SoftwareReducer()
		}
	}
	w.watchAll(w.create("g", 16, 0, 2, 4).Group)
	w.settle()
	w.want(t, Active, 2)
	check := func(when string) {
		t.Helper()
		e, _ := w.core.Group(1)
		tree := e.Trees[len(e.Trees)-1]
		counted := map[topology.Reducer]int{}
		for i, v := range tree.Plan.Tree.Vertices {
			r := tree.Reducers[i]
			if want := w.agents[w.graph.SwitchIndex(v.Switch)].reducer; r != want {
				t.Errorf("%s: on %s reduces %v, want %v", when, w.graph.Name(v.Switch), r, want)
			}
			counted[r]++
		}
		offers := w.members[[2]uint32{1, 2}].offers
		offer := offers[len(offers)-1]
		for _, r := range offer.Reducers {
			if r.Switches != counted[r.Reducer] || len(r.Names) != min(r.Switches, MaxReducerNames) {
				t.Errorf("%s: a member is notified of %+v", when, r)
			}
		}
		if len(counted) != 2 || len(offer.Reducers) != 2 {
			t.Errorf("%s: %d reducers, a member is notified of %d", when, len(counted), len(offer.Reducers))
		}
	}
	check("at first")
	w.enterAll(2)
	w.killManager()
	w.reconnect()
	w.watchAll(1)
	w.run(time.Minute)
	w.want(t, Active, 2)
	check("after a restart of the manager")
}

// TestReducersOfAnOffer: an offer has each reducer once, and names a few switches.
func TestReducersOfAnOffer(t *testing.T) {
	device := &device{name: "s"}
	tree := &tree{sites: make([]site, 3*MaxReducerNames)}
	for i := range tree.sites {
		if tree.sites[i].on = device; i%3 > 0 {
			tree.sites[i].reducer = topology.SoftwareReducer()
		}
	}
	got := tree.reducedOn()
	if len(got) != 2 || got[0].Switches != MaxReducerNames || got[1].Switches != 2*MaxReducerNames ||
		len(got[0].Names) != MaxReducerNames || len(got[1].Names) != MaxReducerNames || got[0].Reducer != (topology.Reducer{}) {
		t.Errorf("%+v", got)
	}
	new(Core).reducedBy(tree, &tree.sites[0], topology.SoftwareReducer())
	if again := tree.reducedOn(); reflect.DeepEqual(got, again) || again[0].Switches != 2*MaxReducerNames+1 {
		t.Errorf("when one has changed: %+v", again)
	}
}
