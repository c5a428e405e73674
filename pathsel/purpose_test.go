package pathsel

import "testing"

func TestPurposeInWords(t *testing.T) {
	for _, test := range []struct {
		purpose Purpose
		want    string
	}{
		{Purpose{}, "any collective"},
		{Purpose{Collective: Allreduce, Bytes: 4096}, "allreduce of 4096 bytes"},
		{Purpose{Collective: Barrier, Criterion: LeastLoad}, "barrier, by load"},
		{Purpose{Bytes: 1, Weights: Weights{FewestHops: 1, LeastLoad: 2.5}}, "any collective of 1 bytes, by hops=1,load=2.5"},
	} {
		if got := test.purpose.Words(); got != test.want {
			t.Errorf("%+v reads %q, want %q", test.purpose, got, test.want)
		}
		if w := test.purpose.Weights; w.given() {
			if again, err := ParseWeights(w.String()); again != w || err != nil {
				t.Errorf("%v became %v, %v", w, again, err)
			}
		}
	}
}

// TestSetSlots: slots that are reported count as those that trees were added with.
func TestSetSlots(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,2")
	req := usual(g.AllHosts())
	req.Slots = 500
	plan, err := planner(t, g).Plan(g.View(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	added, reported := NewLoad(g), NewLoad(g)
	added.priced()
	reported.priced()
	added.Add(plan.Tree, req.Slots)
	reported.Add(plan.Tree, 0)
	for _, v := range plan.Tree.Vertices {
		reported.SetSlots(v.Switch, 7)
		reported.SetSlots(v.Switch, req.Slots)
	}
	for i := range g.Switches() {
		n := g.Switch(i)
		if added.UsedSlots(n) != reported.UsedSlots(n) || added.switchPrice(g.View(), n, 10, 1) != reported.switchPrice(g.View(), n, 10, 1) {
			t.Errorf("%s: %d slots at %v, want %d at %v", g.Name(n), reported.UsedSlots(n), reported.switchPrice(g.View(), n, 10, 1), added.UsedSlots(n), added.switchPrice(g.View(), n, 10, 1))
		}
	}
}
