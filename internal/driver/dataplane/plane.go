package dataplane

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// Plane reduces for the trees of a switch. Trees are known by the numbers that
// the agent's core gives their sockets, never twice.
//
// Open, Install, Retire and Shut are called by one goroutine. They wait for
// nothing but the plane's own locks: what comes of them are events. Census may
// be called by everybody.
type Plane interface {
	// Open opens a tree, without an epoch. Opened reports its address.
	Open(socket uint64, group uint32)

	// Install lets an epoch of an open tree begin; the configuration is kept,
	// and only read. Installed follows when its packets are taken.
	Install(socket uint64, c *switchreduce.Config)

	// Retire ends an epoch. One that is not there is ignored.
	Retire(socket uint64, epoch uint32)

	// Shut closes a tree and ends its epochs. Nothing is answered.
	Shut(socket uint64)

	// Census returns what all trees have counted. An error is the context's, or
	// ends the plane.
	Census(ctx context.Context) (Census, error)

	// Close ends all trees and waits for what the plane runs. No event follows.
	// After it, nothing but Close is called.
	Close()
}

// Census is what a plane has counted.
type Census struct {
	Trees  []rpc.TreeCounters // that are open, by group and tree
	Epochs []rpc.EpochTraffic // by group, tree and epoch, of planes that can report
	// Past is what does not count to a tree that is open: what trees have
	// counted that were shut, and what was for none. Group and Tree mean
	// nothing. The sum over Past and Trees never falls.
	Past rpc.TreeCounters
}

// Event is one of the structs of this file that have the method. A plane reports
// events in order, from goroutines of its own, by a function that it is given;
// this function must not wait for the plane.
type Event interface{ event() }

// Opened answers Open.
type Opened struct {
	Socket uint64
	Addr   netip.AddrPort // as seen by neighbours; an unspecified IP address stands for all of the switch's
	Err    error          // why there is none; then the tree is not there
}

// Installed answers Install.
type Installed struct {
	Socket uint64
	Epoch  uint32
	Err    error // why not, with a *SlotsError if it is for the slots; then the epoch is not there
	// Reducer is what reduces for the epoch.
	Reducer topology.Reducer
}

// SlotsError says that a plane, whose epochs have their slots in one piece, has no
// piece for another one: there may be enough of them in several.
type SlotsError struct{ Need, Free int } // Free: in the largest piece that it could have

func (e *SlotsError) Error() string {
	return fmt.Sprintf("%d slots in one piece are needed, the largest that is free has %d", e.Need, e.Free)
}

// Ended reports that a plane has given an epoch up by itself.
type Ended struct {
	Socket uint64
	Epoch  uint32
	Err    error // what was wrong; nil: its lease ran out
}

// Offer reports what the plane can do from now on. The last one counts.
type Offer struct {
	Capability topology.Capability // zero while it can do nothing
	Unusable   string              // why it can do nothing, and what is to be done; empty: it can
	Deaf       bool                // nothing arrives at any port, so that it does not forward either
}

func (Opened) event()    {}
func (Installed) event() {}
func (Ended) event()     {}
func (Offer) event()     {}
