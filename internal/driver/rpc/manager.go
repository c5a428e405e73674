package rpc

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Manager is the service of an offload manager. Its errors are those of
// internal/core/manager.
type Manager interface {
	// CreateGroup makes a group, or joins one (found). Req and Secret of c are
	// ignored.
	CreateGroup(ctx context.Context, c manager.Create) (group uint32, found bool, err error)

	// ReleaseGroup ends a group.
	ReleaseGroup(ctx context.Context, group uint32) error

	// HostSession serves a host until the host or the manager ends the session: it
	// answers every Create and Release, and reports those whom the host watches how
	// their groups stand. The Stream fields are ignored.
	HostSession(ctx context.Context, host HostStream) error

	// Groups returns all groups, by number.
	Groups(ctx context.Context) ([]manager.Summary, error)

	// Explain reports how a group stands, and why.
	Explain(ctx context.Context, which GroupRef) (Explanation, error)

	// Topology returns the fabric as the manager sees it.
	Topology(ctx context.Context) (Fabric, error)

	// SetTopology replaces the operator's part of the topology, EditTopology changes it
	// by a patch. DiffTopology returns what a file has other than the map in effect or,
	// without content, what the map has other than the operator's part.
	SetTopology(ctx context.Context, f TopologyFile) (TopologyDifference, error)
	EditTopology(ctx context.Context, f TopologyFile) (TopologyDifference, error)
	DiffTopology(ctx context.Context, f TopologyFile) (TopologyDifference, error)

	// TopologyFile returns the operator's part of the topology, or the map in effect.
	TopologyFile(ctx context.Context, inEffect bool) (TopologyFile, error)

	// TopologyHistory returns the last changes of the map, oldest first.
	TopologyHistory(ctx context.Context) ([]MapChange, error)

	// PlanGroup reports which groups a communicator could have: those of c.Bundle,
	// whose Index is ignored, as are Name and Secret of c. It makes none.
	PlanGroup(ctx context.Context, c manager.Create) (GroupPlan, error)

	// DrainSwitch takes a switch out of use, or back into it.
	DrainSwitch(ctx context.Context, name string, on bool) error
}

// GroupRef names a group, by its name if that is not empty, else by number.
type GroupRef struct {
	Group uint32
	Name  string
}

// GroupPlan is which groups a communicator could have.
type GroupPlan struct {
	Groups []PlannedGroup // at least one: the stripes that are apart, or the parts by their lowest ranks
	Fewer  error          // why they are fewer than were wanted; nil: they are not
}

// PlannedGroup is one of them, and its tree.
type PlannedGroup struct {
	Ranks   []int  // of a part: its members, by their ranks in the whole, rising; of a stripe: nil
	Root    string // name of the switch
	Figures pathsel.Figures
}

// NewGroupPlan returns p with the names that g gives.
func NewGroupPlan(p manager.GroupPlan, g *topology.Graph) GroupPlan {
	return GroupPlan{Fewer: p.Fewer, Groups: each(p.Groups, func(one pathsel.Part) PlannedGroup {
		return PlannedGroup{one.Ranks, g.Name(one.Plan.Tree.Root()), one.Plan.Figures}
	})}
}

// Explanation is a manager.Explanation with names in place of node numbers,
// which mean nothing outside of the manager.
type Explanation struct {
	manager.Summary
	Purpose pathsel.Purpose   // as it was created
	Sisters []manager.Summary // the other groups of its bundle, by index
	Missing []uint32          // ranks that do not watch; the first few
	Trees   []TreeState
	Refusal error // why there is no tree, or no replacement; may be nil
	Offload int   // members that reported to run over switches
	Hosts   int   // members that reported to run over hosts
	History []Change
	// Mismatches are the links that have not carried what the group's trees
	// exchanged over them.
	Mismatches []LinkMismatch
}

// TreeState is one tree of a group.
type TreeState struct {
	Epoch     uint32
	Stage     manager.Stage
	Window    uint32       // in chunks
	Switches  []TreeVertex // parents before their children; the first is the root
	Members   []TreeLeaf   // by rank
	Figures   pathsel.Figures
	Criterion pathsel.Criterion // that it was chosen by; ByFunction where weights decided
	Because   string            // why by that
	Method    string            // how it was found; empty: a manager that does not report
	Exact     bool              // no tree of the fabric is better
	Forecast  pathsel.Forecast  // by the manager's model; zero where the bytes are not known
	RunnersUp []Alternative     // the best others, best first
	Reason    string            // why this tree
}

// TreeVertex is a switch on a tree.
type TreeVertex struct {
	Switch string
	Parent int      // index in TreeState.Switches; -1: the root
	Links  []string // to the parent, the own end first; several where switches only forward
	// Reducer is what reduces there; zero: it is not known.
	Reducer topology.Reducer
}

