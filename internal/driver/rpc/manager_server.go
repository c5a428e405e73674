package rpc

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
)

// managerServer serves a Manager.
type managerServer struct {
	pb.UnimplementedManagerServer
	manager Manager
	members Membership // may be nil
}

func (s *managerServer) CreateGroup(ctx context.Context, m *pb.CreateGroupRequest) (*pb.CreateGroupResponse, error) {
	var r reader
	c := r.create(m)
	if r.err != nil {
		return nil, r.err
	}
	c.Owner = ownerOf(ctx)
	if err := mayCreate(ctx, c); err != nil {
		return nil, err
	}
	group, found, err := s.manager.CreateGroup(ctx, c)
	return &pb.CreateGroupResponse{Group: group, Found: found}, err
}

func (s *managerServer) ReleaseGroup(ctx context.Context, m *pb.ReleaseGroupRequest) (*pb.ReleaseGroupResponse, error) {
	if err := s.maySee(ctx, GroupRef{Group: m.GetGroup()}); err != nil {
		return nil, err
	}
	return &pb.ReleaseGroupResponse{}, s.manager.ReleaseGroup(ctx, m.GetGroup())
}

func (s *managerServer) ListGroups(_ *pb.ListGroupsRequest, stream grpc.ServerStreamingServer[pb.ListGroupsResponse]) error {
	all, err := s.manager.Groups(stream.Context())
	if err != nil {
		return err
	}
	for part := range slices.Chunk(all, piece) {
		if err := stream.Send(&pb.ListGroupsResponse{Groups: each(part, summary)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *managerServer) ExplainGroup(ctx context.Context, m *pb.ExplainGroupRequest) (*pb.ExplainGroupResponse, error) {
	which := GroupRef{Group: m.GetGroup(), Name: m.GetName()}
	if err := s.maySee(ctx, which); err != nil {
		return nil, err
	}
	e, err := s.manager.Explain(ctx, which)
	return explanation(e), err
}

func (s *managerServer) GetTopology(_ *pb.GetTopologyRequest, stream grpc.ServerStreamingServer[pb.GetTopologyResponse]) error {
	f, err := s.manager.Topology(stream.Context())
	if err != nil {
		return err
	}
	return pieces(f, stream.Send)
}

func (s *managerServer) PlanGroup(ctx context.Context, m *pb.PlanGroupRequest) (*pb.PlanGroupResponse, error) {
	var r reader
	c := r.create(m.GetGroup())
	if r.err != nil {
		return nil, r.err
	}
	c.Owner = ownerOf(ctx)
	if err := mayCreate(ctx, c); err != nil {
		return nil, err
	}
	p, err := s.manager.PlanGroup(ctx, c)
	return groupPlan(p), err
}

func (s *managerServer) DrainSwitch(ctx context.Context, m *pb.DrainSwitchRequest) (*pb.DrainSwitchResponse, error) {
	return &pb.DrainSwitchResponse{}, s.manager.DrainSwitch(ctx, m.GetSwitch(), m.GetOn())
}
