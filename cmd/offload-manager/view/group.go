package view

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/picture"
	"github.com/tributary-fabric/tributary/internal/rpc"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Summary is a group of a list in JSON.
type Summary struct {
	Group    uint32 `json:"group"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Members  int    `json:"members"`
	Watching int    `json:"watching"`
	Epoch    uint32 `json:"epoch"` // of the active tree; 0: none
}

// NewSummary returns a group as it is written.
func NewSummary(s manager.Summary) Summary {
	return Summary{s.Group, s.Name, s.State.String(), s.Members, s.Watching, s.Epoch}
}

// SummariesText writes a table of groups.
func SummariesText(w io.Writer, all []Summary) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "The manager has no groups.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "GROUP\tNAME\tSTATE\tMEMBERS\tWATCHING\tEPOCH")
	for _, s := range all {
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%d\t%d\n", s.Group, s.Name, s.State, s.Members, s.Watching, s.Epoch)
	}
	return t.Flush()
}

// Group is all about a group in JSON.
type Group struct {
	Summary
	Missing []uint32 `json:"missing"` // the first ranks that do not watch
	Offload int      `json:"members_over_switches"`
	Hosts   int      `json:"members_over_hosts"`
	Refusal string   `json:"refusal,omitempty"` // why there is no tree, or no replacement
	Trees   []Tree   `json:"trees"`
	History []Change `json:"history"`
	// Mismatches are the links that do not carry what its trees exchange.
	Mismatches []Mismatch `json:"mismatches"`
}

// Tree is a tree of a group in JSON.
type Tree struct {
	Epoch     uint32        `json:"epoch"`
	Stage     string        `json:"stage"`
	Window    uint32        `json:"window"`
	Switches  []Vertex      `json:"switches"` // parents first
	Members   []Leaf        `json:"members"`  // by rank
	Cost      Cost          `json:"cost"`
	Reason    string        `json:"reason"`
	RunnersUp []Alternative `json:"runners_up"`
}

// Vertex is a switch on a tree.
type Vertex struct {
	Switch string `json:"switch"`
	Parent string `json:"parent,omitempty"` // of the root: none
}

// Leaf is a member on a tree.
type Leaf struct {
	Host   string `json:"host"`
	Switch string `json:"switch"`
}

// Cost is what a tree takes.
type Cost struct {
	Hops  int `json:"hops"`
	Depth int `json:"depth"`
	Load  int `json:"load"`
}

// Alternative is a root that was not chosen.
type Alternative struct {
	Root string `json:"root"`
	Cost Cost   `json:"cost"`
	Lost string `json:"lost"`
}

// Change is an entry of a group's history.
type Change struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// NewGroup returns what a manager says of a group as it is written.
func NewGroup(e rpc.Explanation) Group {
	g := Group{
		Summary: NewSummary(e.Summary), Missing: append([]uint32{}, e.Missing...), Offload: e.Offload, Hosts: e.Hosts,
		Trees: []Tree{}, History: []Change{}, Mismatches: newMismatches(e.Mismatches),
	}
	if e.Refusal != nil {
		g.Refusal = e.Refusal.Error()
	}
	for _, t := range e.Trees {
		g.Trees = append(g.Trees, newTree(t))
	}
	for _, c := range e.History {
		g.History = append(g.History, Change{c.At.UTC(), c.What})
	}
	return g
}

func newTree(s rpc.TreeState) Tree {
	t := Tree{Epoch: s.Epoch, Stage: s.Stage.String(), Window: s.Window, Cost: Cost(s.Cost), Reason: s.Reason, RunnersUp: []Alternative{}}
	for _, v := range s.Switches {
		parent := ""
		if v.Parent >= 0 {
			parent = s.Switches[v.Parent].Switch
		}
		t.Switches = append(t.Switches, Vertex{v.Switch, parent})
	}
	for _, l := range s.Members {
		t.Members = append(t.Members, Leaf{l.Host, s.Switches[l.Vertex].Switch})
	}
	for _, r := range s.RunnersUp {
		t.RunnersUp = append(t.RunnersUp, Alternative{r.Root, Cost(r.Cost), r.Lost})
	}
	return t
}

// Text writes the group and its trees for people.
func (g Group) Text(w io.Writer) error {
	g.head(w)
	for _, t := range g.Trees {
		fmt.Fprintf(w, "\nTree of epoch %d, %s, window %d:\n", t.Epoch, t.Stage, t.Window)
		for i, v := range t.Switches {
			if i == 0 {
				t.branch(w, v, 1)
			}
		}
	}
	return nil
}

func (g Group) head(w io.Writer) {
	fmt.Fprintf(w, "Group %d, %s: %s, %d members, %d of them watch\n", g.Summary.Group, g.Name, g.State, g.Members, g.Watching)
	if len(g.Missing) > 0 {
		fmt.Fprintf(w, "Not watching: ranks %s\n", strings.Trim(fmt.Sprint(g.Missing), "[]"))
	}
	if g.Offload+g.Hosts > 0 {
		fmt.Fprintf(w, "Running: %d members over switches, %d over hosts\n", g.Offload, g.Hosts)
	}
	if g.Refusal != "" {
		fmt.Fprintf(w, "Refused: %s\n", g.Refusal)
	}
	mismatchesText(w, g.Mismatches)
}

// branch writes a switch, its members on a line, and the switches beneath it.
func (t *Tree) branch(w io.Writer, v Vertex, depth int) {
	fmt.Fprintf(w, "%s%s", strings.Repeat("    ", depth), v.Switch)
	if v.Parent == "" {
		fmt.Fprint(w, " (root)")
	}
	var members []string
	for rank, l := range t.Members {
		if l.Switch == v.Switch {
			members = append(members, fmt.Sprintf("%s (%d)", l.Host, rank))
		}
	}
	if len(members) > 0 {
		fmt.Fprint(w, ": ", strings.Join(members, ", "))
	}
	fmt.Fprintln(w)
	for _, child := range t.Switches {
		if child.Parent == v.Switch {
			t.branch(w, child, depth+1)
		}
	}
}

// Explain writes why the group stands as it does, for people.
func (g Group) Explain(w io.Writer) error {
	g.head(w)
	for _, t := range g.Trees {
		fmt.Fprintf(w, "\nTree of epoch %d, %s, root %s: %s\n", t.Epoch, t.Stage, t.Switches[0].Switch, t.Reason)
		fmt.Fprintf(w, "    %v\n", pathsel.Cost(t.Cost))
		for _, r := range t.RunnersUp {
			fmt.Fprintf(w, "    instead of %s: %s\n", r.Root, r.Lost)
		}
	}
	if len(g.History) > 0 {
		fmt.Fprintln(w, "\nHistory:")
	}
	for _, c := range g.History {
		fmt.Fprintf(w, "    %s  %s\n", c.At.UTC().Format("2006-01-02 15:04:05.000 UTC"), c.What)
	}
	return nil
}

// GroupSVG draws a group's trees in the manager's fabric.
func GroupSVG(ctx context.Context, w io.Writer, f rpc.Fabric, e rpc.Explanation) error {
	fabric, err := Scene(f)
	if err != nil {
		return err
	}
	var scenes []picture.Scene
	for _, s := range e.Trees {
		scene := fabric
		scene.Heading = fmt.Sprintf("Tree of epoch %d, %s", s.Epoch, s.Stage)
		if scene.Tree, err = treeOf(s, f, fabric.View.Graph()); err != nil {
			return err
		}
		scenes = append(scenes, scene)
	}
	if len(scenes) == 0 {
		fabric.Heading = "No tree: the group is " + e.State.String()
		scenes = append(scenes, fabric)
	}
	return picture.SVG(ctx, w, fmt.Sprintf("Group %d, %s", e.Group, e.Name), scenes...)
}

// treeOf finds a tree that is told by names in the graph of f.
func treeOf(s rpc.TreeState, f rpc.Fabric, g *topology.Graph) (t pathsel.Tree, err error) {
	find := func(name string) topology.NodeID {
		n, ok := g.Lookup(name)
		if !ok {
			err = fmt.Errorf("%w: it has no %q, which is on a tree", ErrFabric, name)
		}
		return n
	}
	for i, v := range s.Switches {
		vertex := pathsel.Vertex{Switch: find(v.Switch), Parent: int32(v.Parent), Up: topology.NoLink}
		if i > 0 && err == nil {
			vertex.Up = between(f, g, vertex.Switch, t.Vertices[v.Parent].Switch)
		}
		t.Vertices = append(t.Vertices, vertex)
	}
	for _, l := range s.Members {
		leaf := pathsel.Leaf{Host: find(l.Host), Vertex: int32(l.Vertex)}
		if err == nil {
			leaf.Link = between(f, g, leaf.Host, t.Vertices[l.Vertex].Switch)
		}
		t.Leaves = append(t.Leaves, leaf)
	}
	return t, err
}

// between returns the link between two nodes, of several the one that carries
// the most trees.
func between(f rpc.Fabric, g *topology.Graph, a, b topology.NodeID) topology.LinkID {
	best := topology.NoLink
	for _, l := range g.Adjacent(a) {
		if g.Across(l, a) == b && (best == topology.NoLink || f.Cables[l].Trees > f.Cables[best].Trees) {
			best = l
		}
	}
	return best
}
