package manager

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// addressed returns a fabric of two leaves with two hosts each and one spine,
// twice joined to each leaf. Ends of link N have the addresses 10.0.N.1 and
// 10.0.N.2, except that those of bare have none.
func addressed(bare ...topology.LinkID) *topology.Graph {
	var b topology.Builder
	var hosts, leaves []topology.Ref
	for i := range 4 {
		hosts = append(hosts, must(b.AddHost(fmt.Sprint("h", i))))
	}
	for i := range 2 {
		leaves = append(leaves, must(b.AddSwitch(fmt.Sprint("leaf-", i), topology.DefaultCapability())))
	}
	spine := must(b.AddSwitch("spine", topology.DefaultCapability()))
	for i, h := range hosts {
		must(b.Connect(h, 0, leaves[i/2], 0, topology.DefaultLink()))
	}
	for range 2 {
		for _, leaf := range leaves {
			must(b.Connect(leaf, 0, spine, 0, topology.DefaultLink()))
		}
	}
	for l := range topology.LinkID(8) {
		skip := false
		for _, x := range bare {
			skip = skip || x == l
		}
		if !skip {
			must(0, b.SetAddresses(l, endAddress(l, 1), endAddress(l, 2)))
		}
	}
	return must(b.Build())
}

func endAddress(l topology.LinkID, end byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(l), end})
}

// own is the data address of a node that has one.
func own(n topology.NodeID) netip.Addr { return netip.AddrFrom4([4]byte{172, 16, 0, byte(n)}) }

// built is what a manager says of one group's tree.
type built struct {
	tree    pathsel.Tree
	configs map[topology.NodeID]switchreduce.Config
	offers  map[uint32]Offer
	sites   map[topology.NodeID][]SiteState
	refusal error
}

// build has a manager make a tree for all hosts of g, whose nodes have these
// data addresses, on ports 1000 and the node's number.
func build(t *testing.T, g *topology.Graph, data func(topology.NodeID) netip.Addr) built {
	t.Helper()
	c := must(New(g, Config{MaxAttempts: 1}))
	result := built{configs: map[topology.NodeID]switchreduce.Config{}, offers: map[uint32]Offer{}, sites: map[topology.NodeID][]SiteState{}}
	at := func(n topology.NodeID) netip.AddrPort { return netip.AddrPortFrom(data(n), 1000+uint16(n)) }
	named := func(name string) topology.NodeID {
		n, _ := g.Lookup(name)
		return n
	}
	create := Create{
		Name: "g", ChunkBytes: 1024, Window: 16, Functions: topology.AllFunctions(), Types: topology.AllTypes(), Secret: [32]byte{1},
	}
	var todo []Input
	for i := range g.Switches() {
		todo = append(todo, SwitchUp{Switch: g.Name(g.Switch(i)), Incarnation: 1, Capability: g.Capability(g.Switch(i))})
	}
	for h := range topology.NodeID(g.Hosts()) {
		create.Members = append(create.Members, g.Name(h))
	}
	todo = append(todo, create)
	for h := range topology.NodeID(g.Hosts()) {
		todo = append(todo, Watch{Group: 1, Rank: uint32(h), DataAddr: at(h), Proven: at(h).Addr(), Stream: 1 + uint64(h)})
	}
	var out Output
	for steps := 0; len(todo) > 0 && steps < 100; steps++ {
		c.Step(0, todo[:1], &out)
		todo = todo[1:]
		for _, r := range out.Persist {
			todo = append(todo, Stored{Seq: r.Seq})
		}
		for _, p := range out.Plans {
			plan, err := p.Choose(must(pathsel.NewPlanner(g, pathsel.Config{})), g.View(), pathsel.NewLoad(g))
			result.tree = plan.Tree
			todo = append(todo, Planned{Group: p.Group, Plan: p.Plan, Chosen: plan, Err: err})
		}
		for _, p := range out.Prepares {
			todo = append(todo, Answer{p.Switch, agent.Reply{Incarnation: 1, Kind: agent.Prepared, Group: 1, Epoch: p.Epoch, Addr: at(named(p.Switch))}})
		}
		for _, m := range out.Commits {
			result.configs[named(m.Switch)] = m.Config
			todo = append(todo, Answer{m.Switch, agent.Reply{Incarnation: 1, Kind: agent.Committed, Group: 1, Epoch: m.Config.Epoch}})
		}
		for _, o := range out.Offers {
			result.offers[o.Rank] = o
		}
		for _, n := range out.Notices {
			result.refusal = n.Err
		}
		out.Reset()
	}
	for n := range topology.NodeID(g.Nodes()) {
		result.sites[n] = c.Sites(g.Name(n))
	}
	return result
}

