package rpc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/topology"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// fakeAgent answers from its fields, and remembers what it was asked.
type fakeAgent struct {
	err      error
	state    AgentState
	addr     netip.AddrPort
	counters AgentCounters
	reducer  topology.Reducer
	events   chan AgentEvent
	asked    any
}

func (f *fakeAgent) State(context.Context) (AgentState, error) { return f.state, f.err }

func (f *fakeAgent) Prepare(_ context.Context, p agent.Prepare) (netip.AddrPort, error) {
	f.asked = p
	return f.addr, f.err
}

func (f *fakeAgent) Commit(_ context.Context, c agent.Commit) (topology.Reducer, error) {
	f.asked = c
	return f.reducer, f.err
}

func (f *fakeAgent) Remove(_ context.Context, r agent.Remove) error {
	f.asked = r
	return f.err
}

func (f *fakeAgent) Drain(_ context.Context, on bool) error {
	f.asked = on
	return f.err
}

func (f *fakeAgent) SetRoutes(_ context.Context, a portmap.Assignment) error {
	f.asked = a
	return f.err
}

func (f *fakeAgent) Counters(context.Context) (AgentCounters, error) { return f.counters, f.err }

func (f *fakeAgent) Watch(ctx context.Context, _ time.Duration, event func(AgentEvent) error) error {
	return forward(ctx, f.events, event, &f.err)
}

// forward hands on what comes until the channel is closed or the context ends. It reads its error at the
// channel's close: a client may have had a heartbeat, and set the error of its next request, before.
func forward[E any](ctx context.Context, from <-chan E, event func(E) error, end *error) error {
	for {
		select {
		case e, ok := <-from:
			if !ok {
				return *end
			}
			if err := event(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fakeManager answers from its fields, and remembers what it was asked.
type fakeManager struct {
	err         error
	group       uint32
	found       bool
	groups      []manager.Summary
	explanation Explanation
	difference  TopologyDifference
	file        TopologyFile
	changes     []MapChange
	fabric      Fabric
	plan        GroupPlan
	events      chan manager.Event
	asked       any
}

func (f *fakeManager) CreateGroup(_ context.Context, c manager.Create) (uint32, bool, error) {
	f.asked = c
	return f.group, f.found, f.err
}

func (f *fakeManager) ReleaseGroup(_ context.Context, group uint32) error {
	f.asked = group
	return f.err
}

// HostSession takes one request, which it keeps, and sends its events.
func (f *fakeManager) HostSession(ctx context.Context, host HostStream) error {
	q, err := host.Recv()
	if err != nil {
		return err
	}
	if f.asked = q.Input; q.Denied != nil {
		return q.Denied
	}
	return forward(ctx, f.events, host.Send, &f.err)
}

func (f *fakeManager) Groups(context.Context) ([]manager.Summary, error) { return f.groups, f.err }

func (f *fakeManager) Explain(_ context.Context, which GroupRef) (Explanation, error) {
	f.asked = which
	return f.explanation, f.err
}

func (f *fakeManager) Topology(context.Context) (Fabric, error) { return f.fabric, f.err }

func (f *fakeManager) PlanGroup(_ context.Context, c manager.Create) (GroupPlan, error) {
	f.asked = c
	return f.plan, f.err
}

func (f *fakeManager) DrainSwitch(_ context.Context, name string, on bool) error {
	f.asked = [2]any{name, on}
	return f.err
}

// serve serves on a free loopback port.
func serve(t *testing.T, s Services) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Serve(listener, s, ServerConfig{})
	t.Cleanup(server.Kill)
	return server
}

func dialAgent(t *testing.T, s *Server) *AgentClient {
	t.Helper()
	c, err := DialAgent(s.Addr().String(), ClientConfig{Manager: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// leads has an agent's client lead, as of its first heartbeat. The agent may not have heard yet that the
// stream of a manager before has ended.
func leads(t *testing.T, c *AgentClient) *AgentClient {
	t.Helper()
	for within, err := testContext(t), ErrLed; errors.Is(err, ErrLed); {
		ctx, cancel := context.WithCancel(within)
		stream, begun := c.client.Watch(ctx, &pb.WatchRequest{Manager: c.manager, Heartbeat: duration(minHeartbeat)})
		if begun != nil {
			t.Fatal(begun)
		}
		_, err = stream.Recv() // a heartbeat, or the end: it has led, or may not
		cancel()
	}
	return c
}

func dialManager(t *testing.T, s *Server) *ManagerClient {
	t.Helper()
	c, err := DialManager(s.Addr().String(), ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (f *fakeManager) SetTopology(_ context.Context, file TopologyFile) (TopologyDifference, error) {
	f.asked = file
	return f.difference, f.err
}

func (f *fakeManager) EditTopology(_ context.Context, file TopologyFile) (TopologyDifference, error) {
	f.asked = file
	return f.difference, f.err
}

func (f *fakeManager) DiffTopology(_ context.Context, file TopologyFile) (TopologyDifference, error) {
	f.asked = file
	return f.difference, f.err
}

func (f *fakeManager) TopologyFile(_ context.Context, inEffect bool) (TopologyFile, error) {
	f.asked = inEffect
	return f.file, f.err
}

func (f *fakeManager) TopologyHistory(context.Context) ([]MapChange, error) { return f.changes, f.err }
