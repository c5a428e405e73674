package broadcast

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// What the calls of a service can fail with: the errors of hostlib/scoll.
var (
	ErrService   = errors.New("scoll: service not registered, or registered already")
	ErrBusy      = errors.New("scoll: the service has requests that have not ended")
	ErrGroup     = errors.New("scoll: no such group, or not ready")
	ErrRequest   = errors.New("scoll: no such request, or it has ended, or this is not its time")
	ErrChild     = errors.New("scoll: no such child")
	ErrTooLarge  = errors.New("scoll: a request of more than 4096 bytes")
	ErrDelayed   = errors.New("scoll: the group's members do not fit beside the first broadcast; create it at once")
	ErrPosted    = errors.New("scoll: the child has a reply buffer already")
	ErrBuffer    = errors.New("scoll: a child has no reply buffer")
	ErrDead      = errors.New("scoll: members are dead")
	ErrNotMember = errors.New("scoll: this node is no member of the group")
	ErrReplied   = errors.New("scoll: the request has its reply already")
	ErrNoReply   = errors.New("scoll: the library replies to this request itself")
	ErrFilter    = errors.New("scoll: the broadcast is not for some of the group's members")
	ErrMembers   = errors.New("scoll: the out-of-band group's members are missing, or of another service")
	ErrPatience  = errors.New("scoll: a processing time that is negative or longer than 100 days")
	ErrOutdated  = errors.New("scoll: one of the two nodes is known to the other in a later incarnation")
	ErrAborted   = errors.New("scoll: the request was aborted")
)

// StatusError is a status that is not OK as an error.
type StatusError struct {
	Status broadcastmsg.Status
	Reason string
}

// Error returns status and reason.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("scoll: %v (%v)", e.Status, e.Status.Type())
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// IncompleteError reports which members are not known to have run a request.
type IncompleteError struct{ Outcome }

// Error says how many.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("scoll: %d of %d nodes are known to have run the request", e.Ran, e.Nodes)
}
