package topology

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func generated(t testing.TB, spec string) *Graph {
	t.Helper()
	g, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// checkGraph holds a graph against its own invariants, slowly.
func checkGraph(t testing.TB, g *Graph) {
	t.Helper()
	at := map[End]LinkID{}
	for l, link := range g.AllLinks() {
		for end, e := range link.Ends {
			if other, used := at[e]; used {
				t.Fatalf("links %s and %s share a port", g.LinkName(other), g.LinkName(l))
			}
			at[e] = l
			if got, ok := g.LinkAt(e.Node, e.Port); !ok || got != l {
				t.Fatalf("LinkAt(%s, %d) = %d, %v; want %d", g.Name(e.Node), e.Port, got, ok, l)
			}
			if g.Across(l, e.Node) != link.Ends[1-end].Node {
				t.Fatalf("Across(%s, %s) = %s", g.LinkName(l), g.Name(e.Node), g.Name(g.Across(l, e.Node)))
			}
		}
		if err := link.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	ends := 0
	for n := range NodeID(g.Nodes()) {
		before := Port(0)
		for _, l := range g.Adjacent(n) {
			if port := *g.portOf(l, n); port <= before || at[End{n, port}] != l {
				t.Fatalf("the links of %s are not by ascending port", g.Name(n))
			}
			before = *g.portOf(l, n)
		}
		if _, ok := g.LinkAt(n, before+1); ok {
			t.Fatalf("%s has a link beyond its last port", g.Name(n))
		}
		ends += g.Degree(n)
		checkNode(t, g, n)
	}
	if ends != 2*g.Links() {
		t.Fatalf("%d ends of %d links", ends, g.Links())
	}
}

func checkNode(t testing.TB, g *Graph, n NodeID) {
	t.Helper()
	if found, ok := g.Lookup(g.Name(n)); !ok || found != n {
		t.Fatalf("Lookup(%q) = %d, %v; want %d", g.Name(n), found, ok, n)
	}
	if err := CheckName(g.Name(n)); err != nil {
		t.Fatal(err)
	}
	host := int(n) < g.Hosts()
	if g.IsHost(n) != host || g.IsSwitch(n) == host || (g.Kind(n) == Host) != host || (g.Layer(n) == 0) != host {
		t.Fatalf("%s: kind %v, layer %d", g.Name(n), g.Kind(n), g.Layer(n))
	}
	if !host && g.Switch(g.SwitchIndex(n)) != n {
		t.Fatalf("switch index of %s", g.Name(n))
	}
	if host && g.Capability(n) != (Capability{}) {
		t.Fatalf("host %s has a capability", g.Name(n))
	}
}

func TestGenerators(t *testing.T) {
	for _, test := range []struct {
		spec                            string
		hosts, switches, links, layers  int
		hostDegree, minSwitch, maxSwith int
		names                           []string
		linkNames                       []string
	}{
		{
			"fat-tree:4", 16, 20, 48, 4, 1, 4, 4,
			[]string{"h0", "h15", "core-0", "core-3", "agg-0-0", "agg-3-1", "edge-0-0", "edge-3-1"},
			[]string{"h0:1--edge-0-0:1", "h15:1--edge-3-1:2", "edge-1-0:3--agg-1-0:1", "edge-1-0:4--agg-1-1:1", "agg-2-1:3--core-2:3", "agg-2-1:4--core-3:3"},
		},
		{"fat-tree:2", 2, 5, 6, 4, 1, 2, 2, []string{"h1", "core-0", "agg-1-0", "edge-1-0"}, nil},
		{"fat-tree:16", 1024, 320, 3072, 4, 1, 16, 16, []string{"h1023", "agg-15-7"}, nil},
		{
			"leaf-spine:4,3,2", 12, 5, 18, 3, 1, 3, 6, []string{"h11", "leaf-2", "spine-1"},
			[]string{"h11:1--leaf-2:4", "leaf-2:6--spine-1:3"},
		},
		{"leaf-spine:5,1,0", 5, 1, 5, 2, 1, 5, 5, []string{"leaf-0"}, nil},
		{
			"four-switches", 72, 4, 72 + 36, 2, 1, 36, 36, []string{"h71", "A", "B", "C", "D"},
			[]string{"h18:1--B:1", "A:19--B:19", "A:36--D:24", "C:36--D:36", "B:25--C:25"},
		},
		{"four-switches:2", 8, 4, 8 + 36, 2, 1, 20, 20, []string{"h7", "D"}, []string{"A:19--B:19"}},
	} {
		t.Run(test.spec, func(t *testing.T) {
			g := generated(t, test.spec)
			checkGraph(t, g)
			if g.Hosts() != test.hosts || g.Switches() != test.switches || g.Links() != test.links || g.Layers() != test.layers {
				t.Errorf("%d hosts, %d switches, %d links, %d layers", g.Hosts(), g.Switches(), g.Links(), g.Layers())
			}
			if g.Fabric() != test.spec {
				t.Errorf("fabric %q", g.Fabric())
			}
			for n := range NodeID(g.Nodes()) {
				d := g.Degree(n)
				if g.IsHost(n) && d != test.hostDegree || g.IsSwitch(n) && (d < test.minSwitch || d > test.maxSwith) {
					t.Errorf("%s has %d links", g.Name(n), d)
				}
				if g.IsSwitch(n) && g.Capability(n) != DefaultCapability() {
					t.Errorf("%s: %+v", g.Name(n), g.Capability(n))
				}
			}
			for l, layer := range g.layersFromHosts() {
				if g.layers[l] != layer {
					t.Errorf("%s is in layer %d, its distance to a host is %d", g.Name(NodeID(l)), g.layers[l], layer)
				}
			}
			linkNames := map[string]bool{}
			for l := range g.AllLinks() {
				linkNames[g.LinkName(l)] = true
			}
			for _, name := range test.linkNames {
				if !linkNames[name] {
					t.Errorf("no link %s", name)
				}
			}
			for _, name := range test.names {
				if _, ok := g.Lookup(name); !ok {
					t.Errorf("no node %s", name)
				}
			}
		})
	}
}

func TestFourSwitchesIsTheDocuments(t *testing.T) {
	g, err := FourSwitches()
	if err != nil || !Equal(g, generated(t, "four-switches")) {
		t.Error(err)
	}
}

func TestLookupRefusesOtherSpellings(t *testing.T) {
	for _, test := range []struct {
		spec  string
		names []string
	}{
		{"fat-tree:4", []string{
			"", "h", "h-1", "h16", "h01", "h+1", " h1", "h1 ", "H1", "core", "core-", "core-4", "core-00",
			"agg-0", "agg-0-2", "agg-4-0", "agg-0-0-0", "agg--0", "edge-0-", "h99999999999999999999",
		}},
		{"four-switches", []string{"E", "A0", "a", "AA", "h72"}},
	} {
		g := generated(t, test.spec)
		for _, name := range test.names {
			if n, ok := g.Lookup(name); ok {
				t.Errorf("%s: Lookup(%q) = %s", test.spec, name, g.Name(n))
			}
		}
	}
}

func TestGeneratorErrors(t *testing.T) {
	bad := DefaultEquipment()
	bad.Link.Bandwidth = -1
	worse := DefaultEquipment()
	worse.Switch.Slots = -1
	build := func(g *Graph, err error) error { return err }
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"odd", build(FatTree(3)), ErrShape},
		{"zero", build(FatTree(0)), ErrShape},
		{"negative", build(FatTree(-2)), ErrShape},
		{"too large", build(FatTree(MaxFatTree + 2)), ErrShape},
		{"no hosts", build(LeafSpine(0, 1, 1)), ErrShape},
		{"no leaves", build(LeafSpine(1, 0, 1)), ErrShape},
		{"no spines", build(LeafSpine(1, 2, 0)), ErrShape},
		{"too many ports", build(LeafSpine(1<<16, 1, 1)), ErrShape},
		{"too many ports of leaf and spines", build(LeafSpine(40000, 1, 40000)), ErrShape},
		{"too many nodes", build(LeafSpine(1000, 60000, 1)), ErrShape},
		{"too many hosts", build(DefaultEquipment().FourSwitches(19)), ErrShape},
		{"link", build(bad.FatTree(4)), ErrLink},
		{"link of leaf-spine", build(bad.LeafSpine(1, 1, 1)), ErrLink},
		{"link of four-switches", build(bad.FourSwitches(1)), ErrLink},
		{"switch", build(worse.FatTree(4)), ErrCapability},
		{"zero equipment", build(Equipment{}.FatTree(4)), ErrLink},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v", test.name, test.err)
		}
	}
	for _, spec := range []string{
		"", "fat-tree", "fat-tree:", "fat-tree:3", "fat-tree:4,4", "fat-tree:x", "fat-tree:04", "fat-tree:+4", "fat-tree:4 ",
		"leaf-spine:1,2", "leaf-spine:1,2,3,4", "leaf-spine:1,,2", "four-switches:", "four-switches:0", "torus:3", "fat-tree:99999999999999999999",
	} {
		if g, err := Parse(spec); !errors.Is(err, ErrSpec) || g != nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", spec)) {
			t.Errorf("Parse(%q): %v", spec, err)
		}
	}
}

