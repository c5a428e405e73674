package manager

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/topology"
)

// demand has the lowest rank of a group say what window its operations can use.
func (w *world) demand(group, window uint32) {
	if m := w.members[[2]uint32{group, 0}]; m != nil && w.core.groups[group] != nil {
		w.step(Report{Group: group, Entered: m.entered, Transport: Offload, Demand: window})
	}
}

// enterNewest has a member go over to the newest tree that it was offered.
func (w *world) enterNewest(group, rank uint32) {
	if m := w.members[[2]uint32{group, rank}]; m != nil && m.watching && len(m.offers) > 0 {
		w.enter(group, rank, m.offers[len(m.offers)-1].Epoch)
	}
}

// obey has all members enter what they are offered, until nothing new comes for
// longer than any window is held.
func (w *world) obey() {
	rounds := 0
	for quiet := 0; quiet < 8 && w.fault == nil; quiet++ {
		before := w.core.seq
		if rounds++; rounds > 200 {
			for _, id := range w.core.order {
				e, _ := w.core.Group(id)
				w.fail("no rest: %v of %+v", e.Summary, e.History)
			}
		}
		for _, id := range slices.Clone(w.core.order) {
			for rank := range w.core.groups[id].members {
				w.enterNewest(id, uint32(rank))
			}
		}
		w.run(10 * time.Second)
		if w.core.seq != before {
			quiet = 0
		}
	}
}

// unfair is the slow oracle of how slots are shared: it returns a group with a
// justified complaint. That is one whose window could be doubled, out of what is
// free, of what others have and cannot use, and of windows that would still be no
// smaller than its own.
func (c *Core) unfair() error {
	for _, id := range c.order {
		g := c.groups[id]
		if g.active == nil || !c.steady(g) || g.active.window >= c.wants(g) {
			continue
		}
		w, justified := g.active.window, true
		for i := range g.active.sites {
			d := g.active.sites[i].on
			room := d.most() - d.most()/reserve - d.used
			for _, h := range c.order {
				if o := c.groups[h]; o != g && o.active != nil && o.active.site(d) != nil {
					keeps := o.active.window
					for keeps/2 >= 2*w {
						keeps /= 2
					}
					room += 2 * int(o.active.window-min(keeps, max(c.wants(o), c.smallest(o))))
				}
			}
			justified = justified && room >= 2*int(w)
		}
		if justified {
			return fmt.Errorf("group %d has a window of %d, can use %d, and could have twice as much: %+v", id, w, c.wants(g), c.Switches())
		}
	}
	return nil
}

// share is the rule itself, for groups that are all on the same switches: from the
// smallest windows on, all are doubled that can use it, as long as there is room.
func share(slots int, smallest uint32, wants []uint32) []uint32 {
	windows := make([]uint32, len(wants))
	free := slots - slots/reserve
	for i := range windows {
		windows[i] = smallest
		free -= 2 * int(smallest)
	}
	for level := smallest; level < 1<<12; level *= 2 {
		for i, w := range windows {
			if w == level && w < wants[i] && 2*int(w) <= free {
				windows[i] = 2 * w
				free -= 2 * int(w)
			}
		}
	}
	slices.Sort(windows)
	return windows
}

// crowd is a world in which n groups of the same hosts run.
func crowd(slots, n int, cfg Config, window func(i int) uint32) *world {
	w := newWorld(must(topology.LeafSpine(2, 2, 1)), cfg, slots)
	for i := range w.agents {
		w.connect(i)
	}
	for i := range n {
		w.watchAll(w.create(fmt.Sprint("g", i), window(i), 0, 2).Group)
		w.settle()
	}
	return w
}

// windows returns those of the active trees, by group.
func (w *world) windows() (all []uint32) {
	for _, s := range w.core.Groups() {
		all = append(all, s.Window)
	}
	return all
}

