package rpc

import (
	"context"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/topology"
)

// Agent is the service of a switch agent. The Req fields of requests are
// ignored. A refusal is a *agent.Refusal.
type Agent interface {
	// State returns what the switch is, can do, and has promised.
	State(ctx context.Context) (AgentState, error)

	// Prepare reserves, and returns the address of the tree's data plane.
	Prepare(ctx context.Context, p agent.Prepare) (netip.AddrPort, error)

	// Commit puts a prepared epoch into use.
	Commit(ctx context.Context, c agent.Commit) (topology.Reducer, error)

	// Remove ends an epoch.
	Remove(ctx context.Context, r agent.Remove) error

	// Drain makes the switch refuse new reservations, or ends that.
	Drain(ctx context.Context, on bool) error

	// SetRoutes replaces what the manager's map says of the switch's ports and routes.
	SetRoutes(ctx context.Context, a portmap.Assignment) error

	// Counters returns what all trees' data planes have counted, and after them
	// what the system has counted on the interfaces.
	Counters(ctx context.Context) (AgentCounters, error)

	// Watch calls event with the agent's state, and then with what it does by
	// itself and how its interfaces change, until the context ends, event fails,
	// or the agent goes. Over the wire, an agent that sends nothing for three
	// heartbeats is gone: the error is ErrSilent.
	Watch(ctx context.Context, heartbeat time.Duration, event func(AgentEvent) error) error
}

// AgentState is what a switch is, can do, and has promised.
type AgentState struct {
	Switch      string // name
	Incarnation uint64
	Capability  topology.Capability
	Draining    bool
	Unusable    string // why nothing can be reserved at present, and what is to be done; empty: it can
	TakesRoutes bool   // ports and routes come by SetRoutes
	Outlives    bool   // what reduces goes on for a while when the agent dies
	Holds       []agent.Hold
	Version     string      // of the agent's program; empty: from before it was reported
	Interfaces  *Interfaces // nil: an agent from before they were reported
}

// Interfaces are the network interfaces of a switch that have an address.
type Interfaces struct {
	Unavailable string // why the agent cannot report them; empty: it can
	List        []nic.Interface
}

// AgentEvent is one of its fields.
type AgentEvent struct {
	State      *AgentState
	Ended      *agent.Ended
	Interfaces *Interfaces // as they are after a change
}

// AgentCounters is what a switch has counted.
type AgentCounters struct {
	Slots, SlotsUsed int
	Trees            []TreeCounters // by group and tree
	Epochs           []EpochTraffic // by group, tree and epoch
	Interfaces       *Interfaces    // read after Epochs; nil: an agent from before they were reported
	CPU              processor.Time // zero: not known
}

// EpochTraffic is what one epoch of a tree has exchanged with its neighbours
// since it was put into use.
type EpochTraffic struct {
	Group uint32
	switchreduce.EpochTraffic
}

// TreeCounters is what one tree's data plane has counted since it was opened.
// Bytes include IP and UDP headers.
type TreeCounters struct {
	Group                uint32
	PacketsIn, BytesIn   uint64
	PacketsOut, BytesOut uint64
	Refused, Overflowed  uint64            // as in transport.Counters
	Events               map[string]uint64 // what the aggregate core did, by name
	Drops                map[string]uint64 // what it dropped, by reason
}
