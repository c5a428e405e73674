package manager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// stripe returns the place of a stripe.
func stripe(index, count int) Bundle {
	return Bundle{Name: "job", Kind: Stripes, Index: index, Count: count}
}

// withStripes returns a world whose groups 1 to n are the stripes of hosts 0, 2 and 4,
// and have trees.
func withStripes(t *testing.T, slots, n int) *world {
	t.Helper()
	w := connected(slots)
	for i := range n {
		w.watchAll(w.createIn(stripe(i, n), pathsel.Purpose{}, fmt.Sprint("job/", i), 16, 0, 2, 4).Group)
	}
	w.settle()
	for id := range uint32(n) {
		if e, _ := w.core.Group(id + 1); e.State != Active {
			t.Fatalf("stripe %d is %v: %v; %v", id, e.State, e.Refusal, w.fault)
		}
	}
	return w
}

// roots returns the roots of the active trees, by group.
func (w *world) roots() (names []string) {
	for _, id := range w.core.order {
		if t := w.core.groups[id].active; t != nil {
			names = append(names, w.graph.Name(t.plan.Tree.Root()))
		}
	}
	return names
}

func TestBundleIsChecked(t *testing.T) {
	in := func(b Bundle, name string, hosts ...int) Create {
		c := Create{Bundle: b, Name: name, ChunkBytes: 1024, Window: 16, Secret: [32]byte{1}}
		for _, h := range hosts {
			c.Members = append(c.Members, fmt.Sprint("h", h))
		}
		return c
	}
	part := func(index int) Bundle { return Bundle{Name: "halves", Kind: Parts, Index: index, Count: 2} }
	w := connected(1000)
	for _, test := range []struct {
		create Create
		want   error
	}{
		{in(stripe(1, 3), "a", 0, 2, 4), nil}, // in any order
		{in(stripe(0, 3), "b", 0, 2, 4), nil},
		{in(stripe(1, 3), "a", 0, 2, 4), nil}, // it is there
		{in(stripe(1, 3), "c", 0, 2, 4), ErrBundle},
		{in(stripe(2, 3), "a", 0, 2, 4), ErrExists},
		{in(stripe(2, 4), "c", 0, 2, 4), ErrBundle},
		{in(stripe(2, 3), "c", 0, 4, 2), ErrBundle},
		{in(Bundle{Name: "job", Kind: Parts, Index: 2, Count: 3}, "c", 1, 3), ErrBundle},
		{in(stripe(3, 3), "c", 0, 2, 4), ErrRequest},
		{in(stripe(-1, 3), "c", 0, 2, 4), ErrRequest},
		{in(stripe(0, 1), "c", 0, 2, 4), ErrRequest},
		{in(stripe(0, MaxBundle+1), "c", 0, 2, 4), ErrRequest},
		{in(Bundle{Kind: Stripes, Count: 2}, "c", 0, 2, 4), ErrRequest},
		{in(Bundle{Name: "job"}, "c", 0, 2, 4), ErrRequest},
		{in(Bundle{Name: "job", Kind: 3, Count: 3}, "c", 0, 2, 4), ErrRequest},
		{in(part(0), "p", 0, 1), nil},
		{in(part(1), "q", 2, 1), ErrBundle},
		{in(part(1), "q", 2, 3), nil},
	} {
		if r := w.ask(test.create); !errors.Is(r.Err, test.want) || test.want == nil && r.Err != nil {
			t.Errorf("%v, %q: %v, want %v", test.create.Bundle, test.create.Name, r.Err, test.want)
		}
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
}

// TestStripesAreApart plans as many stripes as there are spines, and one more.
func TestStripesAreApart(t *testing.T) {
	w := withStripes(t, 1000, 2)
	if r := w.roots(); !slices.Equal(r, []string{"spine-0", "spine-1"}) && !slices.Equal(r, []string{"spine-1", "spine-0"}) {
		t.Errorf("the roots are %v", r)
	}
	w = withStripes(t, 1000, 3)
	if g := w.core.groups[3]; g.active.plan.Shared != 3 || !w.core.crowded(g) {
		t.Errorf("the third of two spines shares %d links", g.active.plan.Shared)
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
}

// TestStripesCarryTheirShare: a purpose is the communicator's, and each stripe has its
// share of the bytes.
func TestStripesCarryTheirShare(t *testing.T) {
	w := connected(1000)
	purpose := pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 1001}
	w.watchAll(w.createIn(stripe(0, 2), purpose, "a", 16, 0, 2).Group)
	if got := w.plans[0].Request.Purpose; got.Bytes != 501 || got.Collective != pathsel.Allreduce {
		t.Errorf("it is planned for %+v", got)
	}
	if e, _ := w.core.Group(1); e.Purpose != purpose || e.Bundle != stripe(0, 2) {
		t.Errorf("explained as %+v, %v", e.Purpose, e.Bundle)
	}
}

// TestOneStripeEnds: its tree goes, the others stay, and another may take its place.
func TestOneStripeEnds(t *testing.T) {
	w := withStripes(t, 1000, 2)
	before := w.roots()
	w.ask(Release{Group: 2})
	w.run(time.Minute)
	if e, _ := w.core.Group(1); e.State != Active || len(e.Sisters) > 0 || w.core.groups[2] != nil {
		t.Errorf("the other is %v beside %v", e.State, e.Sisters)
	}
	r := w.createIn(stripe(1, 2), pathsel.Purpose{}, "again", 16, 0, 2, 4)
	w.watchAll(r.Group)
	w.settle()
	if after := w.roots(); r.Err != nil || !slices.Equal(after, before) {
		t.Errorf("%v; roots %v, before %v", r.Err, after, before)
	}
	// The first takes the others along, also those that were never watched.
	w.ask(Release{Group: 1})
	w.run(time.Minute)
	if left := w.core.Groups(); len(left) > 0 || len(w.core.bundles) > 0 {
		t.Errorf("left are %+v", left)
	}
	if w.fault != nil {
		t.Error(w.fault)
	}
}

// TestStripeWaitsForItsSister: while a plan of one is out, none is asked for another;
// also if the one is released meanwhile.
func TestStripeWaitsForItsSister(t *testing.T) {
	for name, next := range map[string]func(*world){
		"planned":  func(w *world) { w.plan() },
		"released": func(w *world) { w.ask(Release{Group: 2}) }, // whose plan is not made any more
	} {
		t.Run(name, func(t *testing.T) {
			w := connected(1000)
			for i := range 2 {
				w.createIn(stripe(i, 2), pathsel.Purpose{}, fmt.Sprint(i), 16, 0, 2, 4)
			}
			w.watchAll(2)
			w.watchAll(1)
			if len(w.plans) != 1 || w.plans[0].Group != 2 {
				t.Fatalf("asked for %+v", w.plans)
			}
			next(w)
			if len(w.plans) != 1 || w.plans[0].Group != 1 {
				t.Errorf("asked for %+v", w.plans)
			}
			if err := w.finish(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReleasedNameIsFree: a group that is going does not take its name from the one
// that has it now, when the manager is restarted; nor its place in the bundle.
func TestReleasedNameIsFree(t *testing.T) {
	w := withStripes(t, 1000, 2)
	w.ask(Release{Group: 1})
	r := w.createIn(stripe(1, 2), pathsel.Purpose{}, "job/1", 16, 0, 2, 4)
	if r.Err != nil || r.Group != 3 {
		t.Fatal(r)
	}
	w.killManager()
	if id, ok := w.core.Find("job/1"); !ok || id != 3 {
		t.Errorf("the name is that of group %d, %v", id, ok)
	}
	if r := w.createIn(stripe(1, 2), pathsel.Purpose{}, "another", 16, 0, 2, 4); !errors.Is(r.Err, ErrBundle) {
		t.Error(r.Err)
	}
}

func TestRestoreRefusesABundleThatIsNone(t *testing.T) {
	spec := func(group uint32, b Bundle) Record {
		return Record{Kind: SpecRecord, Group: group, Seq: uint64(group), Spec: &Spec{Name: fmt.Sprint(group), Members: []string{"h0", "h2"}, Bundle: b}}
	}
	for _, records := range [][]Record{
		{spec(1, Bundle{Name: "job", Kind: Stripes, Index: 2, Count: 2})},
		{spec(1, stripe(0, 2)), spec(2, stripe(2, 3))},
		{spec(1, stripe(0, 2)), spec(2, stripe(0, 2))},
	} {
		if _, err := Restore(smallFabric(), Config{}, records); !errors.Is(err, ErrRequest) && !errors.Is(err, ErrBundle) {
			t.Errorf("%+v: %v", records[0].Spec.Bundle, err)
		}
	}
}

// draft asks which groups a communicator of these hosts could have.
func (w *world) draft(b Bundle, slots uint32, hosts ...int) (GroupPlan, error) {
	in := Create{Bundle: b, ChunkBytes: 1024, Window: slots / 2, Functions: topology.AllFunctions(), Types: topology.AllTypes()}
	for _, h := range hosts {
		in.Members = append(in.Members, w.graph.Name(topology.NodeID(h)))
	}
	d, err := w.core.Draft(in)
	if err != nil {
		return GroupPlan{}, err
	}
	return d.Choose(w.planner, w.overlay.View(), w.load)
}

func TestDraft(t *testing.T) {
	everyone := []int{0, 1, 2, 3, 4, 5}
	parts := func(n int) Bundle { return Bundle{Kind: Parts, Count: n} }
	for name, test := range map[string]struct {
		prepare func(*world)
		slots   int // of a switch
		bundle  Bundle
		hosts   []int
		want    int
		err     error
	}{
		"two stripes":           {bundle: stripe(0, 2), hosts: everyone, want: 2},
		"more than there are":   {bundle: stripe(0, 4), hosts: everyone, want: 2},
		"one switch":            {bundle: stripe(0, 2), hosts: []int{0, 1}, want: 1},
		"one spine":             {prepare: func(w *world) { w.setNode(w.node("spine-0"), false) }, bundle: stripe(0, 2), hosts: everyone, want: 1},
		"one spine is drained":  {prepare: func(w *world) { w.ask(Drain{Switch: "spine-0", On: true}) }, bundle: stripe(0, 2), hosts: everyone, want: 1},
		"few slots":             {slots: 24, bundle: stripe(0, 2), hosts: everyone, want: 2}, // 32 are asked for, 8 will do
		"slots for one":         {slots: 7, bundle: stripe(0, 2), hosts: everyone, want: 1},
		"no tree":               {prepare: func(w *world) { w.setNode(w.node("leaf-1"), false) }, bundle: stripe(0, 2), hosts: everyone, err: pathsel.ErrNoTree},
		"three parts":           {bundle: parts(3), hosts: everyone, want: 3},
		"parts of two switches": {bundle: parts(3), hosts: []int{0, 1, 2, 3}, want: 2},
		"one host":              {bundle: stripe(0, 2), hosts: []int{0}, err: ErrTooFew},
		"no bundle":             {bundle: Bundle{}, hosts: everyone, err: ErrRequest},
		"one stripe":            {bundle: stripe(0, 1), hosts: everyone, err: ErrRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if test.slots == 0 {
				test.slots = 1000
			}
			w := connected(test.slots)
			if test.prepare != nil {
				test.prepare(w)
			}
			use := [2]int{w.load.SwitchTrees(w.node("leaf-0")), w.load.UsedSlots(w.node("leaf-0"))}
			p, err := w.draft(test.bundle, 32, test.hosts...)
			if !errors.Is(err, test.err) || test.err == nil && err != nil || len(p.Groups) != test.want {
				t.Fatalf("%d groups, fewer since %v; %v", len(p.Groups), p.Fewer, err)
			}
			if err == nil && errors.Is(p.Fewer, ErrFewer) != (test.want < test.bundle.Count) {
				t.Errorf("fewer since %v", p.Fewer)
			}
			var ranks []int
			for _, part := range p.Groups {
				ranks = append(ranks, part.Ranks...)
			}
			slices.Sort(ranks)
			if test.bundle.Kind == Parts && !slices.Equal(ranks, []int{0, 1, 2, 3, 4, 5}[:len(test.hosts)]) || test.bundle.Kind == Stripes && ranks != nil {
				t.Errorf("the groups have ranks %v", ranks)
			}
			if len(w.core.groups) > 0 || use != [2]int{w.load.SwitchTrees(w.node("leaf-0")), w.load.UsedSlots(w.node("leaf-0"))} {
				t.Error("something was made")
			}
		})
	}
}

// TestDraftIsRefused: the refusal names what is missing, and where.
func TestDraftIsRefused(t *testing.T) {
	for _, test := range []struct {
		slots   int
		prepare func(*world)
		want    string
	}{
		{3, func(*world) {}, "slots on switch leaf-0: needed 4, free 3"},
		{1000, func(w *world) { w.ask(Drain{Switch: "leaf-1", On: true}) }, "reservations (drained) on switch leaf-1"},
	} {
		w := connected(test.slots)
		test.prepare(w)
		in := Create{Bundle: stripe(0, 2), ChunkBytes: 1024, Window: 16, Members: []string{"h0", "h2"}}
		d, err := w.core.Draft(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Choose(w.planner, w.overlay.View(), w.load)
		var refusal *Refusal
		if err = w.core.Refused(&d, err); !errors.As(err, &refusal) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// TestDraftKeepsIndexes: a stripe that stands is at its index, beside one that could
// be made anew.
func TestDraftKeepsIndexes(t *testing.T) {
	w := connected(1000)
	w.watchAll(w.createIn(stripe(1, 2), pathsel.Purpose{}, "job/1", 16, 0, 2, 4).Group)
	w.settle()
	stands := w.core.groups[1].active.plan.Tree.Root()
	p, err := w.draft(stripe(0, 2), 32, 0, 2, 4)
	if err != nil || len(p.Groups) != 2 || p.Groups[1].Plan.Tree.Root() != stands || p.Groups[0].Plan.Shared > 0 {
		t.Errorf("%+v; %v; stripe 1 is on %v", p.Groups, err, stands)
	}
}

// TestDraftCountsStripesThatStand: the tree of a stripe that is there is the first one.
func TestDraftCountsStripesThatStand(t *testing.T) {
	w := connected(1000)
	w.watchAll(w.createIn(stripe(0, 3), pathsel.Purpose{}, "job", 16, 0, 2, 4).Group)
	w.settle()
	p, err := w.draft(stripe(0, 3), 32, 0, 2, 4)
	if err != nil || len(p.Groups) != 2 || p.Groups[0].Plan.Tree.Root() != w.core.groups[1].active.plan.Tree.Root() || p.Groups[1].Plan.Shared > 0 {
		t.Errorf("%d groups; %v", len(p.Groups), err)
	}
	w = withStripes(t, 1000, 2)
	if p, err = w.draft(stripe(0, 2), 32, 0, 2, 4); err != nil || len(p.Groups) != 2 || p.Fewer != nil {
		t.Errorf("all stand: %d groups, %v; %v", len(p.Groups), p.Fewer, err)
	}
}
