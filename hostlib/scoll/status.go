package scoll

import (
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Status is what became of a request at a child, or of the child's reply.
type Status uint8

// What a node reports to its parent. Nothing of a node's subtree is lost by
// that: who beneath it ran the request, and who did not, is reported beside.
const (
	StatusOK          = Status(broadcastmsg.OK)
	StatusNoService   = Status(broadcastmsg.NoService)   // the service is not registered there
	StatusNoGroup     = Status(broadcastmsg.NoGroup)     // the group is not known there: it restarted, or the group was destroyed; make it again, as Example_restart does
	StatusWrongParent = Status(broadcastmsg.WrongParent) // the sender is not its parent in the tree
	StatusDisagree    = Status(broadcastmsg.Disagree)    // its digest of the members is not the root's
	StatusNoTree      = Status(broadcastmsg.NoTree)      // it has no tree of that kind, or the group has another
	StatusNotMember   = Status(broadcastmsg.NotMember)   // it, or the root, is not a member
	StatusStaleRoot   = Status(broadcastmsg.StaleRoot)   // it holds the root for dead, or knows of a later incarnation
	StatusRefused     = Status(broadcastmsg.Refused)     // its pre-request callback returned an error
	StatusNoBuffer    = Status(broadcastmsg.NoBuffer)    // its pre-request callback posted too few buffers, or too small ones
	StatusFailed      = Status(broadcastmsg.Failed)      // a later callback of it returned an error, or panicked
	StatusBulkFailed  = Status(broadcastmsg.BulkFailed)  // the bulk data did not come
	StatusAborted     = Status(broadcastmsg.Aborted)     // its service aborted the request
	StatusNoReply     = Status(broadcastmsg.NoReply)     // its service never replied
	StatusDenied      = Status(broadcastmsg.Denied)      // a rule of its service's Access is not for the root
	StatusUnproven    = Status(broadcastmsg.Unproven)    // it is not proven to it that the root has sent the request
)

// What a node finds itself about a child.
const (
	StatusUnsent     = Status(broadcastmsg.Unsent)     // sending to it failed again and again
	StatusDead       = Status(broadcastmsg.Dead)       // it died
	StatusRebooted   = Status(broadcastmsg.Rebooted)   // it rebooted after the request was sent
	StatusExpired    = Status(broadcastmsg.Expired)    // its reply did not come in time
	StatusOverflow   = Status(broadcastmsg.Overflow)   // its reply is larger than the buffer that was posted
	StatusUnreadable = Status(broadcastmsg.Unreadable) // its reply makes no sense
	StatusRootDied   = Status(broadcastmsg.RootDied)   // the root died or rebooted: nobody wants the reply
	StatusOutdated   = Status(broadcastmsg.Outdated)   // its incarnation is below one that is known, or so is the sender's: it has to begin with a larger one
)

// String returns the status in words.
func (s Status) String() string { return broadcastmsg.Status(s).String() }

// Type returns what kind of error s is.
func (s Status) Type() ErrorType { return ErrorType(broadcastmsg.Status(s).Type()) }

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
	NoError   = ErrorType(broadcastmsg.NoError)
	ByLibrary = ErrorType(broadcastmsg.ByLibrary) // the child's library, before the service's first callback
	ByService = ErrorType(broadcastmsg.ByService) // the child's service: an error or a panic of a callback, or what it omitted
	ByNetwork = ErrorType(broadcastmsg.ByNetwork) // the request or the reply did not pass, or an end of it is dead
	ByTime    = ErrorType(broadcastmsg.ByTime)    // the time was up
	ByAbort   = ErrorType(broadcastmsg.ByAbort)   // a service aborted the request
)

// String returns the type in a word.
func (t ErrorType) String() string { return broadcastmsg.Type(t).String() }

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
	Reason string // of StatusDenied and StatusUnproven: in the words of who found it
}

// Outcome is what is known of who ran a request.
type Outcome struct {
	Nodes   int // in this node's subtree, itself included; on the root the group's
	Ran     int // of which are known to have run the request
	Missing []Missing
}

func publicOutcome(o *broadcast.Outcome) Outcome {
	p := Outcome{Nodes: o.Nodes, Ran: o.Ran}
	for _, m := range o.Missing {
		p.Missing = append(p.Missing, Missing{string(m.Node), int(m.Nodes), Status(m.Status), m.Reason})
	}
	return p
}
