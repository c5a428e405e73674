package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/driver/audit"
)

// RequestID is the name of the header in which a server returns a request's id.
const RequestID = "request-id"

// The ids of this process's requests.
var (
	processID   = rand.Text()[:10]
	lastRequest atomic.Uint64
)

type requestKey struct{}

// withRequest gives a call an id.
func withRequest(ctx context.Context) (context.Context, string) {
	id := fmt.Sprintf("%s-%d", processID, lastRequest.Add(1))
	return context.WithValue(ctx, requestKey{}, id), id
}

// AuditOf returns the record of a call, or of a request in a host's session, and how it
// ended.
func AuditOf(ctx context.Context, method string, err error) audit.Record {
	r := audit.Record{Method: method, Outcome: outcomeOf(err), Err: err}
	r.Request, _ = ctx.Value(requestKey{}).(string)
	if caller, known := CallerOf(ctx); known {
		r.Role, r.Name = string(caller.Role), caller.Name
	}
	if p, ok := peer.FromContext(ctx); ok {
		r.Address = p.Addr.String()
	}
	return r
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return audit.Done
	case errors.Is(err, ErrDenied):
		return audit.Denied
	case errors.Is(err, quota.ErrQuota), errors.Is(err, manager.ErrTooManyGroups):
		return audit.Quota
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.Canceled:
		return audit.Cancelled
	}
	return audit.Failed
}

// audited are the methods whose calls are recorded, whatever their outcome. Of others those
// that are denied, or refused by a quota; and the service records what is in a stream.
var audited = map[string]bool{
	pb.Manager_CreateGroup_FullMethodName: true, pb.Manager_ReleaseGroup_FullMethodName: true,
	pb.Manager_HostSession_FullMethodName: true, pb.Manager_DrainSwitch_FullMethodName: true,
}

// record records a call, if it is one to be recorded.
func (g *guard) record(ctx context.Context, method string, request, response any, err error) {
	if g.audit == nil || !audited[method] && err == nil {
		return
	}
	r := AuditOf(ctx, path.Base(method), err)
	if !audited[method] && r.Outcome != audit.Denied && r.Outcome != audit.Quota {
		return
	}
	switch m := request.(type) {
	case *pb.CreateGroupRequest:
		r.Object, r.Detail = m.GetName(), fmt.Sprintf("members=%d", len(m.GetMembers()))
		if made, ok := response.(*pb.CreateGroupResponse); ok {
			r.Group = made.GetGroup()
		}
	case *pb.PlanGroupRequest:
		r.Object, r.Detail = m.GetGroup().GetName(), fmt.Sprintf("members=%d", len(m.GetGroup().GetMembers()))
	case *pb.ReleaseGroupRequest:
		r.Group = m.GetGroup()
	case *pb.ExplainGroupRequest:
		r.Group, r.Object = m.GetGroup(), m.GetName()
	case *pb.DrainSwitchRequest:
		r.Object, r.Detail = m.GetSwitch(), fmt.Sprintf("on=%v", m.GetOn())
	}
	g.audit.Record(r)
}
