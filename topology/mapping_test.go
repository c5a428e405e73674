package topology

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawing is a fabric as somebody draws it: by names, without numbers.
type drawing struct {
	hosts, switches []string
	cables          map[string]cable // by LinkName, ends in order of their names
}

type cable struct {
	ends [2]string
	port [2]Port
	spec LinkSpec
	addr [2]netip.Addr
}

func (c cable) name() string {
	a, b := fmt.Sprintf("%s:%d", c.ends[0], c.port[0]), fmt.Sprintf("%s:%d", c.ends[1], c.port[1])
	return min(a, b) + "--" + max(a, b)
}

func (d *drawing) clone() *drawing {
	return &drawing{slices.Clone(d.hosts), slices.Clone(d.switches), maps.Clone(d.cables)}
}

// draw lets somebody change a few things.
func (d *drawing) edit(t *rapid.T) {
	for range rapid.IntRange(0, 4).Draw(t, "edits") {
		switch rapid.IntRange(0, 5).Draw(t, "edit") {
		case 0:
			d.hosts = toggle(d.hosts, rapid.SampledFrom([]string{"a", "b", "c", "d", "both"}).Draw(t, "host"), d.switches)
		case 1:
			d.switches = toggle(d.switches, rapid.SampledFrom([]string{"s", "t", "u", "v", "both"}).Draw(t, "switch"), d.hosts)
		default:
			if len(d.switches) == 0 {
				continue
			}
			x := rapid.SampledFrom(d.switches).Draw(t, "x")
			y := rapid.SampledFrom(slices.Concat(d.hosts, d.switches)).Draw(t, "y")
			c := cable{ends: [2]string{x, y}, spec: DefaultLink()}
			for i := range c.port {
				c.port[i] = Port(rapid.IntRange(1, 3).Draw(t, "port"))
			}
			c.spec.Latency = time.Duration(rapid.IntRange(1, 2).Draw(t, "latency"))
			if rapid.Bool().Draw(t, "addressed") {
				c.addr = addressesOf(c)
			}
			if _, there := d.cables[c.name()]; there {
				delete(d.cables, c.name())
			} else if x != y {
				d.cables[c.name()] = c
			}
		}
	}
	// What hangs loose, or is on a port with another, goes.
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(d.cables)) {
		c := d.cables[name]
		loose := false
		for i, end := range c.ends {
			key := fmt.Sprint(end, ":", c.port[i])
			loose = loose || taken[key] || !slices.Contains(d.hosts, end) && !slices.Contains(d.switches, end)
		}
		if loose || slices.Contains(d.hosts, c.ends[0]) && slices.Contains(d.hosts, c.ends[1]) {
			delete(d.cables, name)
			continue
		}
		for i, end := range c.ends {
			taken[fmt.Sprint(end, ":", c.port[i])] = true
		}
	}
}

// addressesOf gives each end of a cable an address of its own.
func addressesOf(c cable) (pair [2]netip.Addr) {
	for i, end := range c.ends {
		pair[i] = netip.AddrFrom4([4]byte{10, end[0], byte(c.port[i]), byte(len(end))})
	}
	return pair
}

func toggle(list []string, name string, others []string) []string {
	if i := slices.Index(list, name); i >= 0 {
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	if slices.Contains(others, name) {
		return list
	}
	return append(slices.Clone(list), name)
}

// build makes a graph, everything in any order.
func (d *drawing) build(t *rapid.T) *Graph {
	var b Builder
	refs := map[string]Ref{}
	for _, h := range rapid.Permutation(d.hosts).Draw(t, "hosts") {
		refs[h] = must(b.AddHost(h))
	}
	for _, s := range rapid.Permutation(d.switches).Draw(t, "switches") {
		refs[s] = must(b.AddSwitch(s, DefaultCapability()))
	}
	for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(d.cables))).Draw(t, "cables") {
		c, x := d.cables[name], rapid.IntRange(0, 1).Draw(t, "turned")
		y := 1 - x
		l := must(b.Connect(refs[c.ends[x]], c.port[x], refs[c.ends[y]], c.port[y], c.spec))
		if c.addr[0].IsValid() {
			if err := b.SetAddresses(l, c.addr[x], c.addr[y]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return must(b.Build())
}

// cableOf returns the drawn name of a link.
func cableOf(g *Graph, l LinkID) string {
	link := g.Link(l)
	return cable{ends: [2]string{g.Name(link.Ends[0].Node), g.Name(link.Ends[1].Node)}, port: [2]Port{link.Ends[0].Port, link.Ends[1].Port}}.name()
}

// TestMappingAgainstNames edits a drawing again and again, and holds mappings
// between all graphs of it against the names.
func TestMappingAgainstNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &drawing{cables: map[string]cable{}}
		drawings, graphs := []*drawing{}, []*Graph{}
		for range rapid.IntRange(1, 4).Draw(t, "graphs") {
			d = d.clone()
			d.edit(t)
			drawings, graphs = append(drawings, d), append(graphs, d.build(t))
		}
		for i, from := range graphs {
			for j, to := range graphs {
				checkMapping(t, NewMapping(from, to), drawings[i], drawings[j])
				checkCompare(t, from, to, drawings[i], drawings[j])
				for _, last := range graphs {
					checkComposition(t, NewMapping(from, to), NewMapping(to, last), NewMapping(from, last))
				}
			}
		}
	})
}

