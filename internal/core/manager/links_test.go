package manager

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

// slowest returns the rate of the fastest link of the host whose is the slowest; 0: there is no such host or
// link.
func slowest(g *topology.Graph, hosts ...string) int64 {
	least := int64(math.MaxInt64)
	for _, name := range hosts {
		fastest := int64(0)
		for _, l := range g.AllLinks() {
			for _, end := range l.Ends {
				if g.Name(end.Node) == name {
					fastest = max(fastest, l.Bandwidth)
				}
			}
		}
		least = min(least, fastest)
	}
	return least
}

// TestLinksAreKnown: whatever becomes of the fabric, the lowest rank knows the rate of the members' links, and
// hears of changes alone.
func TestLinksAreKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(smallFabric(), Config{}, 64)
		id := w.create("job", 16, 0, 3, 5).Group
		known := int64(-1)
		w.watcher = func(out *Output) {
			for _, l := range out.Links {
				if l.Group != id || l.Rank != 0 {
					t.Fatalf("%+v", l)
				}
				if l.Rate == known {
					t.Fatalf("%d bit/s are reported twice", known)
				}
				known = l.Rate
			}
		}
		w.watchAll(id)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			w.redraw(rapid.Byte().Draw(t, "which"), rapid.Byte().Draw(t, "detail"))
			if want := slowest(w.graph, "h0", "h3", "h5"); known != want {
				t.Fatalf("%d bit/s are known, want %d", known, want)
			}
		}
	})
}

// TestSlowestLink: of each host the fastest link counts, and of these the slowest.
func TestSlowestLink(t *testing.T) {
	var b topology.Builder
	leaf := must(b.AddSwitch("leaf", topology.DefaultCapability()))
	rates := [][]int64{{10e9, 40e9}, {1e9, 25e9}, {100e9}, {}}
	port := topology.Port(1)
	for i, of := range rates {
		h := must(b.AddHost(fmt.Sprint("h", i)))
		for k, rate := range of {
			must(b.Connect(h, topology.Port(k+1), leaf, port, topology.LinkSpec{Bandwidth: rate}))
			port++
		}
	}
	g := must(b.Build())
	c := must(New(g, Config{}))
	for _, test := range []struct {
		hosts []string
		want  int64
	}{
		{[]string{"h0", "h1", "h2"}, 25e9}, {[]string{"h2", "h0"}, 40e9}, {[]string{"h2", "h3"}, 0}, {[]string{"h2", "unknown"}, 0}, {[]string{"h3", "h2"}, 0},
	} {
		k := &group{spec: &Spec{Members: test.hosts}}
		if c.place(k); k.linkRate != test.want {
			t.Errorf("%q: %d bit/s, want %d", test.hosts, k.linkRate, test.want)
		}
	}
}
