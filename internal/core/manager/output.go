package manager

import (
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Output is what a Step wants done. The lists do not wait for each other:
// what has to wait for a Record comes out in the Step that was given its
// Stored. Within one list the order counts. What it points to is read only.
type Output struct {
	Persist []Record
	// View is the fabric of all plans from now on; its Graph is nil if nothing changed.
	// With Anew the planner begins anew, with another graph and without trees: Loads
	// and Slots have all that there is.
	View        topology.View
	Anew        bool
	Loads       []pathsel.Tree // count from now on; see "Who plans" in the package's documentation
	Unloads     []pathsel.Tree // count no longer
	Slots       []SlotUse      // reserved from now on
	Plans       []PlanRequest
	Cancels     []Cancel // of plans that nobody waits for any more, be they of this Step
	Prepares    []Prepare
	Commits     []Commit
	Removes     []Remove
	Offers      []Offer
	Withdrawals []Withdrawal
	Links       []Links
	Notices     []Notice
	Replies     []Reply
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	o.View, o.Anew = topology.View{}, false
	reset(&o.Persist)
	reset(&o.Loads)
	reset(&o.Unloads)
	reset(&o.Slots)
	reset(&o.Plans)
	reset(&o.Cancels)
	reset(&o.Prepares)
	reset(&o.Commits)
	reset(&o.Removes)
	reset(&o.Offers)
	reset(&o.Withdrawals)
	reset(&o.Links)
	reset(&o.Notices)
	reset(&o.Replies)
}

func reset[T any](s *[]T) {
	clear(*s)
	*s = (*s)[:0]
}

// PlanRequest asks for a tree. A later one for the same group replaces it.
type PlanRequest struct {
	Group   uint32
	Plan    uint64 // for Planned; rises
	Request pathsel.Request
	// Own are the trees that the group has, and OwnSlots what it has reserved:
	// the new tree takes their place, so that they do not count for this plan.
	Own      []pathsel.Tree
	OwnSlots []SlotUse
}

// Cancel ends a PlanRequest without an answer. One that is on its way is ignored.
type Cancel struct {
	Group uint32
	Plan  uint64
}

// SlotUse is the slots that are reserved on a switch.
type SlotUse struct {
	Switch topology.NodeID
	Slots  int
}

// Prepare goes to the agent of Switch. The driver sets Req as it likes: the
// answer is known by group, tree and epoch.
type Prepare struct {
	Switch string
	agent.Prepare
}

// Commit goes to the agent of Switch.
type Commit struct {
	Switch string
	agent.Commit
}

// Remove goes to the agent of Switch.
type Remove struct {
	Switch string
	agent.Remove
}

// Offer gives one member a tree that it may enter: all that it needs to be
// a child of its leaf switch. The same offer may come again.
type Offer struct {
	Group, Rank uint32
	Stream      uint64
	Epoch       uint32 // even
	Protection  wire.Protection
	Key         wire.Secret    // of the member and its parent, where packets are protected
	Cookie      wire.Cookie    // secret of the member and its parent, never zero
	Window      uint32         // in chunks, a power of two, at most Create.Window
	Parent      netip.AddrPort // data address of the leaf switch
	Source      netip.Addr     // from which that expects the member's packets
	Index       uint16         // child index there
	Probes      int            // unanswered probes after which the tree counts as lost
	Idle        time.Duration  // period of idle probes, a third of the lease
	Reducers    []TreeReducer  // what reduces on its switches; read only
}

// Withdrawal reports to a member that an offered tree is lost.
type Withdrawal struct {
	Group, Rank uint32
	Stream      uint64
	Epoch       uint32
	Why         string
}

// Links reports to the lowest rank of a group what joins the members' hosts to the fabric.
type Links struct {
	Group, Rank   uint32
	Stream        uint64
	pathsel.Links // zero: the fabric lacks a host, or its links
}

// Notice reports to a member how its group stands, or that its stream is over.
type Notice struct {
	Group, Rank uint32
	Stream      uint64
	// Err is a *Refusal, why the group has no tree, which holds until an offer
	// or another notice comes; or, with End, ErrReleased, ErrReplaced, or what
	// was wrong with the Watch.
	Err error
	End bool // the stream is over
}

// Reply is the answer to a Create, Release, Turn, Drain or Keep.
type Reply struct {
	Req   uint64
	Group uint32 // Create, Release
	Found bool   // Create: the group stood already
	Err   error  // nil, or one of this package's errors, wrapped
}

// Event is what goes to a host: one of its fields.
type Event struct {
	Reply      *Reply
	Offer      *Offer
	Withdrawal *Withdrawal
	Links      *Links
	Notice     *Notice
	Costs      *pathsel.Costs // of no group, and not from the core
}
