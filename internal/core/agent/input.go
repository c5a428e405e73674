package agent

import (
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/topology"
)

// Input is one of the structs of this file that have the method: Prepare,
// Commit, Remove and Drain from a manager, Bound, Installed, Expired and Offer
// from the driver.
type Input interface{ input() }

// Prepare asks for a reservation.
type Prepare struct {
	Req         uint64 // repeated in the Reply; the caller's own
	Incarnation uint64 // the agent that is meant
	Group       uint32
	Epoch       uint32
	Children    int    // children at this switch
	Window      uint32 // in chunks, a power of two; 2*Window slots are reserved
	ChunkBytes  int    // largest payload of a packet
	Functions   topology.Functions
	Types       topology.Types
	Protection  wire.Protection // of the group's packets
	Lease       time.Duration   // until when Commit must have come; 0: Config.PrepareLease
}

// Commit puts a prepared epoch into use.
type Commit struct {
	Req         uint64
	Incarnation uint64
	Config      switchreduce.Config // names group, tree and epoch; read only, and kept
}

// Remove ends an epoch, prepared or committed, and its Prepare if that is
// still to come. It is never refused, except for another incarnation.
type Remove struct {
	Req         uint64
	Incarnation uint64
	Group       uint32
	Epoch       uint32
}

// Drain makes the agent refuse all new reservations (On), or ends that.
// What is reserved already stays.
type Drain struct {
	Req uint64
	On  bool
}

// Bound reports the address of the data socket that an Open asked for, or why
// there is none.
type Bound struct {
	Socket uint64
	Addr   netip.AddrPort
	Failed string // reason, where no socket could be opened; empty otherwise
}

// Expired reports that the aggregate core behind a socket, or whatever else
// reduces there, has given an epoch up: because its lease ran out, or Lost.
type Expired struct {
	Socket uint64
	Epoch  uint32
	Lost   bool // it has failed, or could not be put into use
}

// Offer reports what the switch can do from now on. What is promised already
// stays.
type Offer struct {
	Capability topology.Capability
	Unusable   string // why it can promise nothing at present; empty: it can
}

// Installed reports what reduces for an epoch that was put into use.
type Installed struct {
	Socket  uint64
	Epoch   uint32
	Reducer topology.Reducer
}

func (Prepare) input()   {}
func (Commit) input()    {}
func (Remove) input()    {}
func (Drain) input()     {}
func (Bound) input()     {}
func (Expired) input()   {}
func (Offer) input()     {}
func (Installed) input() {}
