package manager

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// slowest returns what joins hosts to a fabric, the slow way.
func slowest(g *topology.Graph, hosts ...string) (all pathsel.Links) {
	leaf := map[string][]string{} // members, by leaf
	for _, name := range hosts {
		fastest, at := int64(0), ""
		for _, l := range g.AllLinks() {
			for i, end := range l.Ends {
				if g.Name(end.Node) == name && l.Bandwidth > fastest {
					fastest, at = l.Bandwidth, g.Name(l.Ends[1-i].Node)
				}
			}
		}
		if fastest == 0 {
			return pathsel.Links{}
		}
		leaf[at] = append(leaf[at], name)
		if all.Rate == 0 || fastest < all.Rate {
			all.Rate = fastest
		}
	}
	for name, members := range leaf {
		up := int64(0)
		for _, l := range g.AllLinks() {
			for i, end := range l.Ends {
				if g.Name(end.Node) == name && g.IsSwitch(l.Ends[1-i].Node) {
					up += l.Bandwidth
				}
			}
		}
		n := int64(len(members))
		if up /= n; len(leaf) > 1 && up > 0 && (all.Uplink == 0 || up < all.Uplink || up == all.Uplink && len(members) > all.Leaf) {
			all.Uplink, all.Leaf = up, len(members)
		}
	}
	return all
}

// TestLinksAreKnown: whatever becomes of the fabric, the lowest rank knows the rate of the members' links, and
// hears of changes alone.
func TestLinksAreKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(smallFabric(), Config{}, 64)
		id := w.create("job", 16, 0, 3, 5).Group
		known := pathsel.Links{Rate: -1}
		w.watcher = func(out *Output) {
			for _, l := range out.Links {
				if l.Group != id || l.Rank != 0 {
					t.Fatalf("%+v", l)
				}
				if l.Links == known {
					t.Fatalf("%v is reported twice", known)
				}
				known = l.Links
			}
		}
		w.watchAll(id)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			w.redraw(rapid.Byte().Draw(t, "which"), rapid.Byte().Draw(t, "detail"))
			if want := slowest(w.graph, "h0", "h3", "h5"); known != want {
				t.Fatalf("%+v is known, want %+v", known, want)
			}
		}
	})
}

// TestSlowestLinks: of each host the fastest link counts, and of these the slowest; and the leaf that has the
// least for each member.
func TestSlowestLinks(t *testing.T) {
	var b topology.Builder
	spine := must(b.AddSwitch("spine", topology.DefaultCapability()))
	ports := map[topology.Ref]topology.Port{}
	link := func(x, y topology.Ref, rate int64) {
		ports[x]++
		ports[y]++
		must(b.Connect(x, ports[x], y, ports[y], topology.LinkSpec{Bandwidth: rate}))
	}
	hosts := [][]int64{{10e9, 40e9}, {1e9, 25e9}, {100e9}, {100e9}, {}}
	for i, leaf := range []topology.Ref{must(b.AddSwitch("leaf-0", topology.DefaultCapability())), must(b.AddSwitch("leaf-1", topology.DefaultCapability()))} {
		link(leaf, spine, 100e9)
		for k, of := range hosts {
			if k/3 == i {
				h := must(b.AddHost(fmt.Sprint("h", k)))
				for _, rate := range of {
					link(h, leaf, rate)
				}
			}
		}
	}
	g := must(b.Build())
	c := must(New(g, Config{}))
	for _, test := range []struct {
		hosts []string
		want  pathsel.Links
	}{
		{[]string{"h0", "h1", "h2"}, pathsel.Links{Rate: 25e9}}, {[]string{"h2", "h0"}, pathsel.Links{Rate: 40e9}},
		{[]string{"h2", "h4"}, pathsel.Links{}}, {[]string{"unknown", "h2"}, pathsel.Links{}},
		{[]string{"h0", "h2", "h3"}, pathsel.Links{Rate: 40e9, Uplink: 50e9, Leaf: 2}}, {[]string{"h3", "h2"}, pathsel.Links{Rate: 100e9, Uplink: 100e9, Leaf: 1}},
	} {
		k := &group{spec: &Spec{Members: test.hosts}}
		if c.place(k); k.links != test.want || k.links != slowest(g, test.hosts...) {
			t.Errorf("%q: %+v, want %+v", test.hosts, k.links, test.want)
		}
	}
}