// TreeLeaf is a member on a tree.
type TreeLeaf struct {
	Host   string
	Vertex int      // index of its leaf switch in TreeState.Switches
	Links  []string // to that, as of a TreeVertex
	Rail   string   // from which the host's packets come; empty: none is known at the link
}

// Alternative is a tree that was not chosen.
type Alternative struct {
	Root    string
	Method  string
	Figures pathsel.Figures // of some only the hops, the depth and the use
	Lost    string          // by how much, in words
}

// Change is an entry of a group's history.
type Change struct {
	At   time.Time
	What string
}

// MapChange is an entry of the map's history.
type MapChange struct {
	At      time.Time
	Version uint64   // of the map, after it
	Cause   string   // who or what brought it about; empty: What says so
	What    []string // a line each
	More    int      // lines beyond those
}

// Fabric is a fabric as a manager sees it.
type Fabric struct {
	Name                   string
	Version                uint64 // counts the changes since the manager read it
	Hosts, Switches, Links int
	Nodes                  []FabricNode
	Cables                 []FabricLink
	Alarms                 []Alarm // of discovery, that hold
}

// FabricNode is a host or a switch.
type FabricNode struct {
	Name   string
	Up     bool
	Why    string         // it is down: who says so, and why
	Switch *SwitchState   // nil: a host
	Speed  topology.Speed // of a host; that of a switch is in its capability
}

// SwitchState is how a switch stands.
type SwitchState struct {
	Capability topology.Capability
	Connected  bool // the manager has its agent
	Draining   bool
	Trees      int // that it carries
	SlotsUsed  int
	SlotsMost  int     // that groups may have: those of the capability, within the manager's quota
	Wanted     int     // slots that the groups whose trees it carries could use
	CPU        float64 // share of its time that is in use, as plans count it; 0: not known

	Agent        string // its address; empty: there is none
	AgentVersion string // as its agent reported last; empty: it has not
	Unusable     string // why its agent can reserve nothing at present, as it reported last; empty: it can
}

// FabricLink is a link.
type FabricLink struct {
	A, B    FabricEnd
	Up      bool   // itself; its ends may yet be down
	Why     string // it is down: who says so, and why
	Carries topology.LinkSpec
	Trees   int     // that it carries
	Foreign float64 // share that traffic of no tree has, as plans count it; 0: not known

	Mismatches []LinkMismatch // at either end, in either direction
}

// FabricEnd is where a link ends.
type FabricEnd struct {
	Node string
	Port topology.Port
}

// NewExplanation returns x with the names that g gives, and with the times
// that at gives.
func NewExplanation(x manager.Explanation, g *topology.Graph, at func(manager.Change) time.Time) Explanation {
	return Explanation{
		Summary: x.Summary, Purpose: x.Purpose, Sisters: x.Sisters, Missing: x.Missing, Refusal: x.Refusal, Offload: x.Offload, Hosts: x.Hosts,
		Trees:   each(x.Trees, func(t manager.TreeState) TreeState { return newTreeState(t, x.Names, g) }),
		History: each(x.History, func(c manager.Change) Change { return Change{at(c), c.What} }),
	}
}

// gone stands for a link that the fabric does not have any more.
const gone = "no longer in the fabric"

func newTreeState(t manager.TreeState, members []string, g *topology.Graph) TreeState {
	p := &t.Plan
	s := TreeState{
		Epoch: t.Epoch, Stage: t.Stage, Window: t.Window, Figures: p.Figures, Criterion: p.Criterion, Because: p.Because,
		Method: p.Method.String(), Exact: p.Exact, Forecast: p.Forecast, Reason: p.Reason,
	}
	names := func(links []topology.LinkID) []string {
		return each(links, func(l topology.LinkID) string {
			if !g.HasLink(l) {
				return gone
			}
			return g.LinkName(l)
		})
	}
	edges := p.Tree.Edges()
	for i, v := range p.Tree.Vertices {
		x := TreeVertex{Switch: t.Names[i], Parent: int(v.Parent), Links: names(edges.OfVertex(i))}
		if i < len(t.Reducers) {
			x.Reducer = t.Reducers[i]
		}
		s.Switches = append(s.Switches, x)
	}
	for rank, l := range p.Tree.Leaves {
		x := TreeLeaf{Host: members[rank], Vertex: int(l.Vertex), Links: names(edges.OfLeaf(rank))}
		if rank < len(t.Rails) {
			x.Rail = t.Rails[rank]
		}
		s.Members = append(s.Members, x)
	}
	s.RunnersUp = each(p.Rivals, func(r pathsel.Rival) Alternative {
		return Alternative{g.Name(r.Root), r.Method.String(), r.Figures, r.Lost}
	})
	return s
}

// String returns the group's name in quotes, or its number.
func (r GroupRef) String() string {
	if r.Name != "" {
		return fmt.Sprintf("group %q", r.Name)
	}
	return fmt.Sprintf("group %d", r.Group)
}
