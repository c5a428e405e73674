package rpc

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/ground/version"
)

// laterField is the number of a field that no message of this version has.
const laterField = 1000

// later adds to a message a field of a later version.
func later[M proto.Message](m M) M {
	text := protowire.AppendTag(m.ProtoReflect().GetUnknown(), laterField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendString(text, "what a later version has to say"))
	return m
}

// laterAgent is an agent of a version in which most calls are others, and all
// messages have more fields.
type laterAgent struct {
	pb.UnimplementedSwitchAgentServer
	asked chan *pb.WatchRequest
}

func (a *laterAgent) Watch(m *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	a.asked <- m
	state := agentState(someState)
	state.Version = "v9.9.9"
	for _, m := range []*pb.WatchResponse{
		later(&pb.WatchResponse{}), // an event that this version does not know
		later(&pb.WatchResponse{Event: &pb.WatchResponse_State{State: later(state)}}),
	} {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return nil
}

func TestAgentOfALaterVersion(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &laterAgent{asked: make(chan *pb.WatchRequest, 1)}
	s := grpc.NewServer()
	pb.RegisterSwitchAgentServer(s, a)
	go func() { _ = s.Serve(listener) }() // it ends with the test
	t.Cleanup(s.Stop)
	c, err := DialAgent(listener.Addr().String(), ClientConfig{Manager: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })

	var got []AgentEvent
	err = c.Watch(testContext(t), time.Minute, func(e AgentEvent) error {
		got = append(got, e)
		return nil
	})
	if !errors.Is(err, ErrUnavailable) || len(got) != 1 || got[0].State == nil || got[0].State.Version != "v9.9.9" || got[0].State.Switch != someState.Switch {
		t.Errorf("got %+v, and the end %v", got, err)
	}
	if m := <-a.asked; m.GetVersion() != version.String() || m.GetManager() != 7 {
		t.Errorf("it was asked by %v", m)
	}
	if _, err := c.Prepare(testContext(t), agent.Prepare{}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "prepare at agent ") {
		t.Errorf("a call that it has no more: %v", err)
	}
}

func TestMemberOfALaterVersion(t *testing.T) {
	f := &fakeManager{}
	s := serve(t, Services{Manager: f})
	conn, err := dial(s.Addr().String(), ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := pb.NewManagerClient(conn).ReleaseGroup(testContext(t), later(&pb.ReleaseGroupRequest{Group: 7})); err != nil {
		t.Errorf("a field that this version does not know: %v", err)
	}
	err = conn.Invoke(testContext(t), pb.Manager_ReleaseGroup_FullMethodName+"Kindly", &pb.ReleaseGroupRequest{}, &pb.ReleaseGroupResponse{})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "ReleaseGroupKindly") {
		t.Errorf("a call that this version does not know: %v", err)
	}
}
