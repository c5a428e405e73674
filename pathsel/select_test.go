package pathsel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func fabric(t testing.TB, spec string) *topology.Graph {
	t.Helper()
	g, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func node(t testing.TB, g *topology.Graph, name string) topology.NodeID {
	t.Helper()
	n, ok := g.Lookup(name)
	if !ok {
		t.Fatalf("no node %s", name)
	}
	return n
}

func hosts(t testing.TB, g *topology.Graph, names ...string) []topology.NodeID {
	list := make([]topology.NodeID, len(names))
	for i, name := range names {
		list[i] = node(t, g, name)
	}
	return list
}

// usual asks what a group of 32-bit sums with a window of 64 does.
func usual(members []topology.NodeID) Request {
	return Request{
		Members: members, Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32),
		Slots: 128, ChunkBytes: 1432,
	}
}

func changed(t testing.TB, g *topology.Graph, changes ...topology.Change) topology.View {
	t.Helper()
	o, err := topology.NewOverlay(g).With(changes...)
	if err != nil {
		t.Fatal(err)
	}
	return o.View()
}

// choice is the best tree of shortest paths, as one of the planner's methods finds
// it alone.
type choice struct {
	Tree     Tree
	Cost     Cost
	Others   []outcome
	Examined int
}

func selectTree(view topology.View, load *Load, req Request) (choice, error) {
	p := newPlanner(view.Graph(), DefaultConfig())
	if err := p.enter(view, load, &req); err != nil {
		return choice{}, err
	}
	defer p.leave(&req)
	f := newSubgraph(p.ask(view, load, &req))
	if refusal := f.attachMembers(); refusal != nil {
		return choice{}, refusal
	}
	roots := f.rankRoots()
	if len(roots) == 0 {
		return choice{}, f.refuseUnreached()
	}
	found, err := f.chooseRoot(roots)
	return choice{found.tree, found.cost, found.others, found.examined}, err
}

func mustSelect(t testing.TB, view topology.View, load *Load, req Request) choice {
	t.Helper()
	c, err := selectTree(view, load, req)
	if err != nil {
		t.Fatal(err)
	}
	checkChoice(t, view, load, req, c)
	return c
}

// checkChoice holds a choice against everything that it promises alone.
func checkChoice(t testing.TB, view topology.View, load *Load, req Request, c choice) {
	t.Helper()
	if err := c.Tree.Validate(view); err != nil {
		t.Fatal(err)
	}
	if c.Cost.Hops != c.Tree.Hops() || c.Cost.Depth != c.Tree.Depth() {
		t.Fatalf("cost %v of a tree of %d hops and depth %d", c.Cost, c.Tree.Hops(), c.Tree.Depth())
	}
	used := 0
	for l := range c.Tree.Links() {
		used += load.LinkTrees(l)
		if slices.Contains(req.ExcludeLinks, l) {
			t.Fatalf("excluded link %d is on the tree", l)
		}
	}
	children := c.Tree.AllChildren()
	for i, v := range c.Tree.Vertices {
		used += load.SwitchTrees(v.Switch)
		k := view.Capability(v.Switch)
		if slices.Contains(req.Exclude, v.Switch) || !k.Functions.Covers(req.Functions) || !k.Types.Covers(req.Types) ||
			k.Chunk < req.ChunkBytes || k.Slots-load.UsedSlots(v.Switch) < req.Slots || len(children[i]) > k.Children {
			t.Fatalf("switch %s cannot serve: %+v", view.Graph().Name(v.Switch), k)
		}
	}
	if c.Cost.Load != used {
		t.Fatalf("load %d, the tree's is %d", c.Cost.Load, used)
	}
	for rank, l := range c.Tree.Leaves {
		if l.Host != req.Members[rank] {
			t.Fatalf("leaf %d is not rank %d", rank, rank)
		}
	}
	for i, o := range c.Others {
		if o.cost.Compare(c.Cost) < 0 || i > 0 && o.cost.Compare(c.Others[i-1].cost) < 0 {
			t.Fatalf("the root that lost as number %d: %+v against %v", i, o, c.Cost)
		}
	}
}