// TestSlotsAreShared has groups of the same switches want this and that, one after
// the other: in the end each has no less than by the rule, and none a complaint.
func TestSlotsAreShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{MinWindow: 2, StartWindow: 4, MaxGroups: 64, Lease: time.Hour}
		n := rapid.IntRange(1, 12).Draw(t, "groups")
		slots := rapid.IntRange(8*n+8*n/8+2, 1200).Draw(t, "slots")
		w := crowd(slots, n, cfg, func(int) uint32 { return 1 << rapid.IntRange(1, 8).Draw(t, "window") })
		w.obey()
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			group := w.core.order[rapid.IntRange(0, n-1).Draw(t, "group")]
			w.demand(group, 1<<rapid.IntRange(0, 8).Draw(t, "demand"))
			if rapid.Bool().Draw(t, "rest") {
				w.obey()
			}
		}
		w.obey()
		if err := w.core.unfair(); err != nil || w.fault != nil {
			t.Fatal(err, w.fault)
		}
		var wants, have []uint32
		for _, id := range w.core.order {
			g := w.core.groups[id]
			if g.active == nil {
				t.Fatalf("group %d has no tree: %v", id, g.refusal)
			}
			wants = append(wants, w.core.wants(g))
			have = append(have, min(g.active.window, wants[len(wants)-1]))
		}
		slices.Sort(have)
		if rule := share(slots, 2, wants); slices.Compare(have, rule) < 0 {
			t.Fatalf("of %d slots groups that can use %v have %v, by the rule %v", slots, wants, have, rule)
		}
	})
}

// TestWindowFollowsDemand reports the story of one group: a small window, then as
// much as it can use at once, and after it has rested for long what it began with.
func TestWindowFollowsDemand(t *testing.T) {
	w := crowd(1<<15, 1, Config{}, func(int) uint32 { return 256 })
	w.demand(1, 1)
	w.obey()
	if got := w.windows(); got[0] != 16 {
		t.Errorf("a group begins with %v", got)
	}
	w.demand(1, 1000)
	w.run(100 * time.Millisecond)
	if got := w.windows(); got[0] != 256 {
		t.Errorf("a group that can use all has %v", got)
	}
	w.obey()
	w.demand(1, 1)
	w.run(29 * time.Second)
	if got := w.windows(); got[0] != 256 {
		t.Errorf("a group that rests for a moment has %v", got)
	}
	w.run(2 * time.Second)
	w.obey()
	if got := w.windows(); got[0] != 16 || w.core.Switches()[0].Used != 32 || w.fault != nil {
		t.Errorf("a group that rests has %v, %+v, %v", got, w.core.Switches(), w.fault)
	}
	if r := w.core.Resizes(); r != (Resizes{1, 1}) {
		t.Errorf("%+v", r)
	}
}

// TestUnknownDemand: members that do not say what they can use are given as much as
// there is.
func TestUnknownDemand(t *testing.T) {
	w := crowd(1<<15, 1, Config{}, func(int) uint32 { return 256 })
	w.obey()
	if got := w.windows(); got[0] != 256 {
		t.Errorf("%v", got)
	}
}

// TestNewcomersAreServed has one group hold what it got, and as many more come as
// there can be: all have a tree in the end, whatever the first could use.
func TestNewcomersAreServed(t *testing.T) {
	for _, demand := range []uint32{1, 256} {
		w := crowd(600, 1, Config{MinWindow: 8}, func(int) uint32 { return 256 })
		w.obey()
		if got := w.windows(); got[0] != 256 {
			t.Fatalf("alone it has %v", got)
		}
		w.demand(1, demand)
		for i := range 36 {
			w.watchAll(w.create(fmt.Sprint("later", i), 256, 0, 2).Group)
			w.settle()
			w.demand(uint32(i)+2, 1)
			w.obey()
		}
		for i, got := range w.windows() {
			if got < 8 || w.fault != nil {
				t.Errorf("group %d has %d, %v", i, got, w.fault)
			}
		}
		full := w.create("one too many", 256, 0, 2).Group
		w.watchAll(full)
		w.obey()
		if e, _ := w.core.Group(full); e.Refusal == nil || e.Window != 0 {
			t.Errorf("where nothing is left: %+v", e.Summary)
		}
		w.ask(Release{Group: 5})
		w.obey()
		if e, _ := w.core.Group(full); e.Window != 8 || w.fault != nil {
			t.Errorf("when one has gone: %+v, %v", e, w.fault)
		}
	}
}

