package rpc

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/pathsel"
)

// sentinels are the errors that keep their identity across the wire, by a name
// that never changes. Of several that an error wraps the first one counts.
var sentinels = []struct {
	err  error
	name string
	code codes.Code
}{
	{ErrMalformed, "malformed", codes.InvalidArgument},
	{ErrDenied, "denied", codes.PermissionDenied},
	{ErrTopology, "invalid-topology", codes.InvalidArgument},
	{ErrVersion, "topology-version", codes.Aborted},
	{ErrLed, "other-manager", codes.FailedPrecondition},
	{ErrStale, "stale-manager", codes.FailedPrecondition},
	{ErrNotLeading, "not-leading", codes.FailedPrecondition},
	{manager.ErrRequest, "invalid-request", codes.InvalidArgument},
	{manager.ErrTooFew, "too-few-members", codes.InvalidArgument},
	{manager.ErrTooMany, "too-many-members", codes.InvalidArgument},
	{quota.ErrQuota, "quota", codes.ResourceExhausted},
	{manager.ErrTooManyGroups, "too-many-groups", codes.ResourceExhausted},
	{manager.ErrDuplicate, "duplicate-member", codes.InvalidArgument},
	{manager.ErrUnknownHost, "unknown-host", codes.NotFound},
	{manager.ErrUnknownSwitch, "unknown-switch", codes.NotFound},
	{manager.ErrUnknownGroup, "unknown-group", codes.NotFound},
	{manager.ErrUnknownRank, "unknown-rank", codes.NotFound},
	{manager.ErrBundle, "bundle", codes.InvalidArgument},
	{manager.ErrExists, "group-exists", codes.AlreadyExists},
	{manager.ErrReleased, "group-released", codes.FailedPrecondition},
	{manager.ErrNotStored, "not-stored", codes.ResourceExhausted},
	{manager.ErrAgentDrained, "agent-drained", codes.FailedPrecondition},
	{manager.ErrReplaced, "stream-replaced", codes.Aborted},
	{manager.ErrAddress, "foreign-address", codes.FailedPrecondition},
	{manager.ErrNoTree, "no-tree", codes.FailedPrecondition},
	{manager.ErrRefused, "switch-refused", codes.FailedPrecondition},
	{manager.ErrNoAnswer, "no-answer", codes.FailedPrecondition},
	{manager.ErrEpochs, "epochs-used-up", codes.ResourceExhausted},
	{manager.ErrFewer, "fewer", codes.FailedPrecondition},
	{manager.ErrHostsFaster, "hosts-faster", codes.FailedPrecondition},
	{manager.ErrAbsent, "absent-hosts", codes.FailedPrecondition},
	{pathsel.ErrNoTree, "no-path", codes.FailedPrecondition},
}

// causeCodes are the codes of the causes for which a switch refuses.
var causeCodes = map[agent.Cause]codes.Code{
	agent.Slots: codes.ResourceExhausted, agent.Children: codes.ResourceExhausted,
	agent.ChunkSize: codes.ResourceExhausted, agent.Epochs: codes.ResourceExhausted,
	agent.Functions: codes.FailedPrecondition, agent.Types: codes.FailedPrecondition,
	agent.Protection: codes.FailedPrecondition,
	agent.Draining:   codes.FailedPrecondition, agent.StaleEpoch: codes.FailedPrecondition,
	agent.Incarnation: codes.FailedPrecondition, agent.Conflict: codes.AlreadyExists,
	agent.Socket: codes.Internal, agent.BadRequest: codes.InvalidArgument,
	agent.Superseded: codes.Aborted,
}

// causes are the causes by name.
var causes = func() map[string]agent.Cause {
	byName := make(map[string]agent.Cause, len(causeCodes))
	for c := range causeCodes {
		byName[c.String()] = c
	}
	return byName
}()