func checkMapping(t *rapid.T, m Mapping, from, to *drawing) {
	for n := range NodeID(m.From().Nodes()) {
		there := to.switches
		if m.From().IsHost(n) {
			there = to.hosts
		}
		name := m.From().Name(n)
		at, ok := m.At(n)
		if ok != slices.Contains(there, name) || ok && (m.To().Name(at) != name || m.To().Kind(at) != m.From().Kind(n)) || !ok && at != NoNode {
			t.Fatalf("%s is mapped to %d, %v", name, at, ok)
		}
		if back, _ := m.Inverse().At(at); ok && back != n {
			t.Fatalf("%s is mapped back to %d", name, back)
		}
		if m.From() == m.To() && at != n {
			t.Fatalf("the identity maps %d to %d", n, at)
		}
	}
	for l := range LinkID(m.From().Links()) {
		name := cableOf(m.From(), l)
		c, there := to.cables[name]
		kinds := there
		for _, end := range c.ends {
			kinds = kinds && slices.Contains(from.hosts, end) == slices.Contains(to.hosts, end)
		}
		at, ok := m.Link(l)
		if ok != kinds || ok && cableOf(m.To(), at) != name || !ok && at != NoLink {
			t.Fatalf("%s is mapped to %d, %v", name, at, ok)
		}
		if named, found := m.To().LookupLink(m.From().LinkName(l)); found != there || ok && named != at {
			t.Fatalf("%s is found at %d, %v", m.From().LinkName(l), named, found)
		}
	}
	if at, ok := m.At(NoNode); ok || at != NoNode {
		t.Fatal("no node is mapped")
	}
	if at, ok := m.Link(NoLink); ok || at != NoLink {
		t.Fatal("no link is mapped")
	}
}

// checkComposition expects that a mapping over a third graph is the direct one
// wherever the third has what is mapped.
func checkComposition(t *rapid.T, first, second, direct Mapping) {
	for n := range NodeID(first.From().Nodes()) {
		if via, ok := first.At(n); ok {
			a, okA := second.At(via)
			if b, okB := direct.At(n); a != b || okA != okB {
				t.Fatalf("node %d is at %d, by the other way at %d", n, b, a)
			}
		}
	}
	for l := range LinkID(first.From().Links()) {
		if via, ok := first.Link(l); ok {
			a, okA := second.Link(via)
			if b, okB := direct.Link(l); a != b || okA != okB {
				t.Fatalf("link %d is at %d, by the other way at %d", l, b, a)
			}
		}
	}
}

// checkCompare counts what should differ.
func checkCompare(t *rapid.T, from, to *Graph, was, is *drawing) {
	want := map[string]int{}
	for _, lists := range [][3]any{{"host", was.hosts, is.hosts}, {"switch", was.switches, is.switches}} {
		before, after := lists[1].([]string), lists[2].([]string)
		for _, name := range before {
			if !slices.Contains(after, name) {
				want[fmt.Sprint(lists[0], " ", name, " removed")]++
			}
		}
		for _, name := range after {
			if !slices.Contains(before, name) {
				want[fmt.Sprint(lists[0], " ", name, " added")]++
			}
		}
	}
	got, links := map[string]int{}, map[string]int{}
	for _, d := range Compare(from, to) {
		if d.What == "link" {
			links[d.Kind]++
		} else {
			got[d.String()]++
		}
		if (d.Kind == Changed || d.Kind == Moved) != (d.Was != d.Is) {
			t.Fatalf("%v", d)
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("differences %v, want %v", got, want)
	}
	m, removed, added, changed := NewMapping(from, to), 0, 0, 0
	for l := range LinkID(from.Links()) {
		switch _, ok := m.Link(l); {
		case !ok:
			removed++
		case was.cables[cableOf(from, l)].spec != is.cables[cableOf(from, l)].spec,
			was.cables[cableOf(from, l)].addr[0].IsValid() != is.cables[cableOf(from, l)].addr[0].IsValid():
			changed++
		}
	}
	for l := range LinkID(to.Links()) {
		if _, ok := m.Inverse().Link(l); !ok {
			added++
		}
	}
	if links[Removed]+links[Moved] != removed || links[Added]+links[Moved] != added || links[Changed] != changed {
		t.Fatalf("of links %v, want %d removed, %d added, %d changed", links, removed, added, changed)
	}
}

// TestOverlayIsCarried holds an overlay that was carried to another graph against a
// plain copy by name.
func TestOverlayIsCarried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &drawing{cables: map[string]cable{}}
		for len(d.hosts) == 0 || len(d.switches) == 0 || len(d.cables) == 0 {
			d.edit(t)
		}
		from := d.build(t)
		o, state := NewOverlay(from), stateOf(from)
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			c := drawChange(t, from)
			o, state = must(o.With(c)), state.clone()
			state.apply(c)
		}
		next := d.clone()
		next.edit(t)
		to := next.build(t)
		m := NewMapping(from, to)
		want := stateOf(to)
		for n := range NodeID(from.Nodes()) {
			if at, ok := m.At(n); ok {
				want.nodeDown[at], want.nodeUse[at] = state.nodeDown[n], state.nodeUse[n]
				if from.IsSwitch(n) {
					want.caps[at] = state.caps[n]
				}
			}
		}
		for l := range LinkID(from.Links()) {
			if at, ok := m.Link(l); ok {
				want.linkDown[at], want.linkUse[at] = state.linkDown[l], state.linkUse[l]
			}
		}
		carried := must(m.Overlay(o))
		want.check(t, carried.View())
		if carried.Version() != o.Version()+1 {
			t.Fatalf("version %d after %d", carried.Version(), o.Version())
		}
	})
}

