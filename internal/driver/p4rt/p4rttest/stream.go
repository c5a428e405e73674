package p4rttest

import (
	"cmp"
	"context"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// service is the server of a target.
type service struct {
	p4v1.UnimplementedP4RuntimeServer
	target *Target
}

// stream is a controller that takes part in the election.
type stream struct {
	id  *p4v1.Uint128
	box runner.Mailbox[*p4v1.StreamMessageResponse]
}

// Capabilities implements the call of that name.
func (s *service) Capabilities(ctx context.Context, _ *p4v1.CapabilitiesRequest) (*p4v1.CapabilitiesResponse, error) {
	if err := s.target.arrive(ctx, Capabilities); err != nil {
		return nil, err
	}
	s.target.mu.Lock()
	defer s.target.mu.Unlock()
	return &p4v1.CapabilitiesResponse{P4RuntimeApiVersion: s.target.version}, nil
}

// StreamChannel implements the call of that name.
func (s *service) StreamChannel(conn p4v1.P4Runtime_StreamChannelServer) error {
	t, ctx := s.target, conn.Context()
	var self *stream
	sent := make(chan struct{})
	defer func() {
		if self != nil {
			t.leave(self)
			self.box.Close()
			<-sent
		}
	}()
	for {
		m, err := conn.Recv()
		if err != nil {
			return nil // the controller left
		}
		if err := t.arrive(ctx, Stream); err != nil {
			return err
		}
		switch update := m.GetUpdate().(type) {
		case *p4v1.StreamMessageRequest_Arbitration:
			if self != nil {
				continue // controllers here have one id
			}
			joined := &stream{id: update.Arbitration.GetElectionId()}
			if err := t.join(joined); err != nil {
				return err
			}
			self = joined
			go func() {
				defer close(sent)
				joined.forward(ctx, conn)
			}()
		case *p4v1.StreamMessageRequest_Packet:
			t.packetOut(self, update.Packet)
		}
	}
}

// forward sends what is in the box until it is closed.
func (s *stream) forward(ctx context.Context, conn p4v1.P4Runtime_StreamChannelServer) {
	for {
		messages, err := s.box.Take(ctx)
		if err != nil {
			return
		}
		for _, m := range messages {
			if conn.Send(m) != nil {
				return
			}
		}
	}
}

// join takes a controller into the election and reports the outcome to whom it
// concerns.
func (t *Target) join(s *stream) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, taken := slices.BinarySearchFunc(t.streams, s, func(a, b *stream) int { return compare(b.id, a.id) })
	if taken {
		return status.Error(codes.InvalidArgument, "Election id already exists")
	}
	t.streams = slices.Insert(t.streams, at, s)
	if at == 0 {
		t.announce(t.streams...)
	} else {
		t.announce(s)
	}
	return nil
}

func (t *Target) leave(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.streams, s)
	t.streams = slices.Delete(t.streams, at, at+1)
	if at == 0 {
		t.announce(t.streams...)
	}
}

// announce gives controllers the outcome of the election; t.mu is held.
func (t *Target) announce(to ...*stream) {
	for _, s := range to {
		outcome := &spb.Status{Code: int32(codes.AlreadyExists), Message: "Is backup"}
		if s == t.streams[0] {
			outcome = &spb.Status{Message: "Is primary"}
		}
		s.box.Put(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{
			Arbitration: &p4v1.MasterArbitrationUpdate{ElectionId: t.streams[0].id, Status: outcome},
		}})
	}
}

func (t *Target) packetOut(from *stream, p *p4v1.PacketOut) {
	t.mu.Lock()
	primary := len(t.streams) > 0 && t.streams[0] == from && t.config != nil
	t.mu.Unlock()
	if primary && !t.looped(p) {
		t.outgoing.Put(p)
	}
}

// primary returns why a controller of that id may not write, or nil; t.mu is
// held.
func (t *Target) primary(id *p4v1.Uint128) error {
	if len(t.streams) == 0 || compare(t.streams[0].id, id) != 0 {
		return status.Error(codes.PermissionDenied, "Not primary")
	}
	return nil
}

func compare(a, b *p4v1.Uint128) int {
	return cmp.Or(cmp.Compare(a.GetHigh(), b.GetHigh()), cmp.Compare(a.GetLow(), b.GetLow()))
}
