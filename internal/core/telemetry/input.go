package telemetry

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Part is a part of the data: leaves that are read together.
type Part uint8

// The parts.
const (
	Events     Part = iota // all leaves that are no counters
	Interfaces             // counters of interfaces
	System                 // of the machine
	Agent                  // of the switch agent
	parts
)

// roots are the first elements of the paths of each part.
var roots = [parts]string{Interfaces: "interfaces", System: "system", Agent: "tributary"}

// Parts lists them.
func Parts() []Part { return []Part{Events, Interfaces, System, Agent} }

// String names p.
func (p Part) String() string {
	if p == Events {
		return "events"
	}
	return roots[p] + " counters"
}

// PartOf returns the part that a leaf is in.
func PartOf(l *openconfig.Leaf) Part {
	if l.Counter {
		for p := Events + 1; p < parts; p++ {
			if roots[p] == l.Path[0].Name {
				return p
			}
		}
	}
	return Events
}

// set is a set of parts.
type set uint8

func (s set) has(p Part) bool { return s>>p&1 != 0 }

// needed returns the parts with counters that a path selects.
func needed(p openconfig.Path) (s set) {
	for l := range openconfig.Schema() {
		if part := PartOf(l); part != Events && !s.has(part) && openconfig.SelectsLeaf(p, l) {
			s |= 1 << part
		}
	}
	return s
}

// Leaf is a leaf's path, as openconfig.Path.String writes it, and value.
type Leaf struct {
	Path  string
	Value openconfig.Value
}

// Input is one of the structs of this file that have the method.
type Input interface{ input() }

// Open begins a stream; the answer is a Batch or, if it cannot be, an End.
type Open struct {
	Stream        uint64 // a number that no other stream has
	Mode          Mode
	UpdatesOnly   bool // what is there at first is not sent
	Subscriptions []Subscription
}

// Poll has everything sent that a stream of mode Polled has subscribed to.
type Poll struct{ Stream uint64 }

// Ready says that a batch can be sent on a stream. Before the first one, none can.
type Ready struct{ Stream uint64 }

// Close ends a stream.
type Close struct{ Stream uint64 }

// Snapshot is all that there is of one part. Leaves of other parts, and those that the
// schema does not have, are ignored.
type Snapshot struct {
	Part   Part
	At     int64 // when it was read, in nanoseconds since 1970
	Leaves []Leaf
	Failed bool // it could not be read: the leaves stay as they were
}

func (Open) input()     {}
func (Poll) input()     {}
func (Ready) input()    {}
func (Close) input()    {}
func (Snapshot) input() {}

// Mode is how long a stream lasts.
type Mode uint8

// The modes.
const (
	Streaming Mode = iota // until it is closed
	Once                  // until everything was sent once
	Polled                // everything is sent at each Poll
)

// Trigger is when a leaf is sent on a stream of mode Streaming, beside the first time.
type Trigger uint8

// The triggers.
const (
	TargetDefined Trigger = iota
	OnChange
	Sample
)

// Subscription selects leaves.
type Subscription struct {
	Path    openconfig.Path // may have wildcards
	Trigger Trigger
	// Interval is that of Sample; 0: Config.MinInterval. Other triggers have none.
	Interval  time.Duration
	Heartbeat time.Duration // 0: none
	Suppress  bool          // samples that have not changed are not sent
}

// Output is what a step has put out. Its slices are the caller's, for the next step too.
type Output struct {
	Collect []Part // is to be read, and given as a Snapshot, soon
	Batches []Batch
	Ended   []End
}

// Reset makes o empty.
func (o *Output) Reset() {
	clear(o.Batches)
	clear(o.Ended)
	o.Collect, o.Batches, o.Ended = o.Collect[:0], o.Batches[:0], o.Ended[:0]
}

// Batch is to be sent on a stream, in the order of its entries.
type Batch struct {
	Stream  uint64
	Entries []Entry
}

// Kind is what an Entry is.
type Kind uint8

// The kinds of entries.
const (
	Update Kind = iota
	Delete      // the leaf is not there any more
	Sync        // everything that was there at first, or at the poll, was sent
)

// Entry is a part of a batch.
type Entry struct {
	Kind       Kind
	Name       string          // the path of the leaf
	Path       openconfig.Path // the same
	Leaf       *openconfig.Leaf
	Value      openconfig.Value // of an Update
	At         int64            // when this was read, or happened, in nanoseconds since 1970; 0: now
	Duplicates uint32           // updates that this one has replaced
}

// End says that a stream has ended, behind its batches.
type End struct {
	Stream uint64
	Err    error // nil: it is complete; otherwise it was refused, and wraps ErrInvalid, ErrLimit or ErrUnknown
}
