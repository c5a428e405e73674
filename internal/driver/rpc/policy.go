package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// ErrDenied: the caller, as its certificate names it, may not do that.
var ErrDenied = errors.New("rpc: not allowed")

// policy reports the roles that may call a method; what is not here nobody may.
// Hosts may call theirs for the groups that they are members of alone, which
// the methods see to: see managerServer.
var policy = map[string][]pki.Role{
	pb.Manager_CreateGroup_FullMethodName:  {pki.Operator, pki.Host},
	pb.Manager_ReleaseGroup_FullMethodName: {pki.Operator, pki.Host},
	pb.Manager_HostSession_FullMethodName:  {pki.Operator, pki.Host},
	pb.Manager_ExplainGroup_FullMethodName: {pki.Operator, pki.Host},
	pb.Manager_PlanGroup_FullMethodName:    {pki.Operator, pki.Host},
	pb.Manager_ListGroups_FullMethodName:   {pki.Operator},
	pb.Manager_GetTopology_FullMethodName:  {pki.Operator},
	pb.Manager_DrainSwitch_FullMethodName:  {pki.Operator},

	pb.Manager_SetTopology_FullMethodName:        {pki.Operator},
	pb.Manager_EditTopology_FullMethodName:       {pki.Operator},
	pb.Manager_DiffTopology_FullMethodName:       {pki.Operator},
	pb.Manager_GetTopologyFile_FullMethodName:    {pki.Operator},
	pb.Manager_GetTopologyHistory_FullMethodName: {pki.Operator},

	pb.SwitchAgent_GetCapability_FullMethodName: {pki.Manager, pki.Operator},
	pb.SwitchAgent_GetCounters_FullMethodName:   {pki.Manager, pki.Operator},
	pb.SwitchAgent_Watch_FullMethodName:         {pki.Manager, pki.Operator},
	pb.SwitchAgent_Drain_FullMethodName:         {pki.Manager, pki.Operator},
	pb.SwitchAgent_Prepare_FullMethodName:       {pki.Manager},
	pb.SwitchAgent_Commit_FullMethodName:        {pki.Manager},
	pb.SwitchAgent_Remove_FullMethodName:        {pki.Manager},
	pb.SwitchAgent_SetRoutes_FullMethodName:     {pki.Manager},

	"/gnmi.gNMI/Capabilities": {pki.Manager, pki.Operator},
	"/gnmi.gNMI/Get":          {pki.Manager, pki.Operator},
	"/gnmi.gNMI/Subscribe":    {pki.Manager, pki.Operator},
	"/gnmi.gNMI/Set":          {pki.Manager, pki.Operator}, // as Drain

	healthpb.Health_Check_FullMethodName:                             pki.Roles(),
	healthpb.Health_Watch_FullMethodName:                             pki.Roles(),
	healthpb.Health_List_FullMethodName:                              pki.Roles(),
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      pki.Roles(),
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": pki.Roles(),
}

// permit returns why caller must not call a method.
func permit(caller pki.Identity, method string) error {
	allowed := policy[method]
	if slices.Contains(allowed, caller.Role) {
		return nil
	}
	name := method[strings.LastIndexByte(method, '/')+1:]
	if len(allowed) == 0 {
		return fmt.Errorf("%w: %s calls %s, which nobody may", ErrDenied, caller, name)
	}
	roles := make([]string, len(allowed))
	for i, r := range allowed {
		roles[i] = string(r)
	}
	return fmt.Errorf("%w: %s calls %s, which is for the role %s", ErrDenied, caller, name, strings.Join(roles, " or "))
}

// Membership reports who is in a group, for the calls of hosts.
type Membership interface {
	// MemberOf returns nil if the host of that name is a member of the group,
	// ErrNotMember if it is not, and manager.ErrUnknownGroup if there is none.
	MemberOf(ctx context.Context, which GroupRef, host string) error
	// RankIs returns nil if that member of the group is the host of that name,
	// and otherwise an error as MemberOf does.
	RankIs(ctx context.Context, group, rank uint32, host string) error
}

// ErrNotMember: the host is not the member for which it speaks.
var ErrNotMember = errors.New("rpc: the host is not that member of the group")

// hostOf returns the caller's host name; false: it need not be a member.
func hostOf(ctx context.Context) (string, bool) {
	caller, known := CallerOf(ctx)
	return caller.Name, known && caller.Role == pki.Host
}

// ownerOf returns by whose quotas a call goes: the host that the certificate names or,
// without certificates, the other side's address. Operators are no hosts: it is empty.
func ownerOf(ctx context.Context) string {
	if caller, known := CallerOf(ctx); known {
		if caller.Role != pki.Host {
			return ""
		}
		return caller.Name
	}
	return addressOf(ctx).String()
}

// provenOf returns the address at which the caller is, for what it says of its own: under
// the certificate of a host the other end of its connection. An operator's word counts.
// Without certificates nothing is proven.
func provenOf(ctx context.Context, named netip.Addr) netip.Addr {
	caller, known := CallerOf(ctx)
	switch {
	case !known:
		return netip.Addr{}
	case caller.Role == pki.Host:
		return addressOf(ctx)
	}
	return named.Unmap()
}

// addressOf returns the other side's address; invalid: it is not known.
func addressOf(ctx context.Context) netip.Addr {
	if p, ok := peer.FromContext(ctx); ok {
		if a, err := netip.ParseAddrPort(p.Addr.String()); err == nil {
			return a.Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// mayCreate returns why the caller must not create a group.
func mayCreate(ctx context.Context, c manager.Create) error {
	host, bound := hostOf(ctx)
	if !bound || slices.Contains(c.Members, host) {
		return nil
	}
	return fmt.Errorf("%w: host %s creates group %q: %w", ErrDenied, host, c.Name, ErrNotMember)
}

// maySee returns why the caller must not ask about a group, or end it.
func (s *managerServer) maySee(ctx context.Context, which GroupRef) error {
	host, bound := hostOf(ctx)
	if !bound {
		return nil
	}
	if s.members == nil {
		return fmt.Errorf("%w: this manager does not distinguish members from others", ErrDenied)
	}
	return denied(host, which, s.members.MemberOf(ctx, which, host))
}

// mayBe returns why the caller must not speak for a member.
func (s *managerServer) mayBe(ctx context.Context, group, rank uint32) error {
	host, bound := hostOf(ctx)
	if !bound {
		return nil
	}
	if s.members == nil {
		return fmt.Errorf("%w: this manager does not distinguish members from others", ErrDenied)
	}
	return denied(fmt.Sprintf("%s as rank %d", host, rank), GroupRef{Group: group}, s.members.RankIs(ctx, group, rank, host))
}

// denied makes ErrNotMember a denial; other errors are the call's own.
func denied(who string, which GroupRef, err error) error {
	if errors.Is(err, ErrNotMember) {
		return fmt.Errorf("%w: host %s, %s: %w", ErrDenied, who, which, err)
	}
	return err
}
