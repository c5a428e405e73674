package p4rt

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/p4"
)

// drawState draws a normal state of the toy program, from few keys so that two
// of them have much in common.
func drawState(t *rapid.T, s *Schema) p4.Program {
	var w p4.Program
	ports := rapid.ByteRange(1, 3)
	for _, prefix := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{
		"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "10.0.0.1/32", "0.0.0.0/1",
	}), rapid.ID[string]).Draw(t, "prefixes") {
		w.Entries = append(w.Entries, route(prefix, ports.Draw(t, "port")))
	}
	for _, label := range rapid.SliceOfDistinct(rapid.ByteRange(0, 5), rapid.ID[byte]).Draw(t, "labels") {
		w.Entries = append(w.Entries, pair(label), guard(label, rapid.IntRange(1, 2).Draw(t, "priority")))
	}
	for _, id := range rapid.SliceOfDistinct(rapid.Uint32Range(1, 4), rapid.ID[uint32]).Draw(t, "groups") {
		g := p4.Group{ID: id}
		for _, port := range rapid.SliceOfDistinct(rapid.Uint16Range(1, 3), rapid.ID[uint16]).Draw(t, "replicas") {
			g.Replicas = append(g.Replicas, p4.Replica{Port: port, Instance: port})
		}
		w.Groups = append(w.Groups, g)
	}
	n, err := s.Normal(w)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A plain model of a target: it has entries and groups by key, and refuses what
// is there already, or is not.
type model struct {
	entries map[string]p4.Entry
	groups  map[uint32]p4.Group
}

func modelOf(p p4.Program) model {
	m := model{make(map[string]p4.Entry), make(map[uint32]p4.Group)}
	for _, e := range p.Entries {
		m.entries[entryKey(&e)] = e
	}
	for _, g := range p.Groups {
		m.groups[g.ID] = g
	}
	return m
}

func (m model) apply(t *rapid.T, u Update) {
	var there bool
	if u.Entry != nil {
		_, there = m.entries[entryKey(u.Entry)]
	} else {
		_, there = m.groups[u.Group.ID]
	}
	if there == (u.Op == Insert) {
		t.Fatalf("%v of what is there: %v", u.Op, there)
	}
	switch {
	case u.Op == Delete && u.Entry != nil:
		delete(m.entries, entryKey(u.Entry))
	case u.Op == Delete:
		delete(m.groups, u.Group.ID)
	case u.Entry != nil:
		m.entries[entryKey(u.Entry)] = *u.Entry
	default:
		m.groups[u.Group.ID] = *u.Group
	}
}

func (m model) equal(o model) bool {
	return maps.EqualFunc(m.entries, o.entries, func(a, b p4.Entry) bool { return sameAction(&a, &b) }) &&
		maps.EqualFunc(m.groups, o.groups, func(a, b p4.Group) bool { return slices.Equal(a.Replicas, b.Replicas) })
}

// What Diff reports makes one state of the other, with no more updates than
// there are differences, in an order that can be written, whatever the target
// makes of the order within a step.
func TestDiff(t *testing.T) {
	s := toySchema(t)
	rapid.Check(t, func(t *rapid.T) {
		have, want := drawState(t, s), drawState(t, s)
		updates := s.Diff(have, want)
		m, goal := modelOf(have), modelOf(want)
		checkOrder(t, s, updates)
		checkOrder(t, s, s.arrange(rapid.Permutation(updates).Draw(t, "another order")))
		for _, step := range steps(updates) {
			for _, u := range rapid.Permutation(step).Draw(t, "order of the target") {
				m.apply(t, u)
			}
		}
		if !m.equal(goal) {
			t.Fatalf("have %v\nwant %v\ngot  %v", have, want, m)
		}
		if n := differences(modelOf(have), goal); n != len(updates) {
			t.Fatalf("%d updates for %d differences", len(updates), n)
		}
	})
}

// differences counts the keys that two models differ in.
func differences(a, b model) int {
	n := 0
	for key, e := range a.entries {
		if o, there := b.entries[key]; !there || !sameAction(&e, &o) {
			n++
		}
	}
	for key := range b.entries {
		if _, there := a.entries[key]; !there {
			n++
		}
	}
	for id, g := range a.groups {
		if o, there := b.groups[id]; !there || !slices.Equal(g.Replicas, o.Replicas) {
			n++
		}
	}
	for id := range b.groups {
		if _, there := a.groups[id]; !there {
			n++
		}
	}
	return n
}

// checkOrder checks that nothing is written before what it may refer to, or
// outlives it: entries of later tables refer to those of earlier ones, and all
// to groups.
func checkOrder(t *rapid.T, s *Schema, updates []Update) {
	place := func(u Update) int { // groups come before all tables
		if u.Entry == nil {
			return -1
		}
		return s.tables[u.Entry.Table].rank
	}
	for i, later := range updates {
		for _, earlier := range updates[:i] {
			switch {
			case earlier.Op == Delete && later.Op == Delete && place(earlier) < place(later):
				t.Fatalf("%s, and only then %s", s.words(earlier), s.words(later))
			case earlier.Op != Delete && later.Op != Delete && later.Group != nil && earlier.Group == nil:
				t.Fatalf("%s, and only then %s", s.words(earlier), s.words(later))
			case earlier.Op == Delete && earlier.Group != nil && (later.Entry != nil || later.Op != Delete):
				t.Fatalf("%s, which may be in use, and only then %s", s.words(earlier), s.words(later))
			case earlier.Op != Delete && later.Op == Delete && later.Entry != nil:
				t.Fatalf("%s before %s: there may be no room", s.words(earlier), s.words(later))
			}
		}
	}
}

func TestSteps(t *testing.T) {
	several := func(op Op, table uint32, n int) []Update {
		return slices.Repeat([]Update{{Op: op, Entry: &p4.Entry{Table: table}}}, n)
	}
	groups := []Update{{Op: Insert, Group: new(p4.Group)}, {Op: Modify, Group: new(p4.Group)}}
	for name, test := range map[string]struct {
		updates []Update
		want    []int // updates of each step
	}{
		"nothing":                 {nil, nil},
		"a bounded many":          {several(Insert, pairs, 2*stepLength+1), []int{stepLength, stepLength, 1}},
		"a table after the other": {slices.Concat(several(Insert, pairs, 2), several(Insert, routes, 3)), []int{2, 3}},
		"room before what takes it": {slices.Concat(several(Delete, pairs, 2), several(Insert, pairs, 2), several(Modify, pairs, 1)),
			[]int{2, 3}},
		"groups apart": {slices.Concat(several(Delete, pairs, 1), groups, several(Insert, pairs, 1)), []int{1, 2, 1}},
	} {
		var got []int
		for _, step := range steps(test.updates) {
			got = append(got, len(step))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: steps of %v updates, want %v", name, got, test.want)
		}
	}
}