func TestOverlayOfAnotherGraph(t *testing.T) {
	g := generated(t, "fat-tree:4")
	if o, err := NewMapping(g, g).Overlay(NewOverlay(generated(t, "fat-tree:4"))); !errors.Is(err, ErrOtherGraph) || o != nil {
		t.Errorf("%v, %v", o, err)
	}
}

func TestCompareNames(t *testing.T) {
	read := func(text string) *Graph { return must(Read(strings.NewReader(text), "file")) }
	was := read("version: 1\nname: lab\nhosts: [h0, h1]\n" + `switches: [{name: a}, {name: b}, {name: c, slots: 100}]
links: [
	{between: [h0, a], ports: [1, 1]}, {between: [h1, b], ports: [1, 1]},
	{between: [a, c], ports: [2, 1]}, {between: [b, c], ports: [2, 2], bandwidth: 1G}]`)
	is := read("version: 1\nhosts: [h1, h0]\n" + `switches: [{name: b}, {name: a}, {name: c, slots: 200}, {name: d}]
links: [
	{between: [h0, b], ports: [1, 3]}, {between: [h1, b], ports: [1, 1]}, {between: [d, a], ports: [1, 3]},
	{between: [c, a], ports: [1, 2], addresses: [10.0.0.1, 10.0.0.2]}, {between: [b, c], ports: [2, 2], bandwidth: 10G}]`)
	var got []string
	for _, d := range Compare(was, is) {
		got = append(got, d.String())
	}
	want := []string{
		`fabric "" changed from "lab" to ""`,
		"switch c changed from slots 100 to slots 200",
		"switch d added",
		"link h0:1 moved from a:1 to b:3",
		"link a:2--c:1 changed from no addresses to addresses 10.0.0.2 and 10.0.0.1",
		"link b:2--c:2 changed from bandwidth 1G to bandwidth 10G",
		"link d:1--a:3 added",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestLookupLink(t *testing.T) {
	g := generated(t, "leaf-spine:2,2,1")
	for name, want := range map[string]bool{
		"h0:1--leaf-0:1": true, "leaf-0:1--h0:1": true, "leaf-1:3--spine-0:2": true,
		"": false, "h0": false, "h0:1": false, "h0:1--": false, "h0:1--leaf-0": false, "h0:1--leaf-0:2": false,
		"h1:1--leaf-0:1": false, "h0:0--leaf-0:1": false, "h0:99999--leaf-0:1": false, "x:1--leaf-0:1": false, "h0:1--leaf-0:1:1": false,
	} {
		l, ok := g.LookupLink(name)
		if ok != want || ok && l == NoLink || !ok && l != NoLink {
			t.Errorf("%q: %v, %v", name, l, ok)
		}
	}
}

// TestNodeOfAnotherKind: a link at the same port of a node that is of another kind now says
// what has changed.
func TestNodeOfAnotherKind(t *testing.T) {
	read := func(text string) *Graph {
		g, err := Read(strings.NewReader(text), "text")
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	was := read("version: 1\nhosts: [h0, h3]\nswitches: [{name: leaf}]\nlinks: [{between: [h3, leaf], ports: [1, 1]}, {between: [h0, leaf], ports: [1, 2]}]")
	is := read("version: 1\nhosts: [h0]\nswitches: [{name: leaf}, {name: h3}]\nlinks: [{between: [h3, leaf], ports: [1, 1]}, {between: [h0, leaf], ports: [1, 2]}]")
	var got []string
	for _, d := range Compare(was, is) {
		got = append(got, d.String())
	}
	if want := "link leaf:1 moved from host h3:1 to switch h3:1"; !slices.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
