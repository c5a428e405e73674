package switchreduce

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// Drop is the reason why an input was dropped.
type Drop uint8

// The reasons. The first seven are the checks of admission, in their order; a
// packet that fails one has no effect whatsoever.
const (
	DropFault   Drop = iota // wire.Header.Decode found a fault: see Counters.Faults
	DropGroup               // another group, or no epoch was ever installed
	DropEpoch               // an epoch that is not installed, above every epoch that ever was
	DropStale               // an epoch that is over: a later one has begun, or it was retired or expired
	DropAddress             // not from a child, or not from the parent, where the type is theirs
	DropChild               // a child index that is not the sender's
	DropCookie              // not the sender's cookie: see Traffic.Forged

	DropSize      // a chunk larger than the epoch's
	DropBody      // an error whose payload is none
	DropLate      // a chunk whose slot serves a newer one
	DropDuplicate // a contribution, result or error that the slot has already, or that comes after an error
	DropUnasked   // a result or answer for a chunk that does not wait for one
	DropUnfit     // a result whose signature or sink flag is not the chunk's

	DropConfig  // an Install whose configuration is invalid, or of another group
	DropRefused // an Install of an epoch that is not above all before it
	DropFull    // an Install where MaxEpochs are in use

	dropCount
)

// Drops is the number of reasons.
const Drops = int(dropCount)

var dropNames = [...]string{
	"fault", "group", "epoch", "stale-epoch", "address", "child", "cookie",
	"size", "body", "late", "duplicate", "unasked", "unfit",
	"config", "refused", "full",
}

// String returns the reason's name, as counters are published under.
func (d Drop) String() string {
	if int(d) < len(dropNames) {
		return dropNames[d]
	}
	return fmt.Sprintf("drop(%d)", uint8(d))
}

// Counters count what a core has done since it was made.
type Counters struct {
	Taken    uint64 // contributions taken
	Partials uint64 // partials sent to the parent, first ones
	Resent   uint64 // partials sent to the parent again, because it wanted them
	Results  uint64 // chunks that got their result
	Errors   uint64 // chunks that got an error, found here or reported
	Probes   uint64 // probes of children, idle ones excluded
	Repeated uint64 // probes answered with a result or an error
	Wants    uint64 // probes answered with Want
	Heards   uint64 // probes answered with Heard
	Losts    uint64 // probes answered with Lost
	Relayed  uint64 // probes sent to the parent, idle ones excluded
	Idle     uint64 // idle probes of children
	Kept     uint64 // idle probes sent to the parent
	Expired  uint64 // epochs whose lease ran out

	Drops  [Drops]uint64       // inputs dropped, by reason
	Faults [wire.Faults]uint64 // DropFault, by fault
}

// Dropped returns the number of inputs dropped, for whatever reason.
func (c Counters) Dropped() uint64 {
	sum := uint64(0)
	for _, n := range c.Drops {
		sum += n
	}
	return sum
}