// nameOf returns the name of the first sentinel that err wraps, and its code.
func nameOf(err error) (string, codes.Code, bool) {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.name, s.code, true
		}
	}
	return "", codes.Unknown, false
}

// sentinel returns the error of that name, or nil.
func sentinel(name string) error {
	for _, s := range sentinels {
		if s.name == name {
			return s.err
		}
	}
	return nil
}

// problem turns an error into its message, nil into nil.
func problem(err error) *pb.Problem {
	if err == nil {
		return nil
	}
	p := &pb.Problem{Message: err.Error()}
	p.Reason, _, _ = nameOf(err)
	var byManager *manager.Refusal
	var bySwitch *agent.Refusal
	if errors.As(err, &byManager) {
		p.Refusal = &pb.Problem_ByManager{ByManager: groupRefusal(byManager)}
	} else if errors.As(err, &bySwitch) {
		p.Refusal = &pb.Problem_BySwitch{BySwitch: switchRefusal(bySwitch)}
	}
	return p
}

func switchRefusal(r *agent.Refusal) *pb.SwitchRefusal {
	return &pb.SwitchRefusal{
		Cause: r.Cause.String(), Switch: r.Switch, Need: uint32(r.Need), Free: uint32(r.Free),
		Holders: each(r.Holders, holder), MoreHolders: uint32(r.More), Detail: r.Detail,
	}
}

func groupRefusal(r *manager.Refusal) *pb.GroupRefusal {
	m := &pb.GroupRefusal{
		Resource: r.Resource, Switch: r.Switch, Counted: r.Counted,
		Need: uint32(r.Need), Free: uint32(r.Free),
		Holders: each(r.Holders, holder), MoreHolders: uint32(r.More), Cause: problem(r.Cause),
	}
	m.Reason, _, _ = nameOf(r.Reason)
	return m
}

func holder(h agent.Holder) *pb.Holder { return &pb.Holder{Group: h.Group, Slots: uint32(h.Slots)} }

func holderOf(m *pb.Holder) agent.Holder {
	return agent.Holder{Group: m.GetGroup(), Slots: int(m.GetSlots())}
}

// A remote error is one that the other side had: its text and, if this side
// knows it, its identity.
type remote struct {
	message string
	is      error // may be nil
}

func (r *remote) Error() string { return r.message }

func (r *remote) Unwrap() error { return r.is }

// unproblem turns a message back into the error, nil into nil. A reason that
// this version does not know keeps its text.
func unproblem(p *pb.Problem) error {
	if p == nil {
		return nil
	}
	e := &remote{message: p.Message, is: sentinel(p.Reason)}
	switch r := p.Refusal.(type) {
	case *pb.Problem_BySwitch:
		e.is = unswitchRefusal(r.BySwitch)
	case *pb.Problem_ByManager:
		e.is = ungroupRefusal(r.ByManager)
	}
	return e
}

func unswitchRefusal(m *pb.SwitchRefusal) error {
	cause, known := causes[m.GetCause()]
	if !known {
		return fmt.Errorf("switch %s refuses: %s", m.GetSwitch(), m.GetCause())
	}
	return &agent.Refusal{
		Cause: cause, Switch: m.GetSwitch(), Need: int(m.GetNeed()), Free: int(m.GetFree()),
		Holders: each(m.GetHolders(), holderOf), More: int(m.GetMoreHolders()), Detail: m.GetDetail(),
	}
}

func ungroupRefusal(m *pb.GroupRefusal) error {
	reason := sentinel(m.GetReason())
	if reason == nil {
		reason = &remote{message: m.GetReason()}
	}
	return &manager.Refusal{
		Reason: reason, Resource: m.GetResource(), Switch: m.GetSwitch(), Counted: m.GetCounted(),
		Need: int(m.GetNeed()), Free: int(m.GetFree()),
		Holders: each(m.GetHolders(), holderOf), More: int(m.GetMoreHolders()), Cause: unproblem(m.GetCause()),
	}
}
