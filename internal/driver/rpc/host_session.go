package rpc

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// HostRequest is what a host asks in its session.
type HostRequest struct {
	Input manager.Input // a Create, Release, Watch, Unwatch or Report
	// Denied is why the host must not ask that, or what of it is malformed, which is
	// the answer; nil: neither.
	Denied error
}

// HostStream is a host's session as the manager has it. One goroutine at a time
// may call Recv, and one Send.
type HostStream interface {
	Recv() (HostRequest, error) // io.EOF: the host has ended the session
	Send(manager.Event) error
}

// HostSession is a host's session as the host has it. One goroutine at a time may
// call Recv, and one Send.
type HostSession struct {
	client *ManagerClient
	stream grpc.BidiStreamingClient[pb.HostSessionRequest, pb.HostSessionResponse]
}

// HostSession begins a session, which ends with ctx at the latest. It waits for a
// connection to the manager.
func (c *ManagerClient) HostSession(ctx context.Context) (*HostSession, error) {
	stream, err := c.client.HostSession(ctx)
	if err != nil {
		return nil, c.fail("host session", err)
	}
	return &HostSession{c, stream}, nil
}

// Send sends a Create, Release, Watch, Unwatch or Report; others are not for
// managers. Req names the first two in their Reply. An error that wraps io.EOF
// says that the session has ended, and Recv says why.
func (s *HostSession) Send(in manager.Input) error {
	m := &pb.HostSessionRequest{}
	switch in := in.(type) {
	case manager.Create:
		m.Id, m.Request = in.Req, &pb.HostSessionRequest_Create{Create: createRequest(in)}
	case manager.Release:
		m.Id, m.Request = in.Req, &pb.HostSessionRequest_Release{Release: &pb.ReleaseGroupRequest{Group: in.Group}}
	case manager.Watch:
		m.Request = &pb.HostSessionRequest_Watch{Watch: watch(in)}
	case manager.Unwatch:
		m.Request = &pb.HostSessionRequest_Unwatch{Unwatch: &pb.Unwatch{Group: in.Group, Rank: in.Rank, Over: in.Over}}
	case manager.Report:
		m.Request = &pb.HostSessionRequest_Report{Report: report(in)}
	}
	return s.client.fail("host session", s.stream.Send(m))
}

// Recv returns what the manager says. io.EOF: it has ended the session in good
// order. What of an offer this version cannot read is a Notice of that: the session
// is that of other members, too.
func (s *HostSession) Recv() (manager.Event, error) {
	for {
		m, err := s.stream.Recv()
		if errors.Is(err, io.EOF) {
			return manager.Event{}, io.EOF
		}
		if err != nil {
			return manager.Event{}, s.client.fail("host session", err)
		}
		var r reader
		e, known := r.event(m)
		if r.err != nil {
			why := s.client.fail("host session", r.err)
			return manager.Event{Notice: &manager.Notice{Group: m.GetGroup(), Rank: m.GetRank(), Err: why}}, nil
		}
		if known {
			return e, nil
		}
	}
}

// hostStream is a HostStream.
type hostStream struct {
	server *managerServer
	stream grpc.BidiStreamingServer[pb.HostSessionRequest, pb.HostSessionResponse]
}

func (s *managerServer) HostSession(stream grpc.BidiStreamingServer[pb.HostSessionRequest, pb.HostSessionResponse]) error {
	return s.manager.HostSession(stream.Context(), &hostStream{s, stream})
}

// Send implements HostStream.
func (s *hostStream) Send(e manager.Event) error { return s.stream.Send(event(e)) }

// Recv implements HostStream.
func (s *hostStream) Recv() (HostRequest, error) {
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return HostRequest{}, err
		}
		var r reader
		q := s.read(&r, m)
		if r.err != nil {
			q.Denied = r.err // of this request alone: the session has others
		}
		if q.Input != nil {
			return q, nil
		}
	}
}

// read reads a request; Input is nil where this version does not know it.
func (s *hostStream) read(r *reader, m *pb.HostSessionRequest) (q HostRequest) {
	ctx := s.stream.Context()
	switch v := m.GetRequest().(type) {
	case *pb.HostSessionRequest_Create:
		c := r.create(v.Create)
		c.Req, c.Owner = m.GetId(), ownerOf(ctx)
		q.Input, q.Denied = c, mayCreate(ctx, c)
	case *pb.HostSessionRequest_Release:
		g := v.Release.GetGroup()
		q.Input, q.Denied = manager.Release{Req: m.GetId(), Group: g}, s.server.maySee(ctx, GroupRef{Group: g})
	case *pb.HostSessionRequest_Watch:
		w := r.watch(v.Watch)
		w.Proven = provenOf(ctx, w.DataAddr.Addr())
		q.Input, q.Denied = w, s.server.mayBe(ctx, w.Group, w.Rank)
	case *pb.HostSessionRequest_Unwatch:
		q.Input = manager.Unwatch{Group: v.Unwatch.GetGroup(), Rank: v.Unwatch.GetRank(), Over: v.Unwatch.GetOver()} // of this session alone
	case *pb.HostSessionRequest_Report:
		p := r.report(v.Report)
		q.Input, q.Denied = p, s.server.mayBe(ctx, p.Group, p.Rank)
	}
	return q
}
