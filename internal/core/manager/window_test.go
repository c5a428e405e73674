package manager

import (
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// window returns that of a group's newest tree, 0 if it has none.
func (w *world) window(group uint32) uint32 {
	e, _ := w.core.Group(group)
	if len(e.Trees) == 0 {
		return 0
	}
	return e.Trees[len(e.Trees)-1].Window
}

// TestFirstWindow: a group begins with a small window, or with a smaller one where
// slots are scarce; one whose tree is lost, with that which it had.
func TestFirstWindow(t *testing.T) {
	for _, test := range []struct {
		slots        int
		asked, given uint32
	}{
		{1 << 15, 512, 16}, {1 << 15, 8, 8}, {32, 512, 16}, {31, 512, 8}, {8, 512, 4}, {4, 512, 2}, {3, 512, 0}, {2, 1, 1},
	} {
		w := connected(test.slots)
		r := w.create("g", test.asked, 0, 2, 4)
		w.watchAll(r.Group)
		w.settle()
		if given := w.window(r.Group); given != test.given || w.fault != nil {
			t.Errorf("of %d slots a group that asks for %d gets %d, want %d; %v", test.slots, test.asked, given, test.given, w.fault)
		}
	}
	w := connected(1 << 15)
	w.watchAll(w.create("g", 512, 0, 2, 4).Group)
	w.obey()
	w.crash(w.graph.SwitchIndex(w.core.groups[1].active.sites[0].on.node))
	w.obey()
	if given := w.window(1); given != 512 || w.core.Resizes().Grown != 1 || w.fault != nil {
		t.Errorf("after its root has died it gets %d; %v", given, w.fault)
	}
}

// TestBorneWindow has a tree lead over switches whose queues bear different
// windows: the least counts, and what is between two powers of two is the lower.
// A later tree that avoids the weakest may have more.
func TestBorneWindow(t *testing.T) {
	for _, test := range []struct {
		leaf, others int
		given        uint32
	}{
		{0, 0, 256}, {64, 0, 64}, {0, 64, 64}, {64, 16, 16}, {16, 64, 16}, {100, 0, 64}, {5, 0, 4}, {1, 0, 1}, {1000, 300, 256},
	} {
		w := connected(1 << 15)
		leaf := w.graph.Across(w.graph.Adjacent(2)[0], 2)
		for i := range w.core.fleet {
			w.core.fleet[i].capability.Window = test.others
		}
		w.core.device(leaf).capability.Window = test.leaf
		r := w.create("g", 256, 0, 2, 4)
		w.watchAll(r.Group)
		w.obey()
		if given := w.window(r.Group); given != test.given || w.fault != nil {
			t.Errorf("where a leaf bears %d and the others %d it gets %d, want %d; %v", test.leaf, test.others, given, test.given, w.fault)
		}
		for i := range w.core.fleet {
			if d := w.core.fleet[i]; d.used != 0 && d.used != 2*int(test.given) {
				t.Errorf("%d slots of %s are taken", d.used, d.name)
			}
		}
	}
}

// TestForwardersBearTheWindow has a switch that cannot reduce forward an edge: its
// queues count like those of the others.
func TestForwardersBearTheWindow(t *testing.T) {
	w := connected(1 << 15)
	r := w.create("g", 256, 0, 2)
	w.watchAll(r.Group)
	w.settle()
	plan := w.core.groups[r.Group].active.plan.Tree
	var between *device
	for i := range w.core.fleet {
		if d := w.core.fleet[i]; !slices.ContainsFunc(plan.Vertices, func(v pathsel.Vertex) bool { return v.Switch == d.node }) {
			between = d
		}
	}
	between.capability.Window = 32
	if given := w.core.borne(&plan, 256); given != 256 {
		t.Errorf("a switch beside the tree makes it %d", given)
	}
	plan.Routes = append(plan.Routes, pathsel.Route{Links: w.graph.Adjacent(between.node)[:1]})
	if given := w.core.borne(&plan, 256); given != 32 {
		t.Errorf("over a switch that forwards it is %d", given)
	}
}

// TestWindowOfATreeThatIsGone: what a new graph does not have bears any window.
func TestWindowOfATreeThatIsGone(t *testing.T) {
	g, err := topology.LeafSpine(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	gone := &pathsel.Tree{
		Vertices: []pathsel.Vertex{{Switch: topology.NoNode}},
		Routes:   []pathsel.Route{{Vertex: 0, Rank: -1, Links: []topology.LinkID{topology.NoLink, topology.NoLink}}},
	}
	if w := (&Core{graph: g}).borne(gone, 64); w != 64 {
		t.Errorf("a window of %d, want 64", w)
	}
}
