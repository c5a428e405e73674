package manager

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// RecordKind says which of a Record's parts counts.
type RecordKind uint8

// The kinds of records.
const (
	SpecRecord     RecordKind = iota + 1 // what a group was created with; never changes
	TreesRecord                          // a group's epochs and trees
	FleetRecord                          // what is of no group; Record.Group is 0
	OperatorRecord                       // the driver's: the operator's part of the topology; Record.Group is 0
	MapRecord                            // the driver's: the fabric in effect; Record.Group is 0
	HistoryRecord                        // the driver's: a change of the fabric; Record.Group is its place among those that are kept
)

// Record is something to be kept over a restart: the value of the key (Kind,
// Group). A later record replaces an earlier one of the same key. What a
// record points to is never changed after it was given out.
type Record struct {
	Seq    uint64 // rises; Stored names it
	Kind   RecordKind
	Group  uint32
	Delete bool // the key is to be forgotten; it has no value
	Spec   *Spec
	Trees  *Trees
	Fleet  *Fleet
	Kept   []byte // of the driver's kinds: what Keep had
}

// Spec is what a group was created with.
type Spec struct {
	Name       string
	Members    []string // host names by rank
	ChunkBytes int
	Window     uint32
	Functions  topology.Functions
	Types      topology.Types
	Purpose    pathsel.Purpose
	Bundle     Bundle
	Secret     wire.Secret
	Protection wire.Protection `json:",omitempty"`
	Owner      string          `json:",omitempty"` // as in Create
}

// Format implements fmt.Formatter as switchreduce.Config does.
func (s Spec) Format(f fmt.State, verb rune) {
	type plain Spec // without this method
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), plain(s))
}

// Trees are a group's epochs.
type Trees struct {
	Epoch uint32 // the last that was given
	Live  []Tree // trees that members may know of, oldest first
	Ended bool   // the group has been released
}

// Tree is a tree that is active, or was until a later one became so.
type Tree struct {
	Epoch    uint32
	Window   uint32
	Plan     pathsel.Plan
	Switches []Site           // by vertex of Plan.Tree
	Members  []netip.AddrPort // data addresses that its leaf switches know, by rank

	// Plan has the numbers of one graph, which is another when the record is read.
	// JSON has the names of what it refers to: of its links, as
	// topology.Graph.LinkName writes them, and of the roots of its rivals; switches
	// and members have theirs elsewhere. Records of earlier versions have none: their
	// numbers are taken for those of the graph.
	Links map[topology.LinkID]string `json:",omitempty"`
	Roots map[topology.NodeID]string `json:",omitempty"`
	graph *topology.Graph            // whose numbers Plan has; nil: it was read from JSON
}

// MarshalJSON implements json.Marshaler: it adds the names.
func (t Tree) MarshalJSON() ([]byte, error) {
	type plain Tree // without this method
	if g := t.graph; g != nil {
		t.Links, t.Roots = map[topology.LinkID]string{}, map[topology.NodeID]string{}
		for l := range t.Plan.Tree.Links() {
			t.Links[l] = g.LinkName(l)
		}
		for _, r := range t.Plan.Rivals {
			t.Roots[r.Root] = g.Name(r.Root)
		}
	}
	return json.Marshal(plain(t))
}

// planIn returns the plan with the numbers of g, and whether g has all of its tree.
func (t *Tree) planIn(g *topology.Graph, members []string) (p pathsel.Plan, whole bool) {
	switch {
	case t.graph != nil:
		return t.Plan.Renumbered(topology.NewMapping(t.graph, g))
	case t.Links == nil:
		return t.Plan, true
	case len(t.Switches) != len(t.Plan.Tree.Vertices) || len(members) != len(t.Plan.Tree.Leaves):
		return t.Plan, false
	}
	n := named{g, map[topology.NodeID]string{}, t.Links}
	for id, name := range t.Roots {
		n.nodes[id] = name
	}
	for i, v := range t.Plan.Tree.Vertices {
		n.nodes[v.Switch] = t.Switches[i].Name
	}
	for rank, l := range t.Plan.Tree.Leaves {
		n.nodes[l.Host] = members[rank]
	}
	return t.Plan.Renumbered(n)
}

// named are the pathsel.Numbers in a graph of what has names.
type named struct {
	in    *topology.Graph
	nodes map[topology.NodeID]string
	links map[topology.LinkID]string
}

// At implements pathsel.Numbers.
func (x named) At(n topology.NodeID) (topology.NodeID, bool) { return x.in.Lookup(x.nodes[n]) }

// Link implements pathsel.Numbers.
func (x named) Link(l topology.LinkID) (topology.LinkID, bool) { return x.in.LookupLink(x.links[l]) }

// Site is a tree on one of its switches.
type Site struct {
	Name        string // of the switch: node numbers may change when a topology is edited
	Incarnation uint64
	Addr        netip.AddrPort // data address
}

// Fleet is what the manager knows that is of no group.
type Fleet struct {
	LastGroup uint32   // the highest group number that was given; numbers are never reused
	Drained   []string // names of switches
	Term      uint64   `json:",omitempty"` // of the last manager: later ones have higher ones
}