func TestEquipment(t *testing.T) {
	e := Equipment{
		Link:   LinkSpec{Bandwidth: 400e9, Latency: time.Microsecond},
		Switch: Capability{Functions: 2, Types: 2, Slots: 3, Children: 4, Chunk: 5},
	}
	for _, spec := range []string{"fat-tree:4", "leaf-spine:2,2,2", "four-switches"} {
		g, err := e.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		if g.Link(0).LinkSpec != e.Link || g.Link(LinkID(g.Links()-1)).LinkSpec != e.Link || g.Capability(g.Switch(0)) != e.Switch {
			t.Errorf("%s is of other equipment", spec)
		}
	}
}

// The most memory of a generated fabric, in bytes.
const (
	bytesPerHost = 85 // of fabrics of switches, all their links and switches included
	bytesPerNode = 9  // of a host or switch alone
	bytesPerLink = 24
)

// bytesToBuild is the most that building a fabric of a million hosts may take
// from the heap, what it gives back included.
const bytesToBuild = 1 << 30

// TestMemory prints and bounds the memory of large fabrics: what Bytes says of
// nodes and links, and that the heap grows by as much.
func TestMemory(t *testing.T) {
	for _, test := range []struct {
		spec    string
		perHost float64
	}{
		{"fat-tree:160", bytesPerHost},
		{"leaf-spine:1000,1000,16", bytesPerHost},
		{"clos:80,80,80,80,160", bytesPerHost},
		{"torus:10,50,50,40", bytesPerHost},
		{"hyperx:64,25,25,25", bytesPerHost},
		{"dragonfly:16,32,16,513", bytesPerHost},
		{"rail:1000,8,125,64", 8 * bytesPerHost}, // a host has eight links
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		g := generated(t, test.spec)
		runtime.GC()
		runtime.ReadMemStats(&after)

		hosts, nodes, links := float64(g.Hosts()), float64(g.Nodes()), float64(g.Links())
		grown, said := float64(after.HeapAlloc)-float64(before.HeapAlloc), float64(g.Bytes())
		node := float64(sliceBytes(g.offset)+sliceBytes(g.layers)+sliceBytes(g.caps)) / nodes
		link := float64(sliceBytes(g.ends)+sliceBytes(g.ports)+sliceBytes(g.spec)+sliceBytes(g.adjacent)) / links
		t.Logf("%s: %.0f hosts, %.0f links, %.0f MB; %.1f bytes a host with all, of these %.2f a node and %.2f a link; %.0f MB taken to build",
			test.spec, hosts, links, said/1e6, said/hosts, node, link, float64(after.TotalAlloc-before.TotalAlloc)/1e6)
		if said > test.perHost*hosts || node > bytesPerNode+0.01 || link > bytesPerLink+0.01 {
			t.Errorf("%s takes %.1f bytes a host, %.2f a node, %.2f a link; the budgets are %.0f, %d, %d",
				test.spec, said/hosts, node, link, test.perHost, bytesPerNode, bytesPerLink)
		}
		if grown < 0.9*said || grown > 1.1*said {
			t.Errorf("%s takes %.0f bytes, Bytes says %.0f", test.spec, grown, said)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > bytesToBuild {
			t.Errorf("%s takes %d bytes to build, the budget is %d", test.spec, taken, bytesToBuild)
		}
		last := NodeID(g.Hosts() - 1)
		if n, ok := g.Lookup(g.Name(last)); !ok || n != last {
			t.Errorf("the last host is not found by its name")
		}
		runtime.KeepAlive(g)
	}
}
