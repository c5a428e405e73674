package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/ground/version"
	"github.com/tributary-fabric/tributary/topology"
)

// AgentClient is an Agent on the other side of a connection, which is made
// when it is needed and made again when it was lost. Calls fail with
// ErrUnavailable while there is none; Watch waits for one. It is safe for
// concurrent use.
type AgentClient struct {
	remoteEnd
	client  pb.SwitchAgentClient
	manager uint64 // as in ClientConfig
}

var _ Agent = (*AgentClient)(nil)

// DialAgent returns a client of the agent at target, a "host:port" or a gRPC
// name. It does not wait for a connection.
func DialAgent(target string, c ClientConfig) (*AgentClient, error) {
	conn, err := dial(target, c)
	if err != nil {
		return nil, err
	}
	return &AgentClient{remoteEnd{conn, "agent"}, pb.NewSwitchAgentClient(conn), c.Manager}, nil
}

// State implements Agent.
func (c *AgentClient) State(ctx context.Context) (AgentState, error) {
	m, err := c.client.GetCapability(ctx, &pb.GetCapabilityRequest{})
	return answered(&c.remoteEnd, "state", m.GetState(), err, (*reader).agentState)
}

// Prepare implements Agent.
func (c *AgentClient) Prepare(ctx context.Context, p agent.Prepare) (netip.AddrPort, error) {
	q := prepareRequest(p)
	q.Manager = c.manager
	m, err := c.client.Prepare(ctx, q)
	return answered(&c.remoteEnd, "prepare", m.GetDataAddress(), err, func(r *reader, a string) netip.AddrPort { return r.addr("data_address", a) })
}

// Commit implements Agent.
func (c *AgentClient) Commit(ctx context.Context, m agent.Commit) (topology.Reducer, error) {
	q := commitRequest(m)
	q.Manager = c.manager
	answer, err := c.client.Commit(ctx, q)
	var r reader
	return r.reducer(answer.GetReducer()), c.fail("commit", err)
}

// Remove implements Agent.
func (c *AgentClient) Remove(ctx context.Context, m agent.Remove) error {
	q := removeRequest(m)
	q.Manager = c.manager
	_, err := c.client.Remove(ctx, q)
	return c.fail("remove", err)
}

// Drain implements Agent.
func (c *AgentClient) Drain(ctx context.Context, on bool) error {
	_, err := c.client.Drain(ctx, &pb.DrainRequest{On: on})
	return c.fail("drain", err)
}

// SetRoutes implements Agent.
func (c *AgentClient) SetRoutes(ctx context.Context, a portmap.Assignment) error {
	q := setRoutesRequest(a)
	q.Manager = c.manager
	_, err := c.client.SetRoutes(ctx, q)
	return c.fail("set routes", err)
}

// Counters implements Agent.
func (c *AgentClient) Counters(ctx context.Context) (AgentCounters, error) {
	m, err := c.client.GetCounters(ctx, &pb.GetCountersRequest{})
	return answered(&c.remoteEnd, "counters", m, err, (*reader).agentCounters)
}

// beatsMissed is the heartbeats in a row that a living agent may fail to send.
const beatsMissed = 3

// Watch implements Agent. It waits for a connection, without bound: the
// context bounds it.
func (c *AgentClient) Watch(ctx context.Context, heartbeat time.Duration, event func(AgentEvent) error) error {
	if heartbeat == 0 {
		heartbeat = DefaultHeartbeat
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := c.client.Watch(ctx, &pb.WatchRequest{Heartbeat: duration(heartbeat), Version: version.String(), Manager: c.manager}, grpc.WaitForReady(true))
	if err != nil {
		// Why there is no connection is worth reporting beside who gave it up.
		return c.fail("watch", fmt.Errorf("%w: %s", streamEnd(ctx, err), status.Convert(err).Message()))
	}
	v := vigil{patience: beatsMissed * max(heartbeat, minHeartbeat), silent: cancel}
	for {
		m, err := stream.Recv()
		v.pause()
		if err != nil {
			return c.fail("watch", streamEnd(ctx, err))
		}
		var r reader
		e, known := r.agentEvent(m)
		if r.err != nil {
			return c.fail("watch", r.err)
		}
		if known {
			if err := event(e); err != nil {
				return err
			}
		}
		v.await()
	}
}

// A vigil notices when nothing is heard. It begins with the first message:
// before it, the caller's context is the bound.
type vigil struct {
	patience time.Duration
	silent   func(error) // called when nothing was heard for so long
	timer    *time.Timer
}

// await begins to wait for the next message.
func (v *vigil) await() {
	if v.timer == nil {
		v.timer = time.AfterFunc(v.patience, func() { v.silent(fmt.Errorf("%w for %v", ErrSilent, v.patience)) })
		return
	}
	v.timer.Reset(v.patience)
}

// pause ends the wait.
func (v *vigil) pause() {
	if v.timer != nil {
		v.timer.Stop()
	}
}

// streamEnd turns the error that ended a stream into one that says why: this
// side's own reason, if it had one.
func streamEnd(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return ErrUnavailable
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}
