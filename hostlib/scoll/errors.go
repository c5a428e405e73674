package scoll

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// What calls can fail with. They are wrapped; use errors.Is.
var (
	ErrConfig = broadcast.ErrConfig
	ErrClosed = errors.New("scoll: the node or the service is closed")

	ErrService   = broadcast.ErrService    // a service's number is taken, 0, or it cannot map out-of-band groups
	ErrGroup     = broadcast.ErrGroup      // the group is not ready, or was freed
	ErrRequest   = broadcast.ErrRequest    // the request has ended, or this is not its time
	ErrChild     = broadcast.ErrChild      // there is no such child
	ErrTooLarge  = broadcast.ErrTooLarge   // a request would have more than MaxRequest bytes
	ErrDelayed   = broadcast.ErrDelayed    // the group's members do not fit beside the first broadcast
	ErrPosted    = broadcast.ErrPosted     // the child has a reply buffer already
	ErrDead      = broadcast.ErrDead       // members are dead; the error names them
	ErrNotMember = broadcast.ErrNotMember  // this node is no member of the group
	ErrReplied   = broadcast.ErrReplied    // the request has its reply already
	ErrNoReply   = broadcast.ErrNoReply    // the library replies itself, since a callback or a pull has failed
	ErrFilter    = broadcast.ErrFilter     // Only and Except name who is no member, or leave nobody
	ErrMembers   = broadcast.ErrMembers    // an out-of-band group has no members, or another service's
	ErrTimeout   = broadcast.ErrPatience   // a service timeout is negative, or longer than 100 days
	ErrAborted   = broadcast.ErrAborted    // the request was aborted
	ErrBusy      = broadcast.ErrBusy       // the first broadcast over a delayed group is under way
	ErrTree      = broadcast.ErrTree       // there is no such tree
	ErrTargets   = broadcastmsg.ErrTargets // a list of targets is empty, names a node twice, or one without entities
)

// StatusError is why a request has failed on this node, as a parent would be
// reported it.
type StatusError struct {
	Status Status
	Reason string // in the words of who found it; may be empty
}

// Error returns status, type and reason.
func (e *StatusError) Error() string {
	return (&broadcast.StatusError{Status: broadcastmsg.Status(e.Status), Reason: e.Reason}).Error()
}

// IncompleteError reports to a root which members are not known to have run its
// request.
type IncompleteError struct{ Outcome }

// Error names the first subtrees that were not reached, and why.
func (e *IncompleteError) Error() string {
	var b strings.Builder
	b.WriteString((&broadcast.IncompleteError{Outcome: broadcast.Outcome{Ran: e.Ran, Nodes: e.Nodes}}).Error())
	for i, m := range e.Missing {
		if i == 4 {
			fmt.Fprintf(&b, ", and %d more subtrees", len(e.Missing)-i)
			break
		}
		fmt.Fprintf(&b, "; %s (%d nodes) %v", m.Node, m.Nodes, m.Status)
		if m.Reason != "" {
			b.WriteString(": " + m.Reason)
		}
	}
	if slices.ContainsFunc(e.Missing, func(m Missing) bool { return m.Status == StatusNoGroup }) {
		b.WriteString("; a server that has restarted knows no group of its earlier life: destroy this one and make it again")
	}
	return b.String()
}

// PanicError is a callback that panicked.
type PanicError struct {
	Callback string // "pre-request" and so on
	Value    any    // of the panic
	Stack    []byte // of its goroutine
}

// Error names the callback and what it panicked with; the stack is apart.
func (e *PanicError) Error() string {
	return fmt.Sprintf("scoll: the %s callback panicked: %v", e.Callback, e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// public returns the error of a request that the core has ended as this
// package's.
func public(err error) error {
	if err == nil {
		return nil
	}
	var status *broadcast.StatusError
	var incomplete *broadcast.IncompleteError
	switch {
	case errors.As(err, &status):
		return &StatusError{Status(status.Status), status.Reason}
	case errors.As(err, &incomplete):
		return &IncompleteError{publicOutcome(&incomplete.Outcome)}
	}
	return err
}
