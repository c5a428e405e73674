package broadcast

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// InputKind is the kind of an Input.
type InputKind uint8

// The kinds of inputs, with the fields that they use.
const (
	Message  InputKind = iota // Node, Bytes, Incarnation: a message from a node, which is in that life; 0: not known in which
	Sent                      // Number, Err: what became of a Send, once for each
	Returned                  // Call, Request, Child, Err and what the callback decided: once for each Call but Created
	Pulled                    // Request, Err: what became of a Pull, once for each
	Up                        // Node, Incarnation: it lives; another incarnation than before means that it rebooted
	Down                      // Node, Incarnation: it is dead in that life and those before; 0: in whichever is known
	Cut                       // Node: a connection to it has ended, on which it may have been sent something
	Absent                    // Node: its host has dropped a message, for there is no node of collectives on it
)

// Input is what happens to a node.
type Input struct {
	Kind        InputKind
	Node        broadcastmsg.Node
	Incarnation uint64
	Bytes       []byte // read during Step only
	Memory      any    // the driver's: where the Bytes of this input, and of those before it, lie
	Number      uint64
	Err         error

	Call    CallKind
	Request uint64
	Child   int

	// What the callbacks decided.
	Patience    time.Duration // PreRequest: P for the wait for the children, if PatienceSet
	PatienceSet bool
	BulkRoom    uint64   // PreRequest: bytes of the buffer for bulk data
	Members     *Members // Map: who the group's members are
}

// Output is what a step brings about, in order within each list. The caller
// owns and resets it.
type Output struct {
	Sends   []Send
	Calls   []Call
	Pulls   []Pull
	Exposes []Expose
	Revokes []uint64 // keys of memory that must not be read any more, before any Calls of the step
	Ends    []End
	Denials []Denial
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	o.Sends, o.Calls, o.Pulls = o.Sends[:0], o.Calls[:0], o.Pulls[:0]
	o.Exposes, o.Revokes, o.Ends = o.Exposes[:0], o.Revokes[:0], o.Ends[:0]
	o.Denials = o.Denials[:0]
}

// Send is a message for another node, ahead of what is no collective message.
// It is answered by one Sent: without error when the transport has taken charge
// of it, with one when it could not be sent from here, which wraps ErrOutdated
// where one of the two nodes would not have the other in its incarnation.
type Send struct {
	Number uint64
	To     broadcastmsg.Node
	Bytes  []byte // lent until Sent; none: it is only to be found out whether the node can be reached
}

// CallKind is the kind of a Call.
type CallKind uint8

// The callbacks of a service.
const (
	Created         CallKind = iota // a group is ready, or its creation failed
	Map                             // an out-of-band group's index, to be mapped to its members
	PreRequest                      // check the request, post reply buffers, prepare bulk buffers
	IncomingRequest                 // run it
	IncomingReply                   // a child's reply, or why there is none
	PostReply                       // all replies are there
	ReplyOut                        // the reply is out, or given up
)

var callNames = [...]string{"created", "map", "pre-request", "incoming-request", "incoming-reply", "post-reply", "reply-out"}

// String returns the callback's name.
func (k CallKind) String() string { return callNames[k] }

// Call asks for a callback of a service, to be run beside others, also of the
// same request, and answered by one Returned, Created excepted. An error or a
// panic of the callback is its Err.
type Call struct {
	Kind    CallKind
	Service broadcastmsg.Service
	Request uint64
	Group   uint64             // Created: the group's handle
	Index   broadcastmsg.Index // Map
	Reply   ChildReply         // IncomingReply
	Err     error              // Created, ReplyOut: why it failed
}

// ChildReply is what came of a child.
type ChildReply struct {
	Child  int // its number
	Source broadcastmsg.Node
	Status broadcastmsg.Status
	Reason string // in the words of who found it, where the status is not OK
	Body   []byte // in the buffer that was posted, until the callback returns
}

// Pull asks for the memory that a node has exposed, answered by one Pulled.
type Pull struct {
	Request uint64
	From    broadcastmsg.Node
	Key     uint64
	Length  uint64
	Into    []byte    // nil: the buffer that the pre-request callback prepared
	Until   core.Time // when the parent surely waits no more, so that a pull that still runs has failed; Never: not known
}

// Expose makes memory readable to some nodes, under a key, until it is revoked.
type Expose struct {
	Key     uint64
	Request uint64
	Length  uint64
	Bytes   []byte   // nil: the bulk buffer of the request
	To      []Branch // who may read it
}

// Denial is a request that was refused for who sent it, to be logged.
type Denial struct {
	Service    broadcastmsg.Service
	Root, From broadcastmsg.Node
	Status     broadcastmsg.Status // Denied or Unproven
	Reason     string
}

// End reports that a request's handle is not valid any more: after its last
// callback, once for each request. Buffers that belong to it are free.
type End struct {
	Request uint64
	Root    bool
	Outcome Outcome // of the root's
	Err     error   // the root's: why it failed; another's: why its reply did not go out, or did not run
}

// Outcome is what a root knows at the end.
type Outcome struct {
	Nodes   int // of the tree
	Ran     int // of which are known to have run the request
	Missing []broadcastmsg.Missing
}
