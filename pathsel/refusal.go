package pathsel

import (
	"errors"

	"github.com/tributary-fabric/tributary/topology"
)

// ErrNoTree is what every *Refusal answers errors.Is with: the request is
// valid, but the fabric has no tree for it now.
var ErrNoTree = errors.New("no tree")

// ErrRequest is wrapped by every error about a request that no fabric could
// fulfil; ErrNoMembers, ErrUnknownHost and ErrDuplicateMember stand beside it.
var ErrRequest = errors.New("invalid tree request")

// The errors about a group's members.
var (
	ErrNoMembers       = errors.New("the group has no members")
	ErrUnknownHost     = errors.New("no such host in the fabric")
	ErrDuplicateMember = errors.New("a host is a member twice")
)

// Resource is what a refusal lacks.
type Resource uint8

// The resources.
const (
	Path       Resource = iota + 1 // nodes or links that are up, between the members
	Functions                      // reduction functions of a switch
	Types                          // element types of a switch
	Protection                     // that a switch authenticates and encrypts packets
	Speed                          // that a switch reduces at
	Chunk                          // bytes of a chunk that a switch can reduce
	Slots                          // free slots of a switch
	Children                       // children that a switch can serve
)

var resourceNames = [...]string{"resource(0)", "path", "functions", "types", "protection", "speed", "chunk bytes", "slots", "children"}

// String returns the resource's name in words.
func (r Resource) String() string { return nameOf(r, resourceNames[:], "resource") }

// Refusal says why a group has no tree: the resource that is short, where, and
// how much of it is free. It is an ErrNoTree.
type Refusal struct {
	Resource Resource
	// Switch is where the resource is short: one that would have served, chosen
	// as the nearest to being usable. NoNode where a path is missing and no
	// switch is to blame.
	Switch topology.NodeID
	// Member is a host that has no way into the tree for it; NoNode where that
	// cannot be said of one.
	Member topology.NodeID
	// Free and Need count the resource: slots, children, bytes; of Functions
	// and Types they are the sets; of Path the members reached and all members.
	Free, Need int

	text string
}

// Error says it in a sentence, with the nodes' names.
func (r *Refusal) Error() string { return "no tree: " + r.text }

// Is reports whether target is ErrNoTree.
func (r *Refusal) Is(target error) bool { return target == ErrNoTree }
