package agent

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/topology"
)

// Output is what a Step wants done. Actions are to be done in their order,
// and before Replies are sent: who reads Committed may send to the switch.
type Output struct {
	Actions []Action
	Replies []Reply
	Ended   []Ended
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	clear(o.Actions)
	clear(o.Replies)
	clear(o.Ended)
	o.Actions, o.Replies, o.Ended = o.Actions[:0], o.Replies[:0], o.Ended[:0]
}

// ActionKind is what is to be done with a data socket.
type ActionKind uint8

// The actions.
const (
	// Open: open a data socket with an empty aggregate core behind it, and
	// answer with Bound.
	Open ActionKind = iota + 1
	// Install: give Config to the socket's aggregate core.
	Install
	// Retire: let the socket's aggregate core forget Epoch.
	Retire
	// Close: close the socket and throw its aggregate core away. Nothing is
	// answered; if the socket is still being opened, close it then.
	Close
)

var actionNames = [...]string{"action(0)", "open", "install", "retire", "close"}

// String returns the action's name.
func (k ActionKind) String() string { return core.Name(actionNames[:], k, "action(?)") }

// Action is one thing to do.
type Action struct {
	Kind   ActionKind
	Socket uint64 // which socket; numbered by the core, never twice
	Group  uint32
	Epoch  uint32               // Install and Retire
	Config *switchreduce.Config // Install; read only
}

// ReplyKind is the kind of an answer.
type ReplyKind uint8

// The answers.
const (
	Prepared  ReplyKind = iota + 1 // reserved; Addr is where the tree's data goes
	Committed                      // in use
	Removed                        // nothing of that epoch is left
	Drained                        // Drain was taken
	Refused                        // Refusal reports why
)

var replyNames = [...]string{"reply(0)", "prepared", "committed", "removed", "drained", "refused"}

// String returns the answer's name.
func (k ReplyKind) String() string { return core.Name(replyNames[:], k, "reply(?)") }

// Reply is the answer to one request. Every request of a manager gets exactly
// one, the Prepare that has to wait for its socket included.
type Reply struct {
	Req         uint64
	Incarnation uint64 // of the agent that answers
	Kind        ReplyKind
	Group       uint32
	Epoch       uint32
	Addr        netip.AddrPort   // Prepared
	Reducer     topology.Reducer // Committed; zero until the driver has reported
	Refusal     *Refusal         // Refused
}

// EndReason is why an agent gave an epoch up by itself.
type EndReason uint8

// The reasons.
const (
	PrepareRanOut EndReason = iota + 1 // no Commit came within Prepare.Lease
	LeaseRanOut                        // committed, but no packet renewed it
	PlaneFailed                        // committed, but what reduces has lost it, or could not take it
)

var endNames = [...]string{"end(0)", "no commit came in time", "no packet renewed its lease", "its data plane has lost it"}

// String reports the reason.
func (r EndReason) String() string { return core.Name(endNames[:], r, "end(?)") }

// Ended reports to a manager that the switch has freed an epoch by itself.
type Ended struct {
	Incarnation uint64
	Group       uint32
	Epoch       uint32
	Why         EndReason
}

// Hold is one epoch that the switch has promised: its inventory is what a
// manager compares its own record with when it meets the agent again.
type Hold struct {
	Group     uint32
	Epoch     uint32
	Window    uint32 // in chunks
	Committed bool
	Addr      netip.AddrPort   // zero while the socket is being opened
	Reducer   topology.Reducer // zero until it is committed and the driver has reported
}
