package manager

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/agent"
)

// The errors of requests.
var (
	ErrRequest       = errors.New("manager: invalid request") // chunk size, window, name, secret, data address
	ErrTooFew        = errors.New("manager: a group of fewer than two members needs no tree")
	ErrTooMany       = errors.New("manager: too many members")
	ErrTooManyGroups = errors.New("manager: too many groups")
	ErrDuplicate     = errors.New("manager: a host is a member twice")
	ErrUnknownHost   = errors.New("manager: no such host")
	ErrRedrawn       = errors.New("manager: the fabric has been redrawn meanwhile") // of Draft.Choose: make another Draft
	ErrUnknownSwitch = errors.New("manager: no such switch")
	ErrUnknownGroup  = errors.New("manager: no such group")
	ErrUnknownRank   = errors.New("manager: no such rank")
	ErrBundle        = errors.New("manager: the group does not fit into its bundle")
	ErrExists        = errors.New("manager: a group of that name has other members or options")
	ErrReleased      = errors.New("manager: the group has been released")
	ErrNotStored     = errors.New("manager: not stored")                           // the driver's error follows
	ErrAgentDrained  = errors.New("manager: the switch's agent is drained itself") // of Drain: the switch is not in use for that
	ErrReplaced      = errors.New("manager: the member watches on a later stream")
)

// The reasons why a group has no tree; a *Refusal answers errors.Is with the
// one that fits, and with those of its cause.
var (
	ErrNoTree   = errors.New("manager: no tree")                         // nothing spans the group
	ErrRefused  = errors.New("manager: a switch refused")                // Cause is an *agent.Refusal
	ErrNoAnswer = errors.New("manager: a switch did not answer in time") // or died
	ErrEpochs   = errors.New("manager: the group's epochs are used up")
	ErrFewer    = errors.New("manager: fewer groups than were wanted") // of GroupPlan.Fewer
	// ErrHostsFaster: there could be one. Cause is a *pathsel.HostsFaster.
	ErrHostsFaster = errors.New("manager: the group needs no tree")
)

// Refusal is why a group has no tree at the moment: the resource, the switch,
// what is free, and who holds the rest, as far as one switch is the reason.
type Refusal struct {
	Reason   error // one of those above
	Resource string
	Switch   string // empty: no single one
	Need     int
	Free     int
	Counted  bool           // Need and Free mean something
	Holders  []agent.Holder // at most agent.MaxHolders, the largest first
	More     int            // holders beyond those
	Cause    error          // what pathsel or the agent said; may be nil
}

// Unwrap returns r.Reason and r.Cause.
func (r *Refusal) Unwrap() []error {
	if r.Cause == nil {
		return []error{r.Reason}
	}
	return []error{r.Reason, r.Cause}
}

// Error returns all that r knows, in one line.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(r.Reason.Error())
	if r.Resource != "" {
		fmt.Fprintf(&b, ": %s", r.Resource)
	}
	if r.Switch != "" {
		fmt.Fprintf(&b, " on switch %s", r.Switch)
	}
	if r.Counted {
		fmt.Fprintf(&b, ": needed %d, free %d", r.Need, r.Free)
	}
	agent.WriteHolders(&b, r.Holders, r.More)
	if r.Cause != nil {
		fmt.Fprintf(&b, " (%v)", r.Cause)
	}
	return b.String()
}
