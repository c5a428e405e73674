package manager

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// State is how a group stands.
type State uint8

// The states.
const (
	Waiting   State = iota + 1 // for members to watch
	Planning                   // a tree is being chosen, or the next attempt waits
	Preparing                  // a tree is planned or prepared
	Active                     // a tree is active; its replacement may be under way
	Refusing                   // there is no tree, for a reason that has to go first
	Releasing                  // the group has been released, its trees are going
	OnHosts                    // there is no tree, since hosts are faster
)

// States are all of them.
var States = []State{Waiting, Planning, Preparing, Active, Refusing, Releasing, OnHosts}

var stateNames = [...]string{"state(0)", "waiting", "planning", "preparing", "active", "refused", "releasing", "over hosts"}

// String returns the state's name.
func (s State) String() string { return core.Name(stateNames[:], s, "state(?)") }

// Stage is how far a tree has come.
type Stage uint8

// The stages; a tree that is gone is no longer listed.
const (
	TreePlanned Stage = iota + 1
	TreePrepared
	TreeActive
	TreeDraining
	TreeGone
)

var stageNames = [...]string{"stage(0)", "planned", "prepared", "active", "draining", "gone"}

// String returns the stage's name.
func (s Stage) String() string { return core.Name(stageNames[:], s, "stage(?)") }

// Summary is a group in a list.
type Summary struct {
	Group    uint32
	Name     string
	Members  int
	Watching int
	State    State
	Epoch    uint32 // of the active tree; 0: none
	Window   uint32 // of the active tree, in chunks; 0: none
	Demand   uint32 // window that its operations can use; 0: its members have not reported
	Bundle   Bundle
}

// Explanation is all that there is to say about a group.
type Explanation struct {
	Summary
	Purpose pathsel.Purpose // as it was created
	Names   []string        // of the members' hosts, by rank; not to be changed
	Sisters []Summary       // the other groups of its bundle, by index
	Missing []uint32        // ranks that do not watch, at most MaxMissing
	Trees   []TreeState
	Refusal error    // why there is no tree, or no replacement; may be nil
	Offload int      // members that reported to run over switches
	Hosts   int      // members that reported to run over hosts
	History []Change // the last changes, oldest first
}

// MaxMissing is the most absent ranks that an Explanation names.
const MaxMissing = 16

// TreeState is one tree of a group.
type TreeState struct {
	Epoch  uint32
	Stage  Stage
	Window uint32
	Plan   pathsel.Plan // the tree, its figures, the rivals, and why; of what has left the fabric NoNode or NoLink
	Names  []string     // of its switches, by vertex
	// Reducers are what reduces on the tree's switches, by vertex; zero: it is not
	// known.
	Reducers []topology.Reducer
	// Rails are the rails of members' hosts from which packets come, by rank: name, address,
	// and why one is down. Empty: the member has reported none at the tree's link.
	Rails []string
}

// Change is an entry of a group's history.
type Change struct {
	At   core.Time
	What string
}

// Groups lists all groups by number.
func (c *Core) Groups() []Summary {
	all := make([]Summary, len(c.order))
	for i, id := range c.order {
		all[i] = c.groups[id].summary()
	}
	return all
}

// Find returns the number of the group of that name, unless it is released.
func (c *Core) Find(name string) (uint32, bool) {
	id, ok := c.names[name]
	return id, ok
}

// Spec returns what a group was created with, not to be changed.
func (c *Core) Spec(id uint32) (*Spec, bool) {
	g := c.groups[id]
	if g == nil {
		return nil, false
	}
	return g.spec, true
}

// Group returns all about a group, and whether there is one of that number.
func (c *Core) Group(id uint32) (Explanation, bool) {
	g := c.groups[id]
	if g == nil {
		return Explanation{}, false
	}
	e := Explanation{
		Summary: g.summary(), Purpose: g.spec.Purpose, Names: g.spec.Members,
		Offload: g.transports[Offload], Hosts: g.transports[HostTree],
		History: slices.Clone(g.history),
	}
	for _, s := range g.sisters() {
		e.Sisters = append(e.Sisters, s.summary())
	}
	if g.refusal != nil {
		e.Refusal = g.refusal
	}
	for rank := range g.members {
		if !g.members[rank].watching && len(e.Missing) < MaxMissing {
			e.Missing = append(e.Missing, uint32(rank))
		}
	}
	for _, t := range g.trees() {
		s := TreeState{Epoch: t.epoch, Stage: t.stage, Window: t.window, Plan: t.plan}
		for i := range t.sites {
			s.Reducers, s.Names = append(s.Reducers, t.sites[i].reducer), append(s.Names, t.sites[i].on.name)
		}
		for rank := range t.plan.Tree.Leaves {
			s.Rails = append(s.Rails, c.railOf(g, t, uint32(rank)))
		}
		e.Trees = append(e.Trees, s)
	}
	return e, true
}

func (g *group) summary() Summary {
	s := Summary{Group: g.id, Name: g.spec.Name, Members: len(g.members), Watching: g.watching, State: g.state(), Demand: g.demand, Bundle: g.spec.Bundle}
	if g.active != nil {
		s.Epoch, s.Window = g.active.epoch, g.active.window
	}
	return s
}

func (g *group) state() State {
	switch {
	case g.released:
		return Releasing
	case g.active != nil:
		return Active
	case g.building != nil:
		return Preparing
	case g.watching < len(g.members):
		return Waiting
	case g.refusal != nil && g.refusal.Reason == ErrHostsFaster:
		return OnHosts
	case g.refusal != nil:
		return Refusing
	}
	return Planning
}

// SwitchState is a switch as the manager sees it.
type SwitchState struct {
	Switch      topology.NodeID
	Name        string
	Connected   bool
	Drained     bool
	Incarnation uint64
	Capability  topology.Capability // as its agent reported; zero before it did
	Used        int                 // slots
	Most        int                 // slots that groups may have: those of the capability, within the quota
	Wanted      int                 // slots that the groups whose trees are here can use
	Holders     []agent.Holder      // by group
}

// Switches lists all switches of the fabric by number.
func (c *Core) Switches() []SwitchState {
	all := make([]SwitchState, len(c.fleet))
	for i, d := range c.fleet {
		all[i] = SwitchState{
			Switch: d.node, Name: d.name, Connected: d.up, Drained: d.avoided(),
			Incarnation: d.incarnation, Capability: d.capability, Used: d.used, Most: d.most(),
			Holders: slices.Clone(d.holdings),
		}
	}
	for _, g := range c.groups {
		if g.active != nil {
			for i := range g.active.sites {
				all[c.graph.SwitchIndex(g.active.sites[i].on.node)].Wanted += 2 * int(c.wants(g))
			}
		}
	}
	return all
}
