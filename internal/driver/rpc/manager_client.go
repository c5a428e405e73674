package rpc

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// ManagerClient is the Manager on the other side of a connection, which is made
// when it is needed and made again when it was lost. Calls fail with
// ErrUnavailable while there is none. It is safe for concurrent use.
type ManagerClient struct {
	remoteEnd
	client pb.ManagerClient
}

// DialManager returns a client of the manager at target, a "host:port" or a
// gRPC name. It does not wait for a connection.
func DialManager(target string, c ClientConfig) (*ManagerClient, error) {
	conn, err := dial(target, c)
	if err != nil {
		return nil, err
	}
	return &ManagerClient{remoteEnd{conn, "manager"}, pb.NewManagerClient(conn)}, nil
}

// CreateGroup is Manager's.
func (c *ManagerClient) CreateGroup(ctx context.Context, g manager.Create) (uint32, bool, error) {
	m, err := c.client.CreateGroup(ctx, createRequest(g))
	return m.GetGroup(), m.GetFound(), c.fail("create group", err)
}

// ReleaseGroup is Manager's.
func (c *ManagerClient) ReleaseGroup(ctx context.Context, group uint32) error {
	_, err := c.client.ReleaseGroup(ctx, &pb.ReleaseGroupRequest{Group: group})
	return c.fail("release group", err)
}

// Groups is Manager's.
func (c *ManagerClient) Groups(ctx context.Context) ([]manager.Summary, error) {
	var all []manager.Summary
	var r reader
	stream, err := c.client.ListGroups(ctx, &pb.ListGroupsRequest{})
	if err == nil {
		err = collect(stream, func(m *pb.ListGroupsResponse) {
			all = append(all, each(m.GetGroups(), r.summary)...)
		})
	}
	return all, c.fail("list groups", errors.Join(err, r.err))
}

// Explain is Manager's.
func (c *ManagerClient) Explain(ctx context.Context, which GroupRef) (Explanation, error) {
	request := &pb.ExplainGroupRequest{Which: &pb.ExplainGroupRequest_Group{Group: which.Group}}
	if which.Name != "" {
		request.Which = &pb.ExplainGroupRequest_Name{Name: which.Name}
	}
	m, err := c.client.ExplainGroup(ctx, request)
	return answered(&c.remoteEnd, "look up group", m, err, (*reader).explanation)
}

// Topology is Manager's.
func (c *ManagerClient) Topology(ctx context.Context) (Fabric, error) {
	var f Fabric
	var r reader
	stream, err := c.client.GetTopology(ctx, &pb.GetTopologyRequest{})
	if err == nil {
		err = collect(stream, func(m *pb.GetTopologyResponse) { r.piece(&f, m) })
	}
	return f, c.fail("topology", errors.Join(err, r.err))
}

// PlanGroup is Manager's.
func (c *ManagerClient) PlanGroup(ctx context.Context, g manager.Create) (GroupPlan, error) {
	m, err := c.client.PlanGroup(ctx, &pb.PlanGroupRequest{Group: createRequest(g)})
	return answered(&c.remoteEnd, "plan group", m, err, func(r *reader, m *pb.PlanGroupResponse) GroupPlan {
		return r.groupPlan(m, len(g.Members))
	})
}

// DrainSwitch is Manager's.
func (c *ManagerClient) DrainSwitch(ctx context.Context, name string, on bool) error {
	_, err := c.client.DrainSwitch(ctx, &pb.DrainSwitchRequest{Switch: name, On: on})
	return c.fail("drain switch", err)
}

// collect calls add with every message of a stream.
func collect[M any](stream grpc.ServerStreamingClient[M], add func(*M)) error {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		add(m)
	}
}
