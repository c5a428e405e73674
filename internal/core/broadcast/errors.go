package broadcast

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// What the calls of a service can fail with.
var (
	ErrService   = errors.New("collective: service not registered, or registered already")
	ErrBusy      = errors.New("collective: the service has requests that have not ended")
	ErrGroup     = errors.New("collective: no such group, or not ready")
	ErrRequest   = errors.New("collective: no such request, or it has ended, or this is not its time")
	ErrChild     = errors.New("collective: no such child")
	ErrTooLarge  = errors.New("collective: a request of more than 4096 bytes")
	ErrDelayed   = errors.New("collective: the group's members do not fit beside the first broadcast; create it at once")
	ErrPosted    = errors.New("collective: the child has a reply buffer already")
	ErrBuffer    = errors.New("collective: a child has no reply buffer")
	ErrDead      = errors.New("collective: members are dead")
	ErrNotMember = errors.New("collective: this node is no member of the group")
	ErrReplied   = errors.New("collective: the request has its reply already")
	ErrNoReply   = errors.New("collective: the library replies to this request itself")
	ErrFilter    = errors.New("collective: the broadcast is not for some of the group's members")
	ErrMembers   = errors.New("collective: the out-of-band group's members are missing, or of another service")
	ErrPatience  = errors.New("collective: a processing time that is negative or longer than 100 days")
	ErrOutdated  = errors.New("collective: one of the two nodes is known to the other in a later incarnation")
	ErrAborted   = errors.New("collective: the request was aborted")
)

// StatusError is a status that is not OK as an error.
type StatusError struct {
	Status broadcastmsg.Status
	Reason string
}

// Error returns status and reason.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("collective: %v (%v)", e.Status, e.Status.Type())
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// IncompleteError reports which members are not known to have run a request.
type IncompleteError struct{ Outcome }

// Error names the subtrees that were not reached and why.
func (e *IncompleteError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "collective: %d of %d nodes are known to have run the request", e.Ran, e.Nodes)
	for i, m := range e.Missing {
		if i == 4 {
			fmt.Fprintf(&b, ", and %d more subtrees", len(e.Missing)-i)
			break
		}
		fmt.Fprintf(&b, "; %s (%d nodes) %v", m.Node, m.Nodes, m.Status)
	}
	return b.String()
}
