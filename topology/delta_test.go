package topology

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// plainDelta compares two states entry by entry.
func plainDelta(g *Graph, before, after *state) Delta {
	var d Delta
	for n := range NodeID(g.Nodes()) {
		switch {
		case !before.nodeDown[n] && after.nodeDown[n]:
			d.NodesDown = append(d.NodesDown, n)
		case before.nodeDown[n] && !after.nodeDown[n]:
			d.NodesUp = append(d.NodesUp, n)
		}
		if before.caps[n] != after.caps[n] {
			d.Capabilities = append(d.Capabilities, n)
		}
		if before.nodeUse[n] != after.nodeUse[n] {
			d.NodeUse = append(d.NodeUse, n)
		}
	}
	for l := range LinkID(g.Links()) {
		switch {
		case !before.linkDown[l] && after.linkDown[l]:
			d.LinksDown = append(d.LinksDown, l)
		case before.linkDown[l] && !after.linkDown[l]:
			d.LinksUp = append(d.LinksUp, l)
		}
		if before.linkUse[l] != after.linkUse[l] {
			d.LinkUse = append(d.LinkUse, l)
		}
	}
	return d
}

// TestDeltaAgainstRebuild holds what Apply reports, and Diff between any two
// versions, against a comparison of everything.
func TestDeltaAgainstRebuild(t *testing.T) {
	g := generated(t, "leaf-spine:40,130,3")
	rapid.Check(t, func(t *rapid.T) {
		overlays, states := []*Overlay{NewOverlay(g)}, []*state{stateOf(g)}
		for range rapid.IntRange(1, 5).Draw(t, "snapshots") {
			from := rapid.IntRange(0, len(overlays)-1).Draw(t, "from")
			state := states[from].clone()
			var changes []Change
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				c := drawChange(t, g)
				changes = append(changes, c)
				state.apply(c)
			}
			next, delta, err := overlays[from].Apply(changes...)
			if err != nil {
				t.Fatal(err)
			}
			want := plainDelta(g, states[from], state)
			if !reflect.DeepEqual(delta, want) {
				t.Fatalf("delta %+v, want %+v", delta, want)
			}
			if delta.Empty() != reflect.DeepEqual(want, Delta{}) || (next == overlays[from]) && !delta.Empty() {
				t.Fatalf("empty: %v", delta.Empty())
			}
			state.check(t, next.View())
			overlays, states = append(overlays, next), append(states, state)
		}
		for i, before := range overlays {
			for j, after := range overlays {
				d, err := Diff(before.View(), after.View())
				if err != nil || !reflect.DeepEqual(d, plainDelta(g, states[i], states[j])) {
					t.Fatalf("from %d to %d: %+v, %v", i, j, d, err)
				}
			}
		}
	})
}

func TestDeltaKinds(t *testing.T) {
	g := generated(t, "fat-tree:4")
	o := NewOverlay(g)
	busy, d, err := o.Apply(NodeUtilization(3, 0.5), LinkUtilization(9, 0.5))
	if err != nil || d.Structural() || d.Empty() {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := Diff(g.View(), busy.View()); err != nil || len(d.NodeUse) != 1 || len(d.LinkUse) != 1 {
		t.Errorf("from the graph itself: %+v, %v", d, err)
	}
	if _, d, err := busy.Apply(LinkState(3, false), LinkState(3, true)); err != nil || !d.Empty() {
		t.Errorf("a change that was taken back: %+v, %v", d, err)
	}
	if next, d, err := o.Apply(LinkState(-1, false)); !errors.Is(err, ErrChange) || next != nil || !d.Empty() {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := Diff(g.View(), generated(t, "fat-tree:4").View()); !errors.Is(err, ErrOtherGraph) {
		t.Errorf("%v", err)
	}
}

// bytesPerEvent is the most memory that one event in a fabric of a million hosts
// takes, whatever happened before.
const bytesPerEvent = 4096

func TestMemoryPerEvent(t *testing.T) {
	const events = 2000
	g := generated(t, "fat-tree:160")
	for _, e := range eventKinds(g) {
		o := NewOverlay(g)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range events {
			next, err := o.With(e.change(i))
			if err != nil {
				t.Fatal(err)
			}
			o = next
		}
		runtime.ReadMemStats(&after)
		each := (after.TotalAlloc - before.TotalAlloc) / events
		t.Logf("%s: %d bytes an event", e.name, each)
		if each > bytesPerEvent {
			t.Errorf("%s: %d bytes an event, the budget is %d", e.name, each, bytesPerEvent)
		}
	}
}
