package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// answering is a manager that answers each Create, by why it is denied.
type answering struct{ fakeManager }

func (a *answering) HostSession(_ context.Context, host HostStream) error {
	for {
		q, err := host.Recv()
		if err != nil {
			return err
		}
		if c, is := q.Input.(manager.Create); is {
			if err := host.Send(manager.Event{Reply: &manager.Reply{Req: c.Req, Err: q.Denied}}); err != nil {
				return err
			}
		} else if q.Denied == nil {
			return errors.New("it was not denied")
		}
	}
}

// TestMalformedRequestOfOne: a session is that of all communicators of a host, and
// what one of them asks, be it in the words of a later version, ends it for none.
func TestMalformedRequestOfOne(t *testing.T) {
	stream, err := dialManager(t, serve(t, Services{Manager: &answering{}})).client.HostSession(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []*pb.HostSessionRequest{
		{Id: 1, Request: &pb.HostSessionRequest_Create{Create: &pb.CreateGroupRequest{Name: "later", Types: []pb.ElementType{99}}}},
		{Request: &pb.HostSessionRequest_Report{Report: &pb.Report{Transport: 9}}},
		{Request: &pb.HostSessionRequest_Watch{Watch: &pb.Watch{DataAddress: "nowhere"}}},
		{Id: 2, Request: &pb.HostSessionRequest_Create{Create: &pb.CreateGroupRequest{Name: "job"}}},
	} {
		if err := stream.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	for id := uint64(1); id <= 2; id++ {
		m, err := stream.Recv()
		if err != nil {
			t.Fatalf("before the reply to %d: %v", id, fromStatus(err))
		}
		why := unproblem(m.GetReply().GetProblem())
		if m.GetReply().GetId() != id || errors.Is(why, ErrMalformed) != (id == 1) {
			t.Errorf("got %v, want the reply to %d", m, id)
		}
	}
}

// laterManager is one whose offers a host of this version cannot read.
type laterManager struct{ pb.UnimplementedManagerServer }

func (laterManager) HostSession(stream grpc.BidiStreamingServer[pb.HostSessionRequest, pb.HostSessionResponse]) error {
	for _, m := range []*pb.HostSessionResponse{
		{Group: 7, Rank: 3, Event: &pb.HostSessionResponse_Offer{Offer: &pb.Offer{Epoch: 2, Parent: "leaf-0 by name"}}},
		{Group: 8, Rank: 1, Event: &pb.HostSessionResponse_Withdrawal{Withdrawal: &pb.Withdrawal{Epoch: 4}}},
	} {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// TestOfferOfALaterVersion: that a member cannot read its offer is reported to that
// member, and the host's others hear what is for them.
func TestOfferOfALaterVersion(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterManagerServer(server, laterManager{})
	go func() { _ = server.Serve(listener) }() // it ends with the test
	t.Cleanup(server.Stop)
	c, err := DialManager(listener.Addr().String(), ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := c.HostSession(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Recv()
	if n := e.Notice; err != nil || n == nil || n.Group != 7 || n.Rank != 3 || n.End || !errors.Is(n.Err, ErrMalformed) {
		t.Fatalf("got %+v, %v", n, err)
	}
	e, err = s.Recv()
	if w := e.Withdrawal; err != nil || w == nil || w.Group != 8 || w.Epoch != 4 {
		t.Fatalf("got %+v, %v", w, err)
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}
