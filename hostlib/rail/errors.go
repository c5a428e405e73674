package rail

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors of nodes and their requests. They are wrapped; use errors.Is.
var (
	// ErrConfig: a node cannot be made with that Config.
	ErrConfig = errors.New("rail: invalid configuration")
	// ErrArgument: a tag, a buffer or a peer that cannot be.
	ErrArgument = errors.New("rail: invalid argument")
	// ErrClosed: the node was closed.
	ErrClosed = errors.New("rail: the node is closed")
	// ErrTruncated: the message was longer than the buffer; what had room is there.
	ErrTruncated = errors.New("rail: the message is longer than the buffer")
	// ErrCanceled: the request was canceled. A message may have arrived all the same, if some of
	// it was sent.
	ErrCanceled = errors.New("rail: the request was canceled")
	// ErrWithdrawn: the sender has canceled the message that the receive has taken, before its
	// data were sent.
	ErrWithdrawn = errors.New("rail: the sender has canceled the message")
	// ErrAccess: no such memory is registered there, or not for this access, or it is smaller.
	ErrAccess = errors.New("rail: no such memory is registered there for this access, or it is smaller")
	// ErrLost: the last rail to the peer has failed, and none was back for hostlib.Config.DeadAfter;
	// or the peer has ended the session for that.
	ErrLost = errors.New("rail: the last rail has failed")
	// ErrUnreachable: no rail to the peer could be brought up.
	ErrUnreachable = errors.New("rail: the peer cannot be reached")
	// ErrRestarted: the peer has started again.
	ErrRestarted = errors.New("rail: the peer has started again")
	// ErrAbsent: the peer's host has no node.
	ErrAbsent = errors.New("rail: the peer's host has no node")
)

// PeerError reports that requests with a peer have failed, and what happened to each of its
// rails. It answers errors.Is with one of ErrLost, ErrUnreachable, ErrRestarted and
// ErrAbsent, and with the reasons of the rails.
type PeerError struct {
	Peer        string
	Incarnation uint64 // the peer's, as far as it was known
	Reason      error
	Rails       []Failure // of the rails to the peer, but those that were removed
	LastUp      time.Time // when there was a connection last: one that it had in that incarnation
}

// Failure is what happened to a rail.
type Failure struct {
	Rail string // the names of its two ends
	Err  error  // nil: it was up
}

// Error names the peer and its rails.
func (e *PeerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rail: peer %s: %v", e.Peer, e.Reason)
	for i, r := range e.Rails {
		b.WriteString([...]string{": ", "; "}[min(i, 1)])
		if r.Err == nil {
			fmt.Fprintf(&b, "%s was up", r.Rail)
		} else {
			fmt.Fprintf(&b, "%s: %v", r.Rail, r.Err)
		}
	}
	return b.String()
}

// Unwrap returns the reasons.
func (e *PeerError) Unwrap() []error {
	all := []error{e.Reason}
	for _, r := range e.Rails {
		if r.Err != nil {
			all = append(all, r.Err)
		}
	}
	return all
}
