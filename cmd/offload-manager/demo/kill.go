package demo

import (
	"context"
	"runtime"

	"github.com/tributary-fabric/tributary/hostlib"
)

// enough is how many windows an operation must have for its middle to be seen.
const enough = 8

// killing kills a switch in the middle of an operation: when half of its chunks
// are done. An operation that is too short to be watched is hit while its last
// member has not begun, and all others wait for it.
type killing struct {
	stage    *stage
	victim   string
	chunks   int // of the operation
	withhold bool
	late     bool // the operation was over first; the switch lives

	before []hostlib.SessionCounters // by rank
}

// look notes where the members stand before the operation.
func (k *killing) look(comms []*hostlib.Communicator) {
	k.before, k.late = nil, false
	for _, c := range comms {
		k.before = append(k.before, c.Stats().Session)
	}
}

// kill waits for the moment, and kills. requests are those that have begun, nil
// for the member that is withheld.
func (k *killing) kill(ctx context.Context, comms []*hostlib.Communicator, requests []*hostlib.Request) error {
	if k.withhold {
		return k.killWaiting(ctx, comms[:len(comms)-1])
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-requests[0].Done():
			k.late = true
			return nil
		default:
		}
		if done := int(comms[0].Stats().Session.Results - k.before[0].Results); done >= k.chunks/2 {
			k.stage.say("killing root switch %s after %d of %d chunks", k.victim, done, k.chunks)
			return k.stage.fabric.KillSwitch(k.victim)
		}
		runtime.Gosched()
	}
}

// killWaiting kills when every member that has begun has sent something.
func (k *killing) killWaiting(ctx context.Context, comms []*hostlib.Communicator) error {
	for rank := 0; rank < len(comms); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if comms[rank].Stats().Session.Sent > k.before[rank].Sent {
			rank++
		} else {
			runtime.Gosched()
		}
	}
	k.stage.say("killing root switch %s while all members but one wait for its result", k.victim)
	return k.stage.fabric.KillSwitch(k.victim)
}
