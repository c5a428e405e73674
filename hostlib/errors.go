package hostlib

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Errors of hosts and communicators. They are wrapped; use errors.Is.
var (
	// ErrConfig: a host cannot join with that Config.
	ErrConfig = errors.New("hostlib: invalid configuration")
	// ErrMembers: the list of members cannot be that of a group with this
	// host in it.
	ErrMembers = errors.New("hostlib: invalid members")
	// ErrFormation: the members could not be brought together.
	ErrFormation = errors.New("hostlib: the communicator was not formed")
	// ErrArgument: an operation's arguments do not fit each other.
	ErrArgument = errors.New("hostlib: invalid argument")
	// ErrEnded: the communicator has ended, by a failure or by Leave.
	ErrEnded = errors.New("hostlib: the communicator has ended")
	// ErrRevoked: a member has revoked the communicator, by Communicator.Revoke.
	ErrRevoked = errors.New("hostlib: the communicator is revoked")
	// ErrDisagreement: members called different operations.
	ErrDisagreement = errors.New("hostlib: members disagree about an operation")
	// ErrClosed: the host was closed.
	ErrClosed = errors.New("hostlib: the host is closed")
)

// UnfinishedError reports that the context of a blocking operation has ended before the operation
// did. The communicator is not harmed: the operation goes on, for all members, and belongs to the
// order of operations. Its buffers must not be touched until Request is done. The error answers
// errors.Is with the context's.
type UnfinishedError struct {
	Request *Request
	Err     error // why the context has ended
}

// Error says so.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("hostlib: the operation goes on without its caller: %v", e.Err)
}

// Unwrap returns why the context has ended.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// MemberError reports that a communicator has ended because of one member, or that there are no
// messages with it any more. It
// answers errors.Is(err, ErrEnded).
type MemberError struct {
	Rank   int    // of that member
	Host   string // its name, with the label of its process if that has one: "h1#a"
	Reason string // what happened to it
}

// Error names the member and what happened.
func (e *MemberError) Error() string {
	return fmt.Sprintf("hostlib: the communicator has ended: rank %d (%s): %s", e.Rank, e.Host, e.Reason)
}

// Unwrap returns ErrEnded.
func (e *MemberError) Unwrap() error { return ErrEnded }

// RevokedError reports that a member has revoked the communicator: all operations on it fail, at
// all members. Nobody counts as dead for that. It answers errors.Is with ErrRevoked and ErrEnded.
type RevokedError struct {
	Rank int    // of a member that has revoked it: where several have, not the same at all members
	Host string // its name, as that of a MemberError
}

// Error names the member.
func (e *RevokedError) Error() string {
	return fmt.Sprintf("%v, by rank %d (%s)", ErrRevoked, e.Rank, e.Host)
}

// Unwrap returns ErrRevoked and ErrEnded.
func (e *RevokedError) Unwrap() []error { return []error{ErrRevoked, ErrEnded} }

// PanicError reports that a Custom operator has panicked in an operation that runs without its
// caller: by a Start form, or after an *UnfinishedError. Otherwise the caller panics. The communicator
// has ended; other members get a *MemberError. It answers errors.Is(err, ErrEnded).
type PanicError struct {
	Value any    // of the panic; nil: the operator has called runtime.Goexit
	Stack []byte // of the goroutine, as text
}

// Error names the value.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: its operator panicked: %v", ErrEnded, e.Value)
}

// Unwrap returns ErrEnded, and the value if that is an error.
func (e *PanicError) Unwrap() []error {
	if err, is := e.Value.(error); is {
		return []error{ErrEnded, err}
	}
	return []error{ErrEnded}
}

// Call is an operation as one member called it.
type Call struct {
	Rank       int
	Host       string
	Collective string // "allreduce", ...
	Function   string // "none" where nothing is reduced
	Element    string // element type
	Elements   uint32 // 0 where they are not known, or Bytes are instead; of pieces over the tree those of all
	Root       int
	Operation  uint16 // serial number of the operation among the communicator's
	// Bytes are those of the message that did not fit, of an operation by hosts: sent, or awaited.
	Bytes uint64

	isMany bool // members compare a hash of the number of elements, or of all counts
}