// TestQuotas bounds what one group, and what all together may have.
func TestQuotas(t *testing.T) {
	w := crowd(1<<15, 3, Config{GroupSlots: 200, SwitchSlots: 300}, func(int) uint32 { return 256 })
	w.obey()
	if got := w.windows(); !slices.Equal(got, []uint32{64, 32, 32}) {
		t.Errorf("of 300 slots, at most 200 each, three groups have windows of %v", got)
	}
	for _, s := range w.core.Switches() {
		if s.Used > 300 || s.Most != 300 || s.Wanted != 3*128 {
			t.Errorf("%+v", s)
		}
	}
	for i := range 16 {
		w.watchAll(w.create(fmt.Sprint("later", i), 256, 0, 2).Group)
		w.obey()
	}
	e, _ := w.core.Group(19)
	if got := fmt.Sprint(e.Refusal); w.fault != nil || got == "<nil>" {
		t.Errorf("beyond the quota: %v, %v", got, w.fault)
	}
}

// TestResizesAreBounded has many groups want more at once.
func TestResizesAreBounded(t *testing.T) {
	w := crowd(1<<15, 40, Config{MaxResizes: 4}, func(int) uint32 { return 256 })
	most := 0
	w.watcher = func(*Output) {
		n := 0
		for _, g := range w.core.groups {
			if g.building != nil && g.active != nil {
				n++
			}
		}
		most = max(most, n)
	}
	w.obey()
	if most != 4 || w.core.Resizes().Grown < 40 || w.fault != nil {
		t.Errorf("%d at once, %+v, %v", most, w.core.Resizes(), w.fault)
	}
}

// TestTreesAreBuiltSomeAtATime has more groups come at once than switches are to be
// asked for: all have a tree in the end.
func TestTreesAreBuiltSomeAtATime(t *testing.T) {
	w := newWorld(must(topology.LeafSpine(2, 2, 1)), Config{MaxBuilding: 3}, 1<<15)
	for i := range w.agents {
		w.connect(i)
	}
	most := 0
	w.watcher = func(*Output) {
		n := 0
		for _, g := range w.core.groups {
			if g.plan != 0 || g.building != nil {
				n++
			}
		}
		most = max(most, n)
	}
	for i := range 20 {
		w.watchAll(w.create(fmt.Sprint("g", i), 8, 0, 2).Group)
	}
	w.ask(Release{Group: 7})
	w.run(time.Second)
	for i, window := range w.windows() {
		if window != 8 && w.core.order[i] != 7 {
			t.Errorf("group %d has no tree", w.core.order[i])
		}
	}
	if most != 3 || w.core.building != 0 || w.core.turns.Len() != 0 || w.fault != nil {
		t.Errorf("%d at once; in the end %d, and %d wait; %v", most, w.core.building, w.core.turns.Len(), w.fault)
	}
}

// TestSharesOfWhoIsNotSteady: who could give back, but is not in its newest epoch yet,
// does so once it is, though nothing of its own is to change.
func TestSharesOfWhoIsNotSteady(t *testing.T) {
	w := crowd(44, 2, smallConfig(), func(int) uint32 { return 64 })
	w.demand(1, 16)
	w.demand(2, 4)
	w.obey()
	if got := w.windows(); !slices.Equal(got, []uint32{16, 4}) {
		t.Fatalf("windows %v", got)
	}
	w.members[[2]uint32{1, 1}].watching = false
	w.step(Unwatch{Group: 1, Rank: 1, Stream: w.members[[2]uint32{1, 1}].stream})
	w.demand(2, 8)
	w.run(10 * time.Second)
	if got := w.windows(); !slices.Equal(got, []uint32{16, 4}) {
		t.Fatalf("windows %v while a member is away", got)
	}
	w.watch(1, 1)
	w.obey()
	if got := w.windows(); !slices.Equal(got, []uint32{8, 8}) || w.fault != nil {
		t.Errorf("windows %v, %v", got, w.fault)
	}
}

// TestHiddenSlots has a switch without room that nobody accounts for: what an earlier
// manager left there, say. The group has its tree once that is gone, though nothing of
// what the manager knows changes.
func TestHiddenSlots(t *testing.T) {
	w := connected(8)
	for i, a := range w.agents {
		w.stepAgent(i, agent.Prepare{Incarnation: a.lives, Group: 99, Epoch: 2, Children: 2, Window: 4, ChunkBytes: 1024, Lease: time.Minute})
		a.answers = nil
		w.bind(i)
		a.answers = nil
	}
	w.watchAll(w.create("g", 16, 0, 2, 4).Group)
	w.run(30 * time.Second)
	w.want(t, Refusing, 0)
	w.run(5 * time.Minute)
	if e, _ := w.core.Group(1); e.State != Active || w.fault != nil {
		t.Errorf("%v: %v, %v", e.State, e.Refusal, w.fault)
	}
}
