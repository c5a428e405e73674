package agent

import (
	"errors"
	"fmt"
	"strings"
)

// The reasons of a refusal; a *Refusal answers errors.Is with the one that
// fits its cause.
var (
	ErrResource    = errors.New("agent: not enough of a resource") // slots, children, epochs, chunk size
	ErrCapability  = errors.New("agent: the switch cannot do that")
	ErrDraining    = errors.New("agent: the switch is being drained")
	ErrStaleEpoch  = errors.New("agent: the epoch is over")
	ErrIncarnation = errors.New("agent: meant for another incarnation of the agent")
	ErrConflict    = errors.New("agent: differs from what was asked before")
	ErrSocket      = errors.New("agent: no data socket")
	ErrRequest     = errors.New("agent: invalid request")
	ErrSuperseded  = errors.New("agent: the same request came again before it was answered")
)

// Cause is what a request was refused for.
type Cause uint8

// The causes, and in parentheses what Need and Free count.
const (
	Slots       Cause = iota + 1 // slots of the switch (slots)
	Children                     // children that one tree may have (children)
	ChunkSize                    // payload of a packet (bytes)
	Epochs                       // epochs of one tree at once (epochs)
	Functions                    // a function that the switch does not have
	Types                        // an element type that it does not have
	Protection                   // it takes no packets that are authenticated or encrypted
	Draining                     // the switch takes nothing new
	StaleEpoch                   // removed, lost, or overtaken by a later one
	Incarnation                  // the agent has been restarted
	Conflict                     // the epoch is held, on other terms
	Socket                       // the data socket could not be opened
	BadRequest                   // fields that cannot be meant
	Superseded                   // answered by a repetition of the request
)

var causes = [...]struct {
	name string
	is   error
}{
	{"cause(0)", nil},
	{"slots", ErrResource}, {"children", ErrResource}, {"chunk bytes", ErrResource}, {"epochs", ErrResource},
	{"functions", ErrCapability}, {"types", ErrCapability}, {"protection", ErrCapability}, {"draining", ErrDraining},
	{"stale epoch", ErrStaleEpoch}, {"incarnation", ErrIncarnation}, {"conflict", ErrConflict},
	{"socket", ErrSocket}, {"request", ErrRequest}, {"superseded", ErrSuperseded},
}

// String returns the name of the resource, or of what else was in the way.
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c].name
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// Counted reports whether Need and Free mean something for c.
func (c Cause) Counted() bool { return c >= Slots && c <= Epochs }

// MaxHolders is the most groups that a refusal names.
const MaxHolders = 16

// Holder is a group that has part of a resource.
type Holder struct {
	Group uint32
	Slots int
}

// Refusal is the error of a request that was refused: the resource, the
// switch, what is free, and who holds the rest.
type Refusal struct {
	Cause   Cause
	Switch  string
	Need    int      // if Cause.Counted
	Free    int      // if Cause.Counted
	Holders []Holder // Slots: the largest first, at most MaxHolders
	More    int      // holders beyond those
	Detail  string   // what else there is to say; may be empty
}

// Unwrap returns the sentinel that fits r.Cause.
func (r *Refusal) Unwrap() error {
	if int(r.Cause) < len(causes) {
		return causes[r.Cause].is
	}
	return nil
}

// Error returns all that r knows, in one line.
func (r *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "switch %s refuses: %s", r.Switch, r.Cause)
	if r.Cause.Counted() {
		fmt.Fprintf(&b, ": needed %d, free %d", r.Need, r.Free)
	}
	if r.Detail != "" {
		fmt.Fprintf(&b, ": %s", r.Detail)
	}
	WriteHolders(&b, r.Holders, r.More)
	return b.String()
}

// WriteHolders appends who holds the rest, if anyone does.
func WriteHolders(b *strings.Builder, holders []Holder, more int) {
	for i, h := range holders {
		sep := ", "
		if i == 0 {
			sep = "; held by "
		}
		fmt.Fprintf(b, "%sgroup %d (%d)", sep, h.Group, h.Slots)
	}
	if more > 0 {
		fmt.Fprintf(b, " and %d more", more)
	}
}