// String describes the call in a few words.
func (c Call) String() string {
	s := fmt.Sprintf("rank %d (%s) called %s", c.Rank, c.Host, c.Collective)
	switch c.Collective {
	case "barrier":
		return fmt.Sprintf("%s as operation %d", s, c.Operation)
	case "broadcast", "scatter", "scatterv":
		s += fmt.Sprintf(" from root %d", c.Root)
	case "gather", "gatherv":
		s += fmt.Sprintf(" to root %d", c.Root)
	case "reduce":
		s += fmt.Sprintf(" by %s to root %d", c.Function, c.Root)
	default:
		if c.Function != "none" {
			s += " by " + c.Function
		}
	}
	if c.Elements == 0 && c.Bytes > 0 {
		return fmt.Sprintf("%s of %s, with a message of %d bytes, as operation %d", s, c.Element, c.Bytes, c.Operation)
	}
	if c.isMany {
		return fmt.Sprintf("%s of %s, whose number is known by a hash alone, as operation %d", s, c.Element, c.Operation)
	}
	return fmt.Sprintf("%s of %d %s as operation %d", s, c.Elements, c.Element, c.Operation)
}

// Disagreement reports that two members called different operations where all
// must call the same. It answers errors.Is with ErrDisagreement and ErrEnded.
type Disagreement struct {
	Calls [2]Call
	kind  wire.ErrorKind
}

// Error names both ranks and what each of them called.
func (e *Disagreement) Error() string {
	what := "%v: %v, but %v"
	switch e.kind {
	case wire.TwoSources:
		what = "%v: both hold the vector: %v, and %v"
	case wire.NoSource:
		what = "%v: no member holds the vector: %v, and %v"
	default: // wire.Mismatch: what they called differs
	}
	return fmt.Sprintf(what, ErrDisagreement, e.Calls[0], e.Calls[1])
}

// Unwrap returns ErrDisagreement and ErrEnded.
func (e *Disagreement) Unwrap() []error { return []error{ErrDisagreement, ErrEnded} }

// failure turns the end of a communicator into its error.
func (c *Communicator) failure(f *wire.Fail) error {
	if f.Kind == wire.FailCalls {
		d := &Disagreement{kind: wire.Mismatch}
		for i := range d.Calls {
			d.Calls[i] = c.callOf(&f.Calls[i])
		}
		return d
	}
	if f.Kind == wire.FailRevoked {
		return &RevokedError{Rank: int(f.Rank), Host: c.hostOf(f.Rank)}
	}
	if f.Kind != wire.FailDisagree {
		return &MemberError{Rank: int(f.Rank), Host: c.hostOf(f.Rank), Reason: f.Reason}
	}
	d := &Disagreement{kind: f.Error.Kind}
	for i := range d.Calls {
		s := f.Error.Says[i]
		function, element, elements := session.Called(&s)
		d.Calls[i] = Call{
			Rank: int(f.Error.Rank[i]), Host: c.hostOf(f.Error.Rank[i]),
			Collective: s.Collective.String(), Function: function.String(), Element: element.String(),
			Elements: elements, Root: int(s.Root), Operation: s.Operation,
		}
		if m, ok := schedule.ReadMark(s.Root); ok {
			k := &d.Calls[i]
			k.Collective, k.Element, k.Root = m.Collective.String(), elementName(m.Element), int(m.Root)
			if !m.Collective.Reduces() {
				k.Function = "none"
			}
		}
	}
	return d
}

// callOf returns an operation by hosts as a member called it.
func (c *Communicator) callOf(k *wire.Called) Call {
	tag := schedule.ReadTag(k.Tag)
	call := Call{
		Rank: int(k.Rank), Host: c.hostOf(k.Rank), Collective: tag.Collective.String(), Function: operatorName(tag.Function), Element: elementName(tag.Element),
		Root: int(tag.Root), Operation: tag.Serial, Bytes: k.Bytes,
	}
	if call.isMany = tag.Count < 0; !call.isMany {
		call.Elements = uint32(tag.Count)
	}
	return call
}

func (c *Communicator) hostOf(rank uint32) string {
	if int(rank) < len(c.members) {
		return c.members[rank].process()
	}
	return "unknown"
}
