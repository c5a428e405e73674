package hierarchy

import (
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// Zone is what a role knows of the zone that its node is in, and does there.
// zone.Core is one.
type Zone interface {
	Self() attributes.Life
	View() []member.Index // in the order of the ring, self included
	ID(member.Index) gossip.ID
	Version(member.Index) gossip.Version
	Life(member.Index) attributes.Life
	Find(attributes.Life) (member.Index, bool)
	Attribute(life attributes.Life, key string) ([]byte, bool)
	Changed() []attribute.Notice // of the last step, others' alone

	Declare(key string, value []byte) error // one's own
	Retract(key string) error
	SetMonitor(on bool) error
}

// Link is a connection of the hierarchy. Those that a role dials have even
// numbers, those that the driver accepts odd ones; none is used again. They are
// not the links of member.Core, and have numbers of their own.
type Link uint32

// Kind is the kind of an Input.
type Kind uint8

// The kinds of inputs, with the fields that they use.
const (
	Connected Kind = iota + 1 // Link: a dial has come about
	Failed                    // Link: it has not, or the connection has broken or was closed
	Accepted                  // Link: somebody has connected
	Received                  // Link, Message
)

// Input is one input.
type Input struct {
	Kind    Kind
	Link    Link
	Message wire.Message
}

// Dial asks for a connection, answered by Connected or Failed.
type Dial struct {
	Link Link
	To   gossip.ID
}

// Send is a message on a link; what is sent on a link arrives in order. It must
// not be changed: others may be sent the same.
type Send struct {
	Link    Link
	Message wire.Message
}

// Notice is a change in a base zone that the node supervises or follows. Those
// of one zone come in order.
type Notice struct {
	Zone    wire.Zone
	Kind    member.NoticeKind // Join or Leave
	ID      gossip.ID
	Version gossip.Version
	Cause   member.Cause // of a Leave
	Exit    gossip.Exit
}

// View is the whole view of a base zone: the answer to Supervisor.Fetch.
type View struct {
	Zone    wire.Zone
	Members []wire.Member
	Err     error // ErrUnknownZone; there are no members
}

// Output is what a step brings about, in the order of the fields. The caller
// owns and resets it.
type Output struct {
	Dials   []Dial
	Sends   []Send
	Closes  []Link // after what was sent on them; no Failed follows
	Notices []Notice
	Views   []View
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	clear(o.Sends)
	*o = Output{Dials: o.Dials[:0], Sends: o.Sends[:0], Closes: o.Closes[:0], Notices: o.Notices[:0], Views: o.Views[:0]}
}
