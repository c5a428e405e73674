package member

import "github.com/tributary-fabric/tributary/internal/wire/gossip"

// Link is a connection between two nodes. Those that the core dials have even
// numbers, those that the driver accepts odd ones; none is used again.
type Link uint32

// InputKind is the kind of an Input.
type InputKind uint8

// The kinds of inputs, with the fields that they use.
const (
	Connected     InputKind = iota // Link: a dial has come about
	ConnectFailed                  // Link: it has not
	Accepted                       // Link: somebody has connected
	Received                       // Link, Message: a frame
	Failed                         // Link: it broke, or the other end has closed it
	Datagram                       // Message
	Beat                           // Pulse: a heartbeat
	SetMonitors                    // Nodes: who the high priority monitors are now
	Depart                         // Exit: leave in order
	Recheck                        // the Identity's own record, or what it takes, may have changed
	Attached                       // Link, Payload: a frame of another core; ignored here
)

// Input is one thing that a core is given.
type Input struct {
	Kind    InputKind
	Link    Link
	Message *Message
	Pulse   gossip.Pulse
	Exit    gossip.Exit
	Nodes   []Index
	Payload any
}

// Dial asks for a connection to a node, answered by Connected or ConnectFailed.
type Dial struct {
	Link Link
	Peer Index
}

// Send is a frame on a link; what is sent on a link arrives in order.
type Send struct {
	Link    Link
	Message *Message
}

// Packet is a datagram to a node. It may be lost.
type Packet struct {
	To      Index
	Message *Message
}

// Pulse is a heartbeat to a node.
type Pulse struct {
	To    Index
	Pulse gossip.Pulse
}

// Attachment is a frame of another core that shares the links.
type Attachment struct {
	Link    Link
	Payload any
	Size    int // bytes of the body
}

// NoticeKind is the kind of a Notice.
type NoticeKind uint8

// The kinds of notices.
const (
	Join NoticeKind = iota
	Leave
	Namesake   // another node has the core's name, at another address, and answers; a core that started lately has left
	Superseded // another process has the core's own ID and started later, or the minor cannot be raised any more; the core has stopped
)

// Cause is why a node left the view.
type Cause uint8

// The causes of a Leave.
const (
	Departed  Cause = iota // in order: Exit
	Suspected              // enough reporters suspect it
	Restarted              // it has a new incarnation; a Join follows
)

// Notice is a change of the view.
type Notice struct {
	Kind    NoticeKind
	Cause   Cause
	Node    Index
	Version Version
	Life    gossip.Life // Join, Leave: that is in the view now, or was; a Leave's Version may be of another
	Exit    gossip.Exit
	Deaths  uint32 // how often the node went from alive to dead, as Core.Deaths
}

// Neighbour is a change among the neighbours: a link that can be written to is
// there, or gone. Between two links to a node there is always a Down.
type Neighbour struct {
	Up   bool
	Node Index
	Link Link
}

// Output is what a step wants done, in the order of the fields. The driver owns
// it and calls Reset before the next step.
type Output struct {
	Notices    []Notice
	Neighbours []Neighbour
	Dials      []Dial
	Sends      []Send
	Attached   []Attachment // after all Sends
	Packets    []Packet
	Pulses     []Pulse
	Closes     []Link // after what was sent on them
	Stopped    bool   // the core has left, or was superseded; it does nothing any more
}

// Reset empties the output and keeps its memory.
func (o *Output) Reset() {
	clear(o.Sends)
	clear(o.Packets)
	clear(o.Attached)
	*o = Output{
		Notices: o.Notices[:0], Neighbours: o.Neighbours[:0], Dials: o.Dials[:0], Sends: o.Sends[:0],
		Attached: o.Attached[:0], Packets: o.Packets[:0], Pulses: o.Pulses[:0], Closes: o.Closes[:0],
	}
}
