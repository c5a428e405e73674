package routing_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/planning/routing"
	"github.com/tributary-fabric/tributary/topology"
)

// draw returns a fabric with addresses at all links, and a view of it in which some of
// it is down.
func draw(t *rapid.T) topology.View {
	var b topology.Builder
	var switches, nodes []topology.Ref
	for i := range rapid.IntRange(1, 6).Draw(t, "switches") {
		s, err := b.AddSwitch(fmt.Sprintf("s%d", i), topology.DefaultCapability())
		if err != nil {
			t.Fatal(err)
		}
		switches = append(switches, s)
	}
	nodes = switches
	for i := range rapid.IntRange(0, 5).Draw(t, "hosts") {
		h, err := b.AddHost(fmt.Sprintf("h%d", i))
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, h)
	}
	for i := range rapid.IntRange(1, 14).Draw(t, "links") {
		x, y := rapid.SampledFrom(switches).Draw(t, "x"), rapid.SampledFrom(nodes).Draw(t, "y")
		if x == y {
			continue
		}
		l, err := b.Connect(x, 0, y, 0, topology.DefaultLink())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.SetAddresses(l, address(i, 0), address(i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var down []topology.Change
	for l := range g.AllLinks() {
		if rapid.IntRange(0, 3).Draw(t, "down") == 0 {
			down = append(down, topology.LinkState(l, false))
		}
	}
	o, _, err := topology.NewOverlay(g).Apply(down...)
	if err != nil {
		t.Fatal(err)
	}
	return o.View()
}

func address(link, end int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(link), byte(end)}) }

// far returns the distance of all nodes from one, by relaxing all links until nothing
// changes; hosts but that one forward nothing.
func far(v topology.View, from topology.NodeID) []int {
	g := v.Graph()
	d := make([]int, g.Nodes())
	for n := range d {
		d[n] = 1000
	}
	d[from] = 0
	for range d {
		for l, link := range g.AllLinks() {
			for side := range 2 {
				x, y := link.Ends[side].Node, link.Ends[1-side].Node
				if v.Usable(l) && (x == from || g.IsSwitch(x)) {
					d[y] = min(d[y], d[x]+1)
				}
			}
		}
	}
	return d
}

// TestEveryPacketArrives follows packets from every switch to every address, hop by
// hop: a packet arrives at the address's node, by the address's link where that is up,
// and takes no more hops than the shortest such path has.
func TestEveryPacketArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := draw(t)
		g := v.Graph()
		routes := map[topology.NodeID]map[netip.Addr]topology.LinkID{}
		for i := range g.Switches() {
			of := map[netip.Addr]topology.LinkID{}
			for _, r := range routing.Of(v, g.Switch(i)) {
				if _, twice := of[r.Address]; twice {
					t.Fatalf("two routes to %v", r.Address)
				}
				of[r.Address] = r.Link
			}
			routes[g.Switch(i)] = of
		}
		for l, link := range g.AllLinks() {
			for side, end := range link.Ends {
				a, before := g.AddressAt(l, end.Node), link.Ends[1-side].Node
				for i := range g.Switches() {
					start := g.Switch(i)
					if start == end.Node {
						continue
					}
					shortest := 1000
					switch {
					case v.Usable(l) && g.IsSwitch(before):
						shortest = min(far(v, start)[before]+1, 1000)
					case g.IsHost(end.Node):
						shortest = far(v, start)[end.Node]
					}
					follow(t, v, routes, a, l, end.Node, start, shortest)
				}
			}
		}
	})
}

func follow(t *rapid.T, v topology.View, routes map[topology.NodeID]map[netip.Addr]topology.LinkID, a netip.Addr, l topology.LinkID, end, at topology.NodeID, shortest int) {
	g := v.Graph()
	start, hops, last := at, 0, topology.NoLink
	for at != end {
		by, ok := routes[at][a]
		if !ok {
			if shortest < 1000 {
				t.Fatalf("%s has no route to %v, to which %s has %d hops", g.Name(at), a, g.Name(start), shortest)
			}
			return
		}
		if !v.Usable(by) || !slices.Contains(g.Adjacent(at), by) || hops > g.Nodes() || !g.IsSwitch(at) {
			t.Fatalf("from %s to %v: %s sends by %s, after %d hops", g.Name(start), a, g.Name(at), g.LinkName(by), hops)
		}
		at, last = g.Across(by, at), by
		hops++
	}
	if hops > shortest || g.IsHost(end) && v.Usable(l) && last != l {
		t.Fatalf("from %s to %v of %s: %d hops, the last by %s, want %d", g.Name(start), a, g.LinkName(l), hops, g.LinkName(last), shortest)
	}
}

// TestEqualPathsAreShared: from every switch of a fat tree with several next hops,
// hosts elsewhere are spread over them evenly.
func TestEqualPathsAreShared(t *testing.T) {
	shape, err := topology.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	g := addressed(t, shape)
	v := topology.NewOverlay(g).View()
	carried := map[topology.LinkID]int{}
	for i := range g.Switches() {
		s := g.Switch(i)
		for _, r := range routing.Of(v, s) {
			for l, link := range g.AllLinks() {
				for _, end := range link.Ends {
					if g.IsHost(end.Node) && g.AddressAt(l, end.Node) == r.Address && g.IsSwitch(g.Across(r.Link, s)) {
						carried[r.Link]++
					}
				}
			}
		}
	}
	for l, link := range g.AllLinks() {
		if g.IsSwitch(link.Ends[0].Node) && g.IsSwitch(link.Ends[1].Node) && carried[l] == 0 {
			t.Errorf("%s carries nothing", g.LinkName(l))
		}
	}
}

// addressed returns a fabric with addresses.
func addressed(t *testing.T, g *topology.Graph) *topology.Graph {
	t.Helper()
	var b topology.Builder
	refs := map[string]topology.Ref{}
	for n := range g.Nodes() {
		id := topology.NodeID(n)
		var r topology.Ref
		var err error
		if g.IsHost(id) {
			r, err = b.AddHost(g.Name(id))
		} else {
			r, err = b.AddSwitch(g.Name(id), g.Capability(id))
		}
		if err != nil {
			t.Fatal(err)
		}
		refs[g.Name(id)] = r
	}
	for l, link := range g.AllLinks() {
		x, y := link.Ends[0], link.Ends[1]
		id, err := b.Connect(refs[g.Name(x.Node)], x.Port, refs[g.Name(y.Node)], y.Port, topology.DefaultLink())
		if err == nil {
			err = b.SetAddresses(id, address(int(l), 0), address(int(l), 1))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return made
}