func TestSelectKnownFabrics(t *testing.T) {
	for _, test := range []struct {
		fabric  string
		members []string // nil: all
		want    Cost
		root    string // prefix
	}{
		{"fat-tree:4", []string{"h0", "h1"}, Cost{Hops: 2, Depth: 1}, "edge-0-0"},
		{"fat-tree:4", []string{"h0"}, Cost{Hops: 1, Depth: 1}, "edge-0-0"},
		{"fat-tree:4", []string{"h0", "h3"}, Cost{Hops: 4, Depth: 2}, "agg-0-"},
		{"fat-tree:4", []string{"h0", "h15"}, Cost{Hops: 6, Depth: 3}, "core-"},
		{"fat-tree:4", nil, Cost{Hops: 16 + 8 + 4, Depth: 3}, "core-"},
		{"fat-tree:8", nil, Cost{Hops: 128 + 32 + 8, Depth: 3}, "core-"},
		{"leaf-spine:2,3,2", []string{"h2", "h3"}, Cost{Hops: 2, Depth: 1}, "leaf-1"},
		{"leaf-spine:2,3,2", nil, Cost{Hops: 9, Depth: 2}, "spine-"},
		{"four-switches", nil, Cost{Hops: 72 + 3, Depth: 2}, ""},
		{"four-switches", []string{"h0", "h17"}, Cost{Hops: 2, Depth: 1}, "A"},
		{"four-switches:1", []string{"h1", "h2"}, Cost{Hops: 3, Depth: 2}, ""},
	} {
		t.Run(fmt.Sprint(test.fabric, test.members), func(t *testing.T) {
			g := fabric(t, test.fabric)
			members := g.AllHosts()
			if test.members != nil {
				members = hosts(t, g, test.members...)
			}
			c := mustSelect(t, g.View(), nil, usual(members))
			if c.Cost != test.want || !strings.HasPrefix(g.Name(c.Tree.Root()), test.root) {
				t.Errorf("root %s, %v; want %s..., %v", g.Name(c.Tree.Root()), c.Cost, test.root, test.want)
			}
			if c.Examined != g.Switches() {
				t.Errorf("%d of %d roots tried", c.Examined, g.Switches())
			}
		})
	}
}

// damage takes each switch and link down, weakens or fills some switches, and
// excludes some, at random.
func damage(t testing.TB, rng *rand.Rand, g *topology.Graph, req *Request) (topology.View, *Load) {
	var changes []topology.Change
	for i := range g.Switches() {
		n := g.Switch(i)
		switch rng.IntN(24) {
		case 0:
			changes = append(changes, topology.NodeState(n, false))
		case 1:
			changes = append(changes, topology.SwitchCapability(n, topology.Capability{}))
		case 2, 3:
			weak := topology.DefaultCapability()
			weak.Children = 1 + rng.IntN(4)
			changes = append(changes, topology.SwitchCapability(n, weak))
		case 4:
			req.Exclude = append(req.Exclude, n)
		}
	}
	for l, link := range g.AllLinks() {
		switch rng.IntN(16) {
		case 0:
			if g.IsSwitch(link.Ends[0].Node) {
				changes = append(changes, topology.LinkState(l, false))
			}
		case 1:
			if g.IsSwitch(link.Ends[0].Node) {
				req.ExcludeLinks = append(req.ExcludeLinks, l)
			}
		}
	}
	load := NewLoad(g)
	view := changed(t, g, changes...)
	for range rng.IntN(4) {
		other := usual([]topology.NodeID{topology.NodeID(rng.IntN(g.Hosts()))})
		if h := topology.NodeID(rng.IntN(g.Hosts())); h != other.Members[0] {
			other.Members = append(other.Members, h)
		}
		if c, err := selectTree(view, load, other); err == nil {
			load.Add(c.Tree, 2000)
		}
	}
	return view, load
}

func randomGroup(rng *rand.Rand, g *topology.Graph, most int) []topology.NodeID {
	var members []topology.NodeID
	for _, h := range rng.Perm(g.Hosts())[:1+rng.IntN(min(most, g.Hosts()))] {
		members = append(members, topology.NodeID(h))
	}
	return members
}

