package manager

import (
	"fmt"
	"slices"
	"testing"
)

// window returns that of a group's newest tree, 0 if it has none.
func (w *world) window(group uint32) uint32 {
	e, _ := w.core.Group(group)
	if len(e.Trees) == 0 {
		return 0
	}
	return e.Trees[len(e.Trees)-1].Window
}

// TestShareOfSlots has groups that ask for large windows come one after the
// other: each gets a smaller one the less is free, and none takes all.
func TestShareOfSlots(t *testing.T) {
	w := connected(4096)
	var windows []uint32
	for i := range 16 {
		r := w.create(fmt.Sprint("g", i), 512, 0, 2)
		w.watchAll(r.Group)
		w.settle()
		windows = append(windows, w.window(r.Group))
	}
	if w.fault != nil {
		t.Fatal(w.fault)
	}
	want := []uint32{256, 128, 128, 128, 128, 128, 128, 128, 64, 64, 64, 64, 64, 64, 64, 64}
	if !slices.Equal(windows, want) {
		t.Errorf("windows are %d, want %d", windows, want)
	}
}

// TestFirstWindow takes the least that a member has to choose from.
func TestFirstWindow(t *testing.T) {
	for _, test := range []struct {
		slots        int
		asked, given uint32
	}{
		{1 << 15, 512, 512},
		{1 << 15, 4096, 2048},
		{8192, 512, 512},
		{8191, 512, 256},
		{1024, 128, 64},
		{256, 64, 64}, // an ample window need not be a share
		{64, 32, 32},
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
	leaf := &w.core.fleet[w.graph.SwitchIndex(w.graph.Across(w.graph.Adjacent(2)[0], 2))]
	leaf.capability.Slots = 2048
	r := w.create("g", 512, 0, 2, 4)
	w.watchAll(r.Group)
	w.settle()
	if given := w.window(r.Group); given != 128 || w.fault != nil {
		t.Errorf("beside a switch of 2048 slots it gets %d; %v", given, w.fault)
	}
}
