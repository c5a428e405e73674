package broadcastmsg

import "fmt"

// Status is what became of a request at a node, or of a node's reply.
type Status uint8

// What a node reports to its parent.
const (
	OK          Status = iota
	NoService          // the service is not registered
	NoGroup            // the group is not known: never made here, destroyed, or forged
	WrongParent        // the sender is not the node's parent in the tree
	Disagree           // the members' digest differs from the root's
	NoTree             // no tree of this kind, or not the group's
	NotMember          // the node, or the root, is not a member
	StaleRoot          // the root is dead, or of an earlier incarnation
	Refused            // the pre-request callback returned an error
	NoBuffer           // the pre-request callback posted no reply buffer for a child, or too small a bulk buffer
	Failed             // a later callback returned an error, or panicked
	BulkFailed         // the bulk data did not come
	Aborted            // the service aborted the request
	NoReply            // the service never replied
	Denied             // a rule of the service's does not allow it to the root
	Unproven           // it is not proven that the root has sent it

	reported
)

// What a node finds itself about a child.
const (
	Unsent     Status = 32 + iota // sending to it failed again and again
	Dead                          // it died
	Rebooted                      // it rebooted after the request was sent
	Expired                       // its reply did not come in time
	Overflow                      // its reply is larger than the buffer
	Unreadable                    // its reply cannot be read to the end
	RootDied                      // the root died or rebooted: nobody wants the reply
	Outdated                      // one of the two is known to the other in a later incarnation

	statuses
)

var statusNames = map[Status]string{
	OK: "ok", NoService: "no service", NoGroup: "no group", WrongParent: "wrong parent", Disagree: "digests differ",
	NoTree: "no tree", NotMember: "not a member", StaleRoot: "stale root", Refused: "refused", NoBuffer: "no buffer",
	Failed: "failed", BulkFailed: "bulk failed", Aborted: "aborted", NoReply: "no reply",
	Denied: "denied", Unproven: "unproven",
	Unsent: "unsent", Dead: "dead", Rebooted: "rebooted", Expired: "expired", Overflow: "overflow", Unreadable: "unreadable",
	RootDied: "root died", Outdated: "earlier incarnation",
}

// String returns the status in words.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Reportable reports whether a reply may have status s.
func (s Status) Reportable() bool { return s < reported }

// Explained reports whether the reason for s goes up to the root.
func (s Status) Explained() bool { return s == Denied || s == Unproven }

// Valid reports whether s is a status.
func (s Status) Valid() bool { return s < reported || s >= Unsent && s < statuses }

// Type is the kind of an error: who found it, and where.
type Type uint8

// The types of errors.
const (
	NoError   Type = iota
	ByLibrary      // the child's library, before the service's first callback
	ByService      // the child's service: an error or a panic of a callback, or what it omitted
	ByNetwork      // the request or the reply did not pass, or an end of it is dead
	ByTime         // the time was up
	ByAbort        // a service aborted the request
)

var typeNames = [...]string{"none", "library", "service", "network", "time", "abort"}

// String returns the type in a word.
func (t Type) String() string { return typeNames[t] }

// Type returns the type of error that s is.
func (s Status) Type() Type {
	switch s {
	case OK:
		return NoError
	case Refused, NoBuffer, Failed, NoReply, Overflow:
		return ByService
	case BulkFailed, Unsent, Dead, Rebooted, Unreadable, RootDied, Outdated:
		return ByNetwork
	case Expired:
		return ByTime
	case Aborted:
		return ByAbort
	default:
		return ByLibrary
	}
}
