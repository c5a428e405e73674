package pathsel

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

func TestTreeValidate(t *testing.T) {
	g := fabric(t, "fat-tree:4")
	view := g.View()
	good := mustSelect(t, view, nil, usual(hosts(t, g, "h0", "h1", "h15", "h4"))).Tree
	down := func(changes ...topology.Change) topology.View { return changed(t, g, changes...) }
	for _, test := range []struct {
		name   string
		view   topology.View
		change func(*Tree)
	}{
		{"no vertices", view, func(t *Tree) { t.Vertices = nil }},
		{"no leaves", view, func(t *Tree) { t.Leaves = nil }},
		{"host as vertex", view, func(t *Tree) { t.Vertices[1].Switch = 0 }},
		{"vertex beyond the graph", view, func(t *Tree) { t.Vertices[1].Switch = 1 << 20 }},
		{"vertex twice", view, func(t *Tree) { t.Vertices[2].Switch = t.Vertices[1].Switch }},
		{"root with a parent", view, func(t *Tree) { t.Vertices[0].Parent = 0 }},
		{"root with a link", view, func(t *Tree) { t.Vertices[0].Up = 0 }},
		{"child before parent", view, func(t *Tree) { t.Vertices[1].Parent = 1 }},
		{"second root", view, func(t *Tree) { t.Vertices[1].Parent = -1 }},
		{"link elsewhere", view, func(t *Tree) { t.Vertices[1].Up = t.Vertices[2].Up }},
		{"link beyond the graph", view, func(t *Tree) { t.Vertices[1].Up = 1 << 20 }},
		{"leaf is a switch", view, func(t *Tree) { t.Leaves[0].Host = t.Vertices[0].Switch }},
		{"leaf twice", view, func(t *Tree) { t.Leaves[1] = t.Leaves[0] }},
		{"leaf on no vertex", view, func(t *Tree) { t.Leaves[0].Vertex = int32(len(t.Vertices)) }},
		{"leaf on a wrong vertex", view, func(t *Tree) { t.Leaves[0].Vertex = 0 }},
		{"childless vertex", view, func(t *Tree) { t.Leaves = t.Leaves[:2] }},
		{"switch down", down(topology.NodeState(good.Root(), false)), func(*Tree) {}},
		{"link down", down(topology.LinkState(good.Vertices[1].Up, false)), func(*Tree) {}},
		{"host down", down(topology.NodeState(0, false)), func(*Tree) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := Tree{Vertices: slices.Clone(good.Vertices), Leaves: slices.Clone(good.Leaves)}
			test.change(&bad)
			if err := bad.Validate(test.view); !errors.Is(err, ErrInvalidTree) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTreeOrder checks Lowest and Children against a walk from every rank.
func TestTreeOrder(t *testing.T) {
	g := fabric(t, "fat-tree:8")
	rng := rand.New(rand.NewPCG(13, 14))
	for range 20 {
		tree := mustSelect(t, g.View(), nil, usual(randomGroup(rng, g, g.Hosts()))).Tree
		want := slices.Repeat([]uint32{1 << 31}, len(tree.Vertices))
		for rank, l := range tree.Leaves {
			for v := l.Vertex; v >= 0; v = tree.Vertices[v].Parent {
				want[v] = min(want[v], uint32(rank))
			}
		}
		if got := tree.Lowest(); !slices.Equal(got, want) {
			t.Fatalf("lowest ranks %v, want %v", got, want)
		}
		ranks, vertices := 0, 1
		for v := range tree.Vertices {
			before := int64(-1)
			for _, c := range tree.Children(v) {
				if int64(c.Lowest) <= before {
					t.Fatalf("children of vertex %d are not by ascending rank: %v", v, tree.Children(v))
				}
				before = int64(c.Lowest)
				switch {
				case c.Vertex < 0 && tree.Leaves[c.Lowest].Vertex == int32(v):
					ranks++
				case c.Vertex >= 0 && tree.Vertices[c.Vertex].Parent == int32(v) && want[c.Vertex] == c.Lowest:
					vertices++
				default:
					t.Fatalf("%+v is not a child of vertex %d", c, v)
				}
			}
		}
		if ranks != len(tree.Leaves) || vertices != len(tree.Vertices) {
			t.Fatalf("%d ranks and %d vertices are someone's child", ranks, vertices)
		}
	}
}

func TestTreeText(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,1")
	tree := mustSelect(t, g.View(), nil, usual(hosts(t, g, "h2", "h0", "h1"))).Tree
	want := "spine-0 (root)\n  leaf-1: h2 (rank 0)\n  leaf-0: h0 (rank 1), h1 (rank 2)\n"
	if got := tree.Text(g); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if got := (Tree{}).Text(g); !strings.Contains(got, "no tree") {
		t.Errorf("the empty tree: %q", got)
	}
}

// TestSelectLarge plans on the largest fabric of one manager: 1,000 members and
// then all 65,536 hosts, some cores down.
func TestSelectLarge(t *testing.T) {
	g := fabric(t, "fat-tree:64")
	var changes []topology.Change
	for i := range 1024 - 20 {
		changes = append(changes, topology.NodeState(g.Switch(i), false))
	}
	view := changed(t, g, changes...)
	var thousand []topology.NodeID
	for _, h := range rand.New(rand.NewPCG(15, 16)).Perm(g.Hosts())[:1000] {
		thousand = append(thousand, topology.NodeID(h))
	}
	c := mustSelect(t, view, nil, usual(thousand))
	edges := map[topology.NodeID]bool{}
	for _, l := range c.Tree.Leaves {
		edges[c.Tree.Vertices[l.Vertex].Switch] = true
	}
	if want := (Cost{Hops: 1000 + len(edges) + 64, Depth: 3}); c.Cost != want {
		t.Errorf("1,000 members: %v, want %v", c.Cost, want)
	}
	c = mustSelect(t, view, nil, usual(g.AllHosts()))
	if want := (Cost{Hops: 65536 + 2048 + 64, Depth: 3}); c.Cost != want {
		t.Errorf("all hosts: %v, want %v", c.Cost, want)
	}
}
