package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
)

func TestSentinelsCrossTheWire(t *testing.T) {
	f := &fakeManager{}
	c := dialManager(t, serve(t, Services{Manager: f}))
	names := map[string]bool{}
	for _, s := range sentinels {
		if names[s.name] {
			t.Errorf("two errors are called %q", s.name)
		}
		names[s.name] = true
		f.err = fmt.Errorf("in the middle: %w: of it", s.err)
		err := c.ReleaseGroup(testContext(t), 1)
		if !errors.Is(err, s.err) || !strings.Contains(err.Error(), f.err.Error()) {
			t.Errorf("%q arrived as %v", s.name, err)
		}
		for _, other := range sentinels {
			if other.err != s.err && errors.Is(err, other.err) {
				t.Errorf("%q arrived as %q, too", s.name, other.name)
			}
		}
		if code := status.Code(toStatus(f.err)); code != s.code {
			t.Errorf("%q has code %v, want %v", s.name, code, s.code)
		}
	}
}

func TestSwitchRefusalCrossesTheWire(t *testing.T) {
	f := &fakeAgent{}
	c := leads(t, dialAgent(t, serve(t, Services{Agent: f})))
	for cause := agent.Slots; !strings.HasPrefix(cause.String(), "cause("); cause++ {
		want := &agent.Refusal{
			Cause: cause, Switch: "leaf-1", Need: 128, Free: 5, Detail: "some detail",
			Holders: []agent.Holder{{Group: 4, Slots: 256}, {Group: 9, Slots: 128}}, More: 2,
		}
		f.err = fmt.Errorf("asking: %w", want)
		_, err := c.Prepare(testContext(t), agent.Prepare{})
		var got *agent.Refusal
		if !errors.As(err, &got) {
			t.Errorf("%v arrived as %v", cause, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v:\n%s", cause, diff)
		}
		if !errors.Is(err, want.Unwrap()) {
			t.Errorf("%v is no %v", err, want.Unwrap())
		}
		if code := status.Code(toStatus(f.err)); code == codes.OK || code == codes.Unknown {
			t.Errorf("%v has code %v", cause, code)
		}
	}
}

func TestGroupRefusalCrossesTheWire(t *testing.T) {
	f := &fakeManager{}
	c := dialManager(t, serve(t, Services{Manager: f}))
	bySwitch := &agent.Refusal{Cause: agent.Slots, Switch: "leaf-1", Need: 128, Free: 5, Holders: []agent.Holder{{Group: 4, Slots: 256}}}
	for _, want := range []*manager.Refusal{
		{Reason: manager.ErrRefused, Resource: "slots", Switch: "leaf-1", Need: 128, Free: 5, Counted: true,
			Holders: []agent.Holder{{Group: 4, Slots: 256}}, More: 1, Cause: bySwitch},
		{Reason: manager.ErrNoTree, Resource: "path", Cause: fmt.Errorf("choosing: %w", pathsel.ErrNoTree)},
		{Reason: manager.ErrNoAnswer, Switch: "leaf-2"},
	} {
		f.err = want
		_, _, err := c.CreateGroup(testContext(t), manager.Create{})
		var got *manager.Refusal
		if !errors.As(err, &got) || !errors.Is(err, want.Reason) {
			t.Fatalf("%v arrived as %v", want, err)
		}
		if got.Error() != want.Error() {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		if errors.Is(want, pathsel.ErrNoTree) && !errors.Is(err, pathsel.ErrNoTree) {
			t.Errorf("%v is no %v", err, pathsel.ErrNoTree)
		}
		var cause *agent.Refusal
		if want.Cause == bySwitch && (!errors.As(err, &cause) || !cmp.Equal(cause, bySwitch)) {
			t.Errorf("the switch's own refusal arrived as %v", cause)
		}
	}
}

func TestReasonsOfALaterVersion(t *testing.T) {
	for _, p := range []*pb.Problem{
		{Reason: "out-of-luck", Message: "no luck"},
		{Message: "no luck", Refusal: &pb.Problem_BySwitch{BySwitch: &pb.SwitchRefusal{Cause: "luck", Switch: "leaf-1"}}},
		{Message: "no luck", Refusal: &pb.Problem_ByManager{ByManager: &pb.GroupRefusal{Reason: "luck"}}},
	} {
		if err := unproblem(p); err == nil || err.Error() != "no luck" {
			t.Errorf("%v became %v", p, err)
		}
	}
}

func TestOrdinaryErrors(t *testing.T) {
	f := &fakeManager{}
	s := serve(t, Services{Manager: f})
	c := dialManager(t, s)
	f.err = errors.New("something odd")
	if err := c.ReleaseGroup(testContext(t), 1); err == nil || !strings.Contains(err.Error(), "something odd") {
		t.Errorf("got %v", err)
	}
	f.err = context.DeadlineExceeded
	if err := c.ReleaseGroup(testContext(t), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := c.ReleaseGroup(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := dialAgent(t, s).Drain(testContext(t), true); !errors.Is(err, ErrUnsupported) {
		t.Errorf("an agent's call to a manager: %v", err)
	}
}

func TestMalformedRequests(t *testing.T) {
	s := serve(t, Services{Manager: &fakeManager{}, Agent: &fakeAgent{}})
	a := dialAgent(t, s).client
	m := dialManager(t, s).client
	ctx := testContext(t)
	session := func(q *pb.HostSessionRequest) func() error {
		return func() error {
			stream, err := m.HostSession(ctx)
			if err != nil {
				return err
			}
			if err := stream.Send(q); err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		}
	}
	for field, call := range map[string]func() error{
		"children":         func() error { _, err := a.Prepare(ctx, &pb.PrepareRequest{Children: 1 << 31}); return err },
		"functions":        func() error { _, err := a.Prepare(ctx, &pb.PrepareRequest{Functions: []pb.Function{99}}); return err },
		"types":            func() error { _, err := a.Prepare(ctx, &pb.PrepareRequest{Types: []pb.ElementType{-1}}); return err },
		"parent":           func() error { _, err := a.Commit(ctx, &pb.CommitRequest{Parent: "nowhere"}); return err },
		"children.address": func() error { _, err := a.Commit(ctx, &pb.CommitRequest{Children: []*pb.TreeChild{{}}}); return err },
		"index":            func() error { _, err := a.Commit(ctx, &pb.CommitRequest{Index: 1 << 16}); return err },
		"transport":        session(&pb.HostSessionRequest{Request: &pb.HostSessionRequest_Report{Report: &pb.Report{Transport: 9}}}),
		"data_address":     session(&pb.HostSessionRequest{Request: &pb.HostSessionRequest_Watch{Watch: &pb.Watch{DataAddress: "10.0.0.1:0"}}}),
	} {
		err := fromStatus(call())
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestServerOffersHealthAndReflection(t *testing.T) {
	s := serve(t, Services{Agent: &fakeAgent{}})
	conn := dialAgent(t, s).conn
	ctx := testContext(t)
	h, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: pb.SwitchAgent_ServiceDesc.ServiceName})
	if err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", h, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || !strings.Contains(answer.String(), pb.SwitchAgent_ServiceDesc.ServiceName) {
		t.Errorf("reflection: %v, %v", answer, err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

func TestServerEnds(t *testing.T) {
	for name, end := range map[string]func(*Server){"close": (*Server).Close, "kill": (*Server).Kill} {
		t.Run(name, func(t *testing.T) {
			f := &fakeManager{events: make(chan manager.Event, 1)}
			f.events <- manager.Event{Notice: &manager.Notice{}}
			s := serve(t, Services{Manager: f})
			c := dialManager(t, s)
			w := manager.Watch{Group: 1, DataAddr: someState.Holds[0].Addr}
			err := ask(testContext(t), c, w, func(manager.Event) {
				go func() {
					close(f.events)
					end(s)
				}()
			})
			if name == "close" && err != nil || err != nil && !errors.Is(err, ErrUnavailable) {
				t.Errorf("the stream ended with %v", err)
			}
			if err := s.Err(); err != nil {
				t.Errorf("the server ended with %v", err)
			}
			ctx := testContext(t)
			for what, call := range map[string]func() error{
				"unary":    func() error { return c.ReleaseGroup(ctx, 1) },
				"download": func() error { _, err := c.Groups(ctx); return err },
				"upload":   func() error { _, err := c.DiffTopology(ctx, TopologyFile{}); return err },
				"session":  func() error { return ask(ctx, c, w, func(manager.Event) {}) }, // to open one needs no server
			} {
				if err := call(); !errors.Is(err, ErrUnavailable) {
					t.Errorf("a call afterwards, %s: %v", what, err)
				}
			}
		})
	}
}

func TestServerReportsWhyItEnded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s := Serve(listener, Services{}, ServerConfig{})
	if err := s.Err(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