// railed is a fabric whose hosts have two links, to two switches of a ring.
func railed(t testing.TB) *topology.Graph {
	t.Helper()
	var b topology.Builder
	var ring []topology.Ref
	for i := range 7 {
		s, err := b.AddSwitch(fmt.Sprintf("s%d", i), topology.DefaultCapability())
		if err != nil {
			t.Fatal(err)
		}
		ring = append(ring, s)
	}
	connect := func(x, y topology.Ref) {
		if _, err := b.Connect(x, 0, y, 0, topology.DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range ring {
		connect(ring[i], ring[(i+1)%len(ring)])
	}
	connect(ring[0], ring[3])
	for i := range 10 {
		h, err := b.AddHost(fmt.Sprintf("h%d", i))
		if err != nil {
			t.Fatal(err)
		}
		connect(h, ring[i%len(ring)])
		connect(h, ring[(i*3+2)%len(ring)])
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSelectAgainstOracle holds it against all shortest-path trees of all
// roots, on whole and damaged fabrics.
func TestSelectAgainstOracle(t *testing.T) {
	for _, test := range []struct {
		name   string
		g      *topology.Graph
		most   int
		rounds int
	}{
		{"fat-tree:4", fabric(t, "fat-tree:4"), 6, 400},
		{"leaf-spine:2,3,2", fabric(t, "leaf-spine:2,3,2"), 6, 400},
		{"leaf-spine:1,6,4", fabric(t, "leaf-spine:1,6,4"), 6, 400},
		{"four-switches:3", fabric(t, "four-switches:3"), 8, 400},
		{"railed", railed(t), 7, 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			found := 0
			for round := range test.rounds {
				req := usual(randomGroup(rng, test.g, test.most))
				view, load := test.g.View(), (*Load)(nil)
				if round%4 != 0 {
					view, load = damage(t, rng, test.g, &req)
				}
				hops, depth, ok := newPlain(view, load, req).best()
				c, err := selectTree(view, load, req)
				if (err == nil) != ok {
					t.Fatalf("round %d: %v; the oracle has a tree: %v", round, err, ok)
				}
				if err != nil {
					checkRefusal(t, test.g, err)
					continue
				}
				found++
				checkChoice(t, view, load, req, c)
				if c.Cost.Hops != hops || c.Cost.Depth != depth {
					t.Fatalf("round %d: %v, the oracle has %d hops, depth %d\n%s", round, c.Cost, hops, depth, c.Tree.Text(test.g))
				}
			}
			if found < test.rounds/3 {
				t.Errorf("only %d of %d rounds had a tree", found, test.rounds)
			}
		})
	}
}

func checkRefusal(t testing.TB, g *topology.Graph, err error) *Refusal {
	t.Helper()
	var r *Refusal
	if !errors.Is(err, ErrNoTree) || !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	if r.Switch != topology.NoNode && !strings.Contains(err.Error(), g.Name(r.Switch)) {
		t.Fatalf("%v does not name %s", err, g.Name(r.Switch))
	}
	return r
}

// TestSelectAgainstSteiner bounds how far above the smallest tree of all the
// smallest shortest-path tree is: equal on whole fabrics, and on fabrics as
// damaged as these at most two hops more.
func TestSelectAgainstSteiner(t *testing.T) {
	for _, test := range []struct {
		name   string
		g      *topology.Graph
		rounds int
	}{
		{"fat-tree:4", fabric(t, "fat-tree:4"), 24},
		{"leaf-spine:2,3,2", fabric(t, "leaf-spine:2,3,2"), 300},
		{"leaf-spine:1,6,4", fabric(t, "leaf-spine:1,6,4"), 300},
		{"four-switches:3", fabric(t, "four-switches:3"), 300},
		{"railed", railed(t), 300},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			above := map[int]int{}
			for round := range test.rounds {
				req := usual(randomGroup(rng, test.g, test.g.Hosts()))
				view, load := test.g.View(), (*Load)(nil)
				if round%4 != 0 {
					view, load = damage(t, rng, test.g, &req)
				}
				c, err := selectTree(view, load, req)
				if err != nil {
					continue
				}
				hops, _ := newPlain(view, load, req).steiner()
				more := c.Cost.Hops - hops
				above[more]++
				if more < 0 || more > 2 || round%4 == 0 && more != 0 && test.name != "railed" {
					t.Fatalf("round %d: %d hops, the smallest tree has %d\n%s", round, c.Cost.Hops, hops, c.Tree.Text(test.g))
				}
			}
			t.Logf("rounds by hops above the smallest tree: %v", above)
		})
	}
}
