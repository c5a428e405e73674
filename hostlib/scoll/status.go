package scoll

import (
	"github.com/tributary-fabric/tributary/internal/core/collective"
	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// Status is what became of a request at a child, or of the child's reply.
type Status uint8

// What a node reports to its parent. Nothing of a node's subtree is lost by
// that: who beneath it ran the request, and who did not, is told beside.
const (
	StatusOK          = Status(collect.OK)
	StatusNoService   = Status(collect.NoService)   // the service is not registered there
	StatusNoGroup     = Status(collect.NoGroup)     // the group is not known there: it restarted, or the group was destroyed; make it again, as Example_restart does
	StatusWrongParent = Status(collect.WrongParent) // the sender is not its parent in the tree
	StatusDisagree    = Status(collect.Disagree)    // its digest of the members is not the root's
	StatusNoTree      = Status(collect.NoTree)      // it has no tree of that kind, or the group has another
	StatusNotMember   = Status(collect.NotMember)   // it, or the root, is not a member
	StatusStaleRoot   = Status(collect.StaleRoot)   // it holds the root for dead, or knows of a later incarnation
	StatusRefused     = Status(collect.Refused)     // its pre-request callback returned an error
	StatusNoBuffer    = Status(collect.NoBuffer)    // its pre-request callback posted too few buffers, or too small ones
	StatusFailed      = Status(collect.Failed)      // a later callback of it returned an error, or panicked
	StatusBulkFailed  = Status(collect.BulkFailed)  // the bulk data did not come
	StatusAborted     = Status(collect.Aborted)     // its service aborted the request
	StatusNoReply     = Status(collect.NoReply)     // its service never replied
)

// What a node finds itself about a child.
const (
	StatusUnsent     = Status(collect.Unsent)     // sending to it failed again and again
	StatusDead       = Status(collect.Dead)       // it died
	StatusRebooted   = Status(collect.Rebooted)   // it rebooted after the request was sent
	StatusExpired    = Status(collect.Expired)    // its reply did not come in time
	StatusOverflow   = Status(collect.Overflow)   // its reply is larger than the buffer that was posted
	StatusUnreadable = Status(collect.Unreadable) // its reply makes no sense
	StatusRootDied   = Status(collect.RootDied)   // the root died or rebooted: nobody wants the reply
	StatusOutdated   = Status(collect.Outdated)   // its incarnation is below one that is known, or so is the sender's: it has to begin with a larger one
)

// String returns the status in words.
func (s Status) String() string { return collect.Status(s).String() }

// Type returns what kind of error s is.
func (s Status) Type() ErrorType { return ErrorType(collect.Status(s).Type()) }

// Err returns s as an error, a *StatusError; nil for StatusOK.
func (s Status) Err() error {
	if s == StatusOK {
		return nil
	}
	return &StatusError{Status: s}
}

// ErrorType is the kind of an error: who found it, and where.
type ErrorType uint8

// The types of errors.
const (
	NoError   = ErrorType(collect.NoError)
	ByLibrary = ErrorType(collect.ByLibrary) // the child's library, before the service's first callback
	ByService = ErrorType(collect.ByService) // the child's service: an error or a panic of a callback, or what it omitted
	ByNetwork = ErrorType(collect.ByNetwork) // the request or the reply did not pass, or an end of it is dead
	ByTime    = ErrorType(collect.ByTime)    // the time was up
	ByAbort   = ErrorType(collect.ByAbort)   // a service aborted the request
)

// String returns the type in a word.
func (t ErrorType) String() string { return collect.Type(t).String() }

// Reply is what came of a child: its reply, or why there is none.
type Reply struct {
	Request *Request
	Child   int    // its number among Request.Children
	Source  string // its node
	Status  Status
	Reason  string // of a status that is not StatusOK, in the words of who found it; may be empty
	Body    []byte // in the buffer that was posted, which is free once the callback returns
	Private any    // as it was posted with the buffer
}

// Type returns what kind of error the reply is.
func (r *Reply) Type() ErrorType { return r.Status.Type() }

// Missing is a subtree of which some nodes are not known to have run a request.
type Missing struct {
	Node   string // the subtree's root
	Nodes  int    // how many of it
	Status Status // why
}

// Outcome is what is known of who ran a request.
type Outcome struct {
	Nodes   int // in this node's subtree, itself included; on the root the group's
	Ran     int // of which are known to have run the request
	Missing []Missing
}

func publicOutcome(o *collective.Outcome) Outcome {
	p := Outcome{Nodes: o.Nodes, Ran: o.Ran}
	for _, m := range o.Missing {
		p.Missing = append(p.Missing, Missing{string(m.Node), int(m.Nodes), Status(m.Status)})
	}
	return p
}
