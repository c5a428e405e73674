package recovery

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib"
)

// Errors of measurements. They are wrapped; use errors.Is.
var (
	ErrConfig = errors.New("recovery: invalid configuration")
	// ErrWrong: an operation had a wrong result, or did not end as it should have.
	ErrWrong = errors.New("recovery: a wrong result")
)

// Ways are the sets of options of the communicators that are measured.
var Ways = map[string][]hostlib.GroupOption{
	"switches":      {hostlib.OnTree()},
	"chosen":        nil,
	"tree-of-hosts": {hostlib.OnTreeOfHosts()},
	"hosts":         {hostlib.OnHosts()},
}

// What members can be asked for.
const (
	form  = "form"  // a communicator of all, in place of the one before
	plans = "plans" // plan A on a duplicate, then plan B
	agree = "agree" // an agreement and an allreduce, in turns
	fall  = "fall"  // allreduces until a member dies, and recovery
	leave = "leave" // the communicator
)

// The collectives of plans.
const (
	allreduce = "allreduce"
	broadcast = "broadcast"
	barrier   = "barrier"
)

// request is what all members are asked to do.
type request struct {
	What       string `json:"what"`
	Name       string `json:"name,omitempty"` // of a communicator to form
	Way        string `json:"way,omitempty"`
	Zone       bool   `json:"zone,omitempty"` // all members have to know each other before
	Collective string `json:"collective,omitempty"`
	Bytes      int    `json:"bytes,omitempty"`
	Iterations int    `json:"iterations,omitempty"`
	Revoker    int    `json:"revoker"` // rank; -1: nobody revokes
}

// span is when a member began an operation and when it had its end, in ns.
type span struct {
	Begun int64 `json:"begun"`
	Ended int64 `json:"ended"`
}

// reply is what a member has done. Times are of the machine's clock, in ns; 0: there is none.
type reply struct {
	Error string `json:"error,omitempty"`

	Revoked     int64  `json:"revoked,omitempty"`     // it has called Revoke
	Interrupted int64  `json:"interrupted,omitempty"` // an operation has failed
	Spans       []span `json:"spans,omitempty"`       // of plan B, or of allreduces
	Agreements  []span `json:"agreements,omitempty"`

	// The last time of each of what happens between a death and the first right operation after it.
	Reason string `json:"reason,omitempty"` // how the death became known
	Agreed int64  `json:"agreed,omitempty"` // on who has died
	Formed int64  `json:"formed,omitempty"` // links with the survivors are there
	Tree   int64  `json:"tree,omitempty"`   // an epoch of switches was entered
	Shrunk int64  `json:"shrunk,omitempty"` // Shrink has returned
	First  int64  `json:"first,omitempty"`  // the operation has ended
}

// hello is what a member says first.
type hello struct {
	Rank int `json:"rank"`
}

// failed returns the error of the first reply that has one.
func failed(replies []reply) error {
	for rank, r := range replies {
		if r.Error != "" {
			return fmt.Errorf("rank %d: %s", rank, r.Error)
		}
	}
	return nil
}