// TestEdgesUseTheirLinks has nodes with and without a data address of their
// own, and holds every edge's two addresses against the link that was chosen.
func TestEdgesUseTheirLinks(t *testing.T) {
	g := addressed()
	for name, data := range map[string]func(topology.NodeID) netip.Addr{
		"all listen everywhere": func(topology.NodeID) netip.Addr { return netip.IPv4Unspecified() },
		"all have their own":    own,
		"hosts have their own": func(n topology.NodeID) netip.Addr {
			if g.IsHost(n) {
				return own(n)
			}
			return netip.IPv4Unspecified()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := build(t, g, data)
			if b.refusal != nil || len(b.configs) != 3 || len(b.offers) != 4 {
				t.Fatalf("%d configurations, %d offers, refusal %v", len(b.configs), len(b.offers), b.refusal)
			}
			want := func(n topology.NodeID, l topology.LinkID) netip.AddrPort {
				a := data(n)
				if a.IsUnspecified() {
					a = g.AddressAt(l, n)
				}
				return netip.AddrPortFrom(a, 1000+uint16(n))
			}
			for i, v := range b.tree.Vertices {
				cfg := b.configs[v.Switch]
				if i > 0 && cfg.Parent != want(b.tree.Vertices[v.Parent].Switch, v.Up) {
					t.Errorf("%s has parent %v, its link is %s", g.Name(v.Switch), cfg.Parent, g.LinkName(v.Up))
				}
				for k, child := range b.tree.Children(i) {
					node, link := topology.NodeID(0), topology.LinkID(0)
					if child.Vertex >= 0 {
						node, link = b.tree.Vertices[child.Vertex].Switch, b.tree.Vertices[child.Vertex].Up
					} else {
						node, link = b.tree.Leaves[child.Lowest].Host, b.tree.Leaves[child.Lowest].Link
					}
					if cfg.Children[k].Addr != want(node, link) {
						t.Errorf("%s has child %v, its link is %s", g.Name(v.Switch), cfg.Children[k].Addr, g.LinkName(link))
					}
				}
			}
			for rank, o := range b.offers {
				leaf := b.tree.Leaves[rank]
				if o.Parent != want(b.tree.Vertices[leaf.Vertex].Switch, leaf.Link) {
					t.Errorf("rank %d is offered %v, its link is %s", rank, o.Parent, g.LinkName(leaf.Link))
				}
			}
		})
	}
}

// TestEdgeWithoutAddress has nodes that listen everywhere on a link of which
// the topology reports nothing, or that has addresses of the other family.
func TestEdgeWithoutAddress(t *testing.T) {
	everywhere := func(topology.NodeID) netip.Addr { return netip.IPv4Unspecified() }
	for name, test := range map[string]struct {
		graph *topology.Graph
		data  func(topology.NodeID) netip.Addr
		want  string
	}{
		"host link":    {addressed(1), everywhere, "h1:1--leaf-0:2"},
		"trunks":       {addressed(4, 5, 6, 7), everywhere, "leaf-0:3--spine:1"},
		"other family": {addressed(), func(topology.NodeID) netip.Addr { return netip.IPv6Unspecified() }, "leaf-0:3--spine:1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := build(t, test.graph, test.data)
			if len(b.configs)+len(b.offers) != 0 || !errors.Is(b.refusal, ErrNoTree) || !errors.Is(b.refusal, errNoAddress) ||
				!strings.Contains(b.refusal.Error(), test.want) {
				t.Errorf("%d configurations, %d offers, refusal %v", len(b.configs), len(b.offers), b.refusal)
			}
		})
	}
}

// TestSites holds the ports that a switch's site names against the addresses
// that the switch was configured with.
func TestSites(t *testing.T) {
	g := addressed()
	b := build(t, g, func(topology.NodeID) netip.Addr { return netip.IPv4Unspecified() })
	if len(b.configs) != 3 {
		t.Fatalf("the tree is on %d switches", len(b.configs))
	}
	for n := range topology.NodeID(g.Nodes()) {
		cfg, on := b.configs[n]
		if !on {
			if len(b.sites[n]) > 0 {
				t.Errorf("%s has sites", g.Name(n))
			}
			continue
		}
		if len(b.sites[n]) != 1 {
			t.Fatalf("%s has %d sites", g.Name(n), len(b.sites[n]))
		}
		s := b.sites[n][0]
		if s.Group != 1 || s.Name != "g" || s.Epoch != cfg.Epoch || s.Window != cfg.Window || s.ChunkBytes != cfg.ChunkBytes || len(s.Children) != len(cfg.Children) {
			t.Errorf("%s: %+v is configured as %+v", g.Name(n), s, cfg)
		}
		for i, port := range s.Children {
			l, _ := g.LinkAt(n, port)
			if a := g.AddressAt(l, g.Across(l, n)); a != cfg.Children[i].Addr.Addr() {
				t.Errorf("%s: child %d is at %v, not over link %s", g.Name(n), i, cfg.Children[i].Addr, g.LinkName(l))
			}
		}
		up, there := g.LinkAt(n, s.Up)
		if !there {
			if cfg.Parent.IsValid() {
				t.Errorf("%s has a parent, and no link to it", g.Name(n))
			}
		} else if a := g.AddressAt(up, g.Across(up, n)); a != cfg.Parent.Addr() {
			t.Errorf("%s: the parent is at %v, not over link %s", g.Name(n), cfg.Parent, g.LinkName(up))
		}
	}
}
