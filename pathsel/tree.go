package pathsel

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/topology"
)

// Vertex is a switch on a tree.
type Vertex struct {
	Switch topology.NodeID
	Parent int32           // its index in Tree.Vertices; -1 at the root
	Up     topology.LinkID // the link to the parent; topology.NoLink at the root
}

// Leaf is a member on a tree.
type Leaf struct {
	Host   topology.NodeID
	Vertex int32           // the switch that it sends to, an index in Tree.Vertices
	Link   topology.LinkID // the link to that switch
}

// Tree is a collection tree. Parents stand before their children, the root is
// vertex 0, and leaf i is rank i of the group.
type Tree struct {
	Vertices []Vertex
	Leaves   []Leaf
	// Routes are the edges of several links, where switches that cannot reduce
	// forward; see Request.Forward. No other tree has any.
	Routes []Route `json:",omitempty"`
}

// Child is a child of a vertex: another vertex, or a member.
type Child struct {
	Vertex int32  // index in Tree.Vertices; -1 where the child is a member
	Lowest uint32 // lowest rank beneath; of a member its rank
}

// Root returns the root switch; topology.NoNode of an empty tree.
func (t Tree) Root() topology.NodeID {
	if len(t.Vertices) == 0 {
		return topology.NoNode
	}
	return t.Vertices[0].Switch
}

// Hops returns the number of links that the tree uses.
func (t Tree) Hops() int {
	hops := max(0, len(t.Vertices)-1) + len(t.Leaves)
	for _, p := range t.Routes {
		hops += len(p.Links) - 1
	}
	return hops
}

// Depth returns the links between the root and the member furthest from it.
func (t Tree) Depth() int {
	depth := make([]int, len(t.Vertices))
	routes := t.routesByChild()
	for i, v := range t.Vertices {
		if i > 0 {
			depth[i] = depth[v.Parent] + routes.links(int32(i))
		}
	}
	deepest := 0
	for rank, l := range t.Leaves {
		deepest = max(deepest, depth[l.Vertex]+routes.links(ofRank(rank)))
	}
	return deepest
}

