package manager

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// RecordKind says which of a Record's parts counts.
type RecordKind uint8

// The kinds of records.
const (
	SpecRecord  RecordKind = iota + 1 // what a group was created with; never changes
	TreesRecord                       // a group's epochs and trees
	FleetRecord                       // what is of no group; Record.Group is 0
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
	Secret     [32]byte
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
}

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
}
