package rail

import (
	"errors"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Errors of requests. Others are what the caller of Fail gives.
var (
	// ErrTruncated is of a receive whose message is longer than its memory, which is full.
	ErrTruncated = errors.New("rail: the message is longer than the receive's memory")
	// ErrCancelled is of a request that this host has cancelled.
	ErrCancelled = errors.New("rail: cancelled")
	// ErrWithdrawn is of a receive whose message the other side has cancelled.
	ErrWithdrawn = errors.New("rail: the sender has cancelled the message")
	// ErrRegion is of a one-sided request for memory that the other side has not registered
	// so: another key, out of bounds, without the right, or released.
	ErrRegion = errors.New("rail: no such region of memory at the other host")
)

// SpaceOf returns the space that a context is of: contexts of one space end together.
func SpaceOf(context uint64) uint64 { return context >> spaceShift }

const spaceShift = 24

// AnyTag has a receive take messages of any tag.
const AnyTag = ^uint64(0)

// A SendRequest sends a message, or stores bytes in the other side's memory. The caller sets
// the exported fields, and leaves them and Data alone until it is Done.
type SendRequest struct {
	Context uint64
	Tag     uint64
	Data    []byte
	// Buffered lets the request be done before the message has arrived: the core copies
	// Data, if it fits into a MATCH.
	Buffered bool
	// First lets the request go before others. Their messages, which nobody may receive, do not
	// take all the room at the other side.
	First bool
	// Handle and Offset say where in the other side's memory Put stores.
	Handle Handle
	Offset uint64
	// User is the caller's own.
	User any

	sender
}

// A RecvRequest receives a message, or loads bytes of the other side's memory. The caller
// sets the exported fields, and leaves them and Data alone until it is Done.
type RecvRequest struct {
	Context uint64
	Tag     uint64
	Ignore  uint64 // bits in which the message's tag may differ: AnyTag of all messages of this Context
	Data    []byte
	// First is of a receive whose message goes First. While it waits, the other side may send
	// messages that nobody receives yet up to 16 times Config.MaxHeads.
	First bool
	// Handle and Offset say what of the other side's memory Get loads.
	Handle Handle
	Offset uint64
	// User is the caller's own.
	User any

	receiver
}

// Done reports that a request is complete: Send or Recv, with the error; of a receive also
// the bytes in its Data and the tag of the message.
type Done struct {
	Send *SendRequest
	Recv *RecvRequest
	Err  error
	N    int
	Size uint64 // of the whole message
	Tag  uint64
}

// An Envelope is what Probe finds: a message that no receive has matched yet.
type Envelope struct {
	Tag  uint64
	Size uint64
}

// A Frame is to be sent on a path. Head is valid until the Output is reset; Body is lent to
// the transport until the frame's completion if the path's class is Fragment, and else as
// Head. Sent reports the completion of the Number. With MayWait nothing waits for that, and no
// other path is to be chosen by it.
type Frame struct {
	Path   uint8
	Class  Class
	Number uint32
	Head   []byte
	Body   []byte

	MayWait bool
}

// Where names a path.
type Where struct {
	Path  uint8
	Class Class
}

// Output is what a call brings about. The caller owns and resets it.
type Output struct {
	Frames []Frame
	Done   []Done
	Break  []Where  // the other side has lost this path: take in what has arrived on it, then end it
	Kick   []Where  // take in what lies on this path
	Lost   []uint64 // spaces whose buffered messages may not have arrived: the session has failed
	Wanted uint8    // bit 1<<class: something waits for a path of this class, and none is up

	heads []byte
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	clear(o.Frames)
	clear(o.Done)
	o.Frames, o.Done, o.Break, o.Kick = o.Frames[:0], o.Done[:0], o.Break[:0], o.Kick[:0]
	o.Lost = o.Lost[:0]
	o.Wanted, o.heads = 0, o.heads[:0]
}

// Counters report what a Peer has counted.
type Counters struct {
	Sent       [Flows]Traffic // complete: messages, what was stored, and what the other side has loaded
	Received   [Flows]Traffic // complete: messages, what was loaded, and what the other side has stored
	Fragments  uint64         // handed to the transport
	Failed     uint64         // of them: completed with an error
	Resent     uint64         // sent again from the fragment
	Restarts   uint64         // of requests that this host sends
	Duplicates uint64         // envelopes that had arrived before
	Late       uint64         // fragments of an earlier restart, or of a request that is gone
	Malformed  uint64         // frames
	Refused    uint64         // one-sided requests of the other side's
	Unexpected uint64         // envelopes that no receive had been posted for
	Discarded  uint64         // of them: of a context that is not accepted
}

// Flow is a way that messages go.
type Flow uint8

// The flows: MATCH; RNDV and RGET; STORE; LOAD.
const (
	Eager Flow = iota
	Rendezvous
	Store
	Load
	Flows
)

// flowOf returns the flow that begins with an envelope.
func flowOf(k kind) Flow {
	switch k {
	case kindMatch:
		return Eager
	case kindStore:
		return Store
	case kindLoad:
		return Load
	}
	return Rendezvous
}

// Traffic is an amount of messages.
type Traffic struct{ Messages, Bytes uint64 }

// Add adds messages.
func (t *Traffic) Add(messages, bytes uint64) {
	t.Messages += messages
	t.Bytes += bytes
}

// scheduler chooses the path of a fragment: Rails, or a test's.
type scheduler interface {
	Up(i int, bandwidth uint64)
	Down(i int)
	ChooseOf(size, rest int, now core.Time) (i int, ok bool)
	Sent(i, size int, now core.Time)
	Acked(i, size int, now core.Time)
	Delay(i int, trip time.Duration, now core.Time)
	Measured(i int) Measured
}