// Links iterates over the links of the tree: the switches' in the order of
// Vertices, then the members' by rank, then what routes have beyond their first.
// A link that several routes take comes once for each.
func (t Tree) Links() iter.Seq[topology.LinkID] {
	return func(yield func(topology.LinkID) bool) {
		for _, v := range t.Vertices {
			if v.Up != topology.NoLink && !yield(v.Up) {
				return
			}
		}
		for _, l := range t.Leaves {
			if !yield(l.Link) {
				return
			}
		}
		for _, p := range t.Routes {
			for _, l := range p.Links[1:] {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// residences iterates over the vertices that have members of their own, and more
// of the tree beside these.
func (t Tree) residences() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if len(t.Vertices) < 2 {
			return
		}
		met := make([]bool, len(t.Vertices))
		for _, l := range t.Leaves {
			if !met[l.Vertex] {
				met[l.Vertex] = true
				if !yield(l.Vertex) {
					return
				}
			}
		}
	}
}

// Lowest returns the lowest rank beneath each vertex.
func (t Tree) Lowest() []uint32 {
	lowest := make([]uint32, len(t.Vertices))
	for i := range lowest {
		lowest[i] = uint32(len(t.Leaves))
	}
	for rank := len(t.Leaves) - 1; rank >= 0; rank-- {
		lowest[t.Leaves[rank].Vertex] = uint32(rank)
	}
	for i := len(t.Vertices) - 1; i > 0; i-- {
		parent := t.Vertices[i].Parent
		lowest[parent] = min(lowest[parent], lowest[i])
	}
	return lowest
}

// Children returns the children of vertex v by ascending lowest rank: the order
// in which its switch reduces. Its time grows with the whole tree; AllChildren
// does all vertices at that price.
func (t Tree) Children(v int) []Child { return t.AllChildren()[v] }

// AllChildren returns the children of every vertex, each vertex's by ascending
// lowest rank.
func (t Tree) AllChildren() [][]Child {
	lowest := t.Lowest()
	children := make([][]Child, len(t.Vertices))
	for i, v := range t.Vertices {
		if i > 0 {
			children[v.Parent] = append(children[v.Parent], Child{Vertex: int32(i), Lowest: lowest[i]})
		}
	}
	for rank, l := range t.Leaves {
		children[l.Vertex] = append(children[l.Vertex], Child{Vertex: -1, Lowest: uint32(rank)})
	}
	for _, list := range children {
		slices.SortFunc(list, func(a, b Child) int { return cmp.Compare(a.Lowest, b.Lowest) })
	}
	return children
}

// ErrInvalidTree is wrapped by every error of Tree.Validate.
var ErrInvalidTree = errors.New("invalid tree")

// Validate reports the first thing for which t is no tree over the usable nodes
// and links of view: a vertex out of order, twice, down, without children, or
// linked by a link that is down or ends elsewhere; a leaf likewise. It does not
// ask for capabilities.
func (t Tree) Validate(view topology.View) error {
	if len(t.Vertices) == 0 || len(t.Leaves) == 0 {
		return fmt.Errorf("validate tree: %d switches and %d members: %w", len(t.Vertices), len(t.Leaves), ErrInvalidTree)
	}
	seen := make(map[topology.NodeID]bool, len(t.Vertices)+len(t.Leaves))
	busy := make([]bool, len(t.Vertices))
	routes := t.routesByChild()
	for i, v := range t.Vertices {
		if err := t.checkVertex(view, i, v, seen, routes); err != nil {
			return fmt.Errorf("validate tree: vertex %d: %w: %w", i, err, ErrInvalidTree)
		}
		if i > 0 {
			busy[v.Parent] = true
		}
	}
	for rank, l := range t.Leaves {
		if err := t.checkLeaf(view, rank, l, seen, routes); err != nil {
			return fmt.Errorf("validate tree: rank %d: %w: %w", rank, err, ErrInvalidTree)
		}
		busy[l.Vertex] = true
	}
	if err := t.checkRoutes(view, seen); err != nil {
		return fmt.Errorf("validate tree: %w: %w", err, ErrInvalidTree)
	}
	if i := slices.Index(busy, false); i >= 0 {
		return fmt.Errorf("validate tree: vertex %d (%s) has no children: %w", i, view.Graph().Name(t.Vertices[i].Switch), ErrInvalidTree)
	}
	return nil
}

func (t Tree) checkVertex(view topology.View, i int, v Vertex, seen map[topology.NodeID]bool, routes routeIndex) error {
	g := view.Graph()
	switch {
	case !g.IsSwitch(v.Switch):
		return fmt.Errorf("%s is not a switch", g.Name(v.Switch))
	case seen[v.Switch]:
		return fmt.Errorf("switch %s is on the tree twice", g.Name(v.Switch))
	case !view.NodeUp(v.Switch):
		return fmt.Errorf("switch %s is down", g.Name(v.Switch))
	case i == 0 && (v.Parent != -1 || v.Up != topology.NoLink):
		return errors.New("the root has a parent")
	case i > 0 && (v.Parent < 0 || int(v.Parent) >= i):
		return fmt.Errorf("its parent, vertex %d, does not stand before it", v.Parent)
	}
	seen[v.Switch] = true
	if i == 0 || routes.links(int32(i)) > 1 {
		return nil
	}
	return checkLink(view, v.Up, v.Switch, t.Vertices[v.Parent].Switch)
}

func (t Tree) checkLeaf(view topology.View, rank int, l Leaf, seen map[topology.NodeID]bool, routes routeIndex) error {
	g := view.Graph()
	switch {
	case !g.IsHost(l.Host):
		return fmt.Errorf("%s is not a host", g.Name(l.Host))
	case seen[l.Host]:
		return fmt.Errorf("host %s is on the tree twice", g.Name(l.Host))
	case l.Vertex < 0 || int(l.Vertex) >= len(t.Vertices):
		return fmt.Errorf("there is no vertex %d", l.Vertex)
	}
	seen[l.Host] = true
	if routes.links(ofRank(rank)) > 1 {
		return nil
	}
	return checkLink(view, l.Link, l.Host, t.Vertices[l.Vertex].Switch)
}

func checkLink(view topology.View, l topology.LinkID, a, b topology.NodeID) error {
	g := view.Graph()
	if !g.HasLink(l) {
		return fmt.Errorf("there is no link %d", l)
	}
	if ends := g.Link(l).Ends; (ends[0].Node != a || ends[1].Node != b) && (ends[0].Node != b || ends[1].Node != a) {
		return fmt.Errorf("link %s does not join %s and %s", g.LinkName(l), g.Name(a), g.Name(b))
	}
	if !view.Usable(l) {
		return fmt.Errorf("link %s or a node at its end is down", g.LinkName(l))
	}
	return nil
}

// Text draws the tree for a terminal, a line a switch beneath its parent, the
// members of each on one line with their ranks.
func (t Tree) Text(g *topology.Graph) string {
	if len(t.Vertices) == 0 {
		return "(no tree)\n"
	}
	var b strings.Builder
	t.text(&b, g, t.AllChildren(), 0, "")
	return b.String()
}

func (t Tree) text(b *strings.Builder, g *topology.Graph, children [][]Child, v int, indent string) {
	fmt.Fprintf(b, "%s%s", indent, g.Name(t.Vertices[v].Switch))
	if v == 0 {
		b.WriteString(" (root)")
	}
	separator := ": "
	for _, c := range children[v] {
		if c.Vertex < 0 {
			fmt.Fprintf(b, "%s%s (rank %d)", separator, g.Name(t.Leaves[c.Lowest].Host), c.Lowest)
			separator = ", "
		}
	}
	b.WriteByte('\n')
	for _, c := range children[v] {
		if c.Vertex >= 0 {
			t.text(b, g, children, int(c.Vertex), indent+"  ")
		}
	}
}
