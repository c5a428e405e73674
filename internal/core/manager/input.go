package manager

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Input is one of the structs of this file that have the method. Switches and hosts
// go by name, since numbers are those of one graph.
type Input interface{ input() }

// Create makes a group, or joins one: a Create whose Name, Members and options
// are those of a group that stands gets that group's number.
type Create struct {
	Req        uint64 // repeated in the Reply
	Name       string
	Members    []string // host names; the index is the rank; kept, read only
	ChunkBytes int      // largest payload of a packet, fixed for the group's life
	Window     uint32   // largest window of any epoch, in chunks; a power of two
	Functions  topology.Functions
	Types      topology.Types
	Purpose    pathsel.Purpose // decides which tree is the best; Bytes are those of the communicator's vector
	Bundle     Bundle          // if the communicator has several groups
	Protection wire.Protection // of the packets on the group's trees
	// Owner is the host that asks, by which quotas go; empty: an operator.
	Owner string
	// Secret is where the cookies of the group's trees come from. The driver
	// draws it from crypto/rand; all zeros are refused. It counts only for the
	// Create that makes the group.
	Secret wire.Secret
}

// Watch reports that a member listens, and where its tree's data is to come
// from. A later Watch of the same rank takes the place of the former.
type Watch struct {
	Group    uint32
	Rank     uint32
	Of       string // what the group's name begins with, else it is another's: after a loss of memory numbers come again; empty: any
	DataAddr netip.AddrPort
	Proven   netip.Addr     // the member's host is there, as its session shows under its certificate; invalid: there is no proof
	Stream   uint64         // the driver's name of the stream; repeated in what goes to it; never reused
	Entered  uint32         // epoch that the member is in; 0: none yet
	Speed    topology.Speed // at which the member's host reduces
	Rails    []Rail         // of the member's host; kept, read only
	// OnlyRails: the member's packets take Rails alone; otherwise links without a rail
	// as well.
	OnlyRails bool
}

// Rail is a rail of a member's host: an address from which it can send, at the port of
// its DataAddr.
type Rail struct {
	Name    string
	Address netip.Addr
	Fault   string // why it carries nothing; empty: it may carry
}

// Unwatch reports that a stream has ended.
type Unwatch struct {
	Group, Rank uint32
	Stream      uint64
	Over        bool // nobody works in the group any more, as its communicator is revoked: it is released, and its trees go at once
}

// Planned is the answer to a PlanRequest: a tree, or the error that a
// pathsel.Planner gave.
type Planned struct {
	Group  uint32
	Plan   uint64
	Chosen pathsel.Plan // if Err is nil; kept, read only
	Err    error
}

// SwitchUp reports that a switch's agent is connected, and what it holds. It may
// come again for one that is up; it need not have been SwitchDown before.
type SwitchUp struct {
	Switch      string
	Incarnation uint64
	Capability  topology.Capability
	Draining    bool         // the agent refuses new reservations
	Outlives    bool         // what reduces goes on when the agent dies
	Holds       []agent.Hold // read during Step only
}

// SwitchDown reports that a switch, or its agent, is dead or cut off.
type SwitchDown struct {
	Switch string
	Why    string
}

// Answer is what an agent answered to a Prepare, Commit or Remove. A request
// whose answer was lost needs none: it is repeated, or given up.
type Answer struct {
	Switch string
	Reply  agent.Reply
}

// Ended reports that a switch has freed an epoch by itself.
type Ended struct {
	Switch string
	End    agent.Ended
}

// TopologyChanged brings a later snapshot of the fabric. One of another graph than
// that of the last Redrawn is late, and ignored.
type TopologyChanged struct {
	View topology.View
}

// Redrawn brings another graph: nodes and links have come, gone or moved. What is in
// both graphs, by name, goes on.
type Redrawn struct {
	View       topology.View
	Unattended []string // switches without an agent, as in Config
	Grown      bool     // there are links that the graph before did not have
	Cause      string   // why, for people; may be empty
}

// Transport is how a member runs its collectives.
type Transport uint8

// The ways.
const (
	NoTransport Transport = iota // nothing reported yet
	Offload                      // over the switches of its epoch's tree
	HostTree                     // over hosts
)

var transportNames = [...]string{"none", "offload", "host-tree"}

// String returns the way's name.
func (w Transport) String() string { return core.Name(transportNames[:], w, "transport(?)") }

// Report is what a member reports its epochs.
type Report struct {
	Group, Rank uint32
	Entered     uint32 // epoch that it is in
	Transport   Transport
	Lost        uint32 // epoch whose tree it has lost; 0: none
	Silent      bool   // Lost: its own parent did not answer; else, the loss is further up
	// Demand is the window that the group's operations can use, in chunks; 0: the
	// member does not say, and then it counts as the group's largest. That of the
	// lowest rank counts.
	Demand uint32
	Reason string // Lost: what the member has seen, for people
	Stream uint64 // of the member's Watch, without which the report does not count; 0: it counts in any case
}

// Release ends a group. Its trees go after Config.ReleaseGrace.
type Release struct {
	Req   uint64
	Group uint32
}

// Turn asks for a turn at the planner, for a Draft. The Reply is that it is there, or an
// error; in either case TurnOver ends it.
type Turn struct {
	Req   uint64
	Owner string // the host that asks; empty: an operator
	Cost  int    // about how much there is to plan, in members
}

// TurnOver ends a turn, or the wait for it.
type TurnOver struct{ Req uint64 }

// Drain takes a switch out of use (On) or back into it. Active trees on it
// are replaced where there is another way, and stay where there is none. A switch
// whose agent refuses reservations itself stays out of use, with ErrAgentDrained.
type Drain struct {
	Req    uint64
	Switch string
	On     bool
}

// Keep stores something of the driver's own, in place of what it stored before at the same
// place. The Reply comes when it is stored.
type Keep struct {
	Req   uint64     // 0: nobody waits for a Reply
	Kind  RecordKind // OperatorRecord, MapRecord or HistoryRecord
	Place uint32     // of a HistoryRecord; else 0
	Kept  []byte     // read only
}

// Stored reports that all Records up to Seq survive a restart of the manager.
type Stored struct{ Seq uint64 }

// Unstored says that the store has refused Records up to Seq. The driver gives up
// the SpecRecords among them, and retries the others until they are Stored.
type Unstored struct {
	Seq uint64
	Err error // names the store and the cause
}

func (Create) input()          {}
func (Watch) input()           {}
func (Unwatch) input()         {}
func (Planned) input()         {}
func (SwitchUp) input()        {}
func (SwitchDown) input()      {}
func (Answer) input()          {}
func (Ended) input()           {}
func (TopologyChanged) input() {}
func (Redrawn) input()         {}
func (Report) input()          {}
func (Release) input()         {}
func (Turn) input()            {}
func (TurnOver) input()        {}
func (Drain) input()           {}
func (Keep) input()            {}
func (Stored) input()          {}
func (Unstored) input()        {}
