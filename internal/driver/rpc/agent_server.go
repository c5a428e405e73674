package rpc

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/ground/version"
)

// DefaultHeartbeat is the heartbeat of who names none.
const DefaultHeartbeat = time.Second

// minHeartbeat keeps a watcher from making an agent busy with heartbeats.
const minHeartbeat = 10 * time.Millisecond

// agentServer serves an Agent.
type agentServer struct {
	pb.UnimplementedSwitchAgentServer
	agent Agent
	log   *slog.Logger
	lead  lead
}

func (s *agentServer) GetCapability(ctx context.Context, _ *pb.GetCapabilityRequest) (*pb.GetCapabilityResponse, error) {
	state, err := s.agent.State(ctx)
	return &pb.GetCapabilityResponse{State: agentState(state)}, err
}

func (s *agentServer) Prepare(ctx context.Context, m *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	var r reader
	p := r.prepare(m)
	if r.err != nil {
		return nil, r.err
	}
	ctx, end, err := s.lead.call(ctx, m.GetManager())
	if err != nil {
		s.log.Warn("a call of a manager that does not lead is refused", slog.String("call", "Prepare"), slog.Any("error", err))
		return nil, err
	}
	defer end()
	addr, err := s.agent.Prepare(ctx, p)
	return &pb.PrepareResponse{DataAddress: addr.String()}, err
}

func (s *agentServer) Commit(ctx context.Context, m *pb.CommitRequest) (*pb.CommitResponse, error) {
	var r reader
	c := r.commit(m)
	if r.err != nil {
		return nil, r.err
	}
	ctx, end, err := s.lead.call(ctx, m.GetManager())
	if err != nil {
		s.log.Warn("a call of a manager that does not lead is refused", slog.String("call", "Commit"), slog.Any("error", err))
		return nil, err
	}
	defer end()
	by, err := s.agent.Commit(ctx, c)
	return &pb.CommitResponse{Reducer: reducer(by)}, err
}

func (s *agentServer) Remove(ctx context.Context, m *pb.RemoveRequest) (*pb.RemoveResponse, error) {
	var r reader
	x := r.remove(m)
	if r.err != nil {
		return nil, r.err
	}
	ctx, end, err := s.lead.call(ctx, m.GetManager())
	if err != nil {
		s.log.Warn("a call of a manager that does not lead is refused", slog.String("call", "Remove"), slog.Any("error", err))
		return nil, err
	}
	defer end()
	return &pb.RemoveResponse{}, s.agent.Remove(ctx, x)
}

func (s *agentServer) Drain(ctx context.Context, m *pb.DrainRequest) (*pb.DrainResponse, error) {
	return &pb.DrainResponse{}, s.agent.Drain(ctx, m.GetOn())
}

func (s *agentServer) SetRoutes(ctx context.Context, m *pb.SetRoutesRequest) (*pb.SetRoutesResponse, error) {
	var r reader
	a := r.assignment(m)
	if r.err != nil {
		return nil, r.err
	}
	ctx, end, err := s.lead.call(ctx, m.GetManager())
	if err != nil {
		s.log.Warn("a call of a manager that does not lead is refused", slog.String("call", "SetRoutes"), slog.Any("error", err))
		return nil, err
	}
	defer end()
	return &pb.SetRoutesResponse{}, s.agent.SetRoutes(ctx, a)
}

func (s *agentServer) GetCounters(ctx context.Context, _ *pb.GetCountersRequest) (*pb.GetCountersResponse, error) {
	c, err := s.agent.Counters(ctx)
	return agentCounters(c), err
}

func (s *agentServer) Watch(m *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	var r reader
	heartbeat := r.duration("heartbeat", m.GetHeartbeat())
	if r.err != nil {
		return r.err
	}
	if heartbeat == 0 {
		heartbeat = DefaultHeartbeat
	}
	heartbeat = max(heartbeat, minHeartbeat)
	if own, theirs := version.String(), m.GetVersion(); theirs != own {
		s.log.Warn("a watcher of another version", slog.String("version", own), slog.String("watcher", cmp.Or(theirs, "unknown")))
	}

	if caller, known := CallerOf(stream.Context()); known && caller.Role != pki.Manager && m.GetManager() != 0 {
		return fmt.Errorf("%w: %s leads a switch, which is for the role %s", ErrDenied, caller, pki.Manager)
	}
	leave, err := s.lead.take(stream.Context(), m.GetManager())
	if err != nil {
		s.log.Warn("a second manager is refused", slog.Any("error", err))
		return err
	}
	defer leave()

	var mu sync.Mutex // a stream is for one sender at a time
	send := func(m *pb.WatchResponse) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(m)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	var beating sync.WaitGroup
	beating.Go(func() { beat(ctx, heartbeat, send) })
	defer beating.Wait()
	defer cancel()
	return s.agent.Watch(ctx, heartbeat, func(e AgentEvent) error { return send(agentEvent(e)) })
}

// beat sends heartbeats until the context ends.
func beat(ctx context.Context, period time.Duration, send func(*pb.WatchResponse) error) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if send(&pb.WatchResponse{Event: &pb.WatchResponse_Heartbeat{Heartbeat: &pb.Heartbeat{}}}) != nil {
			return // the stream is over, which ends its context
		}
	}
}
