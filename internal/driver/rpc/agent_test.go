package rpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

var compareBytes = cmp.Comparer(bytes.Equal) // by element takes half a minute, with the race detector

var compareAddrs = cmpopts.EquateComparable(netip.AddrPort{}, netip.Addr{}, netip.Prefix{})

var someInterfaces = Interfaces{List: []nic.Interface{
	{
		Name: "port1", Up: true, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")},
		Traffic: nic.Traffic{PacketsIn: 1, BytesIn: 2, PacketsOut: 3, BytesOut: 1<<64 - 1},
	},
	{Name: "port2"},
}}

var someState = AgentState{
	Switch: "leaf-1", Incarnation: 1<<63 + 5, Capability: weak(), Draining: true, Outlives: true, Version: "v1.2.3",
	Holds: []agent.Hold{
		{Group: 7, Epoch: 2, Window: 64, Committed: true, Addr: netip.MustParseAddrPort("10.0.0.1:4000"), Reducer: someReducer()},
		{Group: 8, Epoch: 4, Window: 8},
	},
	Interfaces: &someInterfaces,
}

func TestAgentCalls(t *testing.T) {
	f := &fakeAgent{
		state: someState,
		addr:  netip.MustParseAddrPort("[2001:db8::1]:4001"),
		counters: AgentCounters{Slots: 512, SlotsUsed: 128, Trees: []TreeCounters{{
			Group: 7, PacketsIn: 1, BytesIn: 2, PacketsOut: 3, BytesOut: 4, Refused: 5, Overflowed: 6,
			Events: map[string]uint64{"taken": 9}, Drops: map[string]uint64{"cookie": 1},
		}}, Epochs: []EpochTraffic{
			{Group: 7, EpochTraffic: switchreduce.EpochTraffic{
				Epoch: 2, Children: []switchreduce.Traffic{{PacketsIn: 1, BytesIn: 2, PacketsOut: 3, BytesOut: 4}, {}}, Parent: &switchreduce.Traffic{BytesIn: 5},
			}},
			{Group: 8, EpochTraffic: switchreduce.EpochTraffic{Epoch: 4, Children: []switchreduce.Traffic{{BytesOut: 6}}}},
		}, Interfaces: &Interfaces{Unavailable: "not here"}},
	}
	c := leads(t, dialAgent(t, serve(t, Services{Agent: f})))
	ctx := testContext(t)

	state, err := c.State(ctx)
	check(t, "state", err, f.state, state)

	prepare := agent.Prepare{
		Incarnation: 1<<64 - 1, Group: 7, Epoch: 2, Children: 3, Window: 64, ChunkBytes: 1432,
		Functions: topology.FunctionsOf(reduce.Sum, reduce.MaxLoc), Types: topology.TypesOf(reduce.Int32, reduce.BFloat16), Lease: time.Second,
	}
	addr, err := c.Prepare(ctx, prepare)
	check(t, "prepared", err, f.addr, addr)
	check[any](t, "prepare", nil, prepare, f.asked)

	commit := agent.Commit{Incarnation: 5, Config: switchreduce.Config{
		Group: 7, Epoch: 2, Cookie: 1<<48 - 1, Window: 64, ChunkBytes: 1432,
		Children: []switchreduce.Child{{Addr: netip.MustParseAddrPort("10.0.0.2:1"), Lowest: 0, Cookie: 1}, {Addr: netip.MustParseAddrPort("10.0.0.3:1"), Lowest: 4, Cookie: 1<<48 - 2}},
		Parent:   netip.MustParseAddrPort("10.0.1.1:2"), Index: 65535, Probes: 8, Lease: 30 * time.Second,
	}}
	f.reducer = someReducer()
	by, err := c.Commit(ctx, commit)
	check[any](t, "commit", err, commit, f.asked)
	check(t, "committed", nil, f.reducer, by)
	f.reducer = topology.SoftwareReducer()
	commit.Config.Parent = netip.AddrPort{}
	by, err = c.Commit(ctx, commit)
	check[any](t, "commit of the root", err, commit, f.asked)
	check(t, "committed in software", nil, f.reducer, by)

	remove := agent.Remove{Incarnation: 5, Group: 7, Epoch: 2}
	check[any](t, "remove", c.Remove(ctx, remove), remove, f.asked)
	check[any](t, "drain", c.Drain(ctx, true), true, f.asked)
	routes := portmap.Assignment{
		Addresses: map[uint16]netip.Addr{1: netip.MustParseAddr("10.0.0.0"), 507: netip.MustParseAddr("10.0.1.0")},
		Routes: []portmap.Route{
			{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Port: 1, Next: netip.MustParseAddr("10.0.0.1")},
			{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Port: 507, Next: netip.MustParseAddr("10.0.1.1")},
		},
	}
	check[any](t, "routes", c.SetRoutes(ctx, routes), routes, f.asked)

	counters, err := c.Counters(ctx)
	check(t, "counters", err, f.counters, counters)
}

func check[T any](t *testing.T, what string, err error, want, got T) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, compareAddrs, compareBytes); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func TestAgentWatch(t *testing.T) {
	sent := []AgentEvent{
		{State: &someState},
		{Ended: &agent.Ended{Incarnation: 9, Group: 7, Epoch: 2, Why: agent.LeaseRanOut}},
		{Ended: &agent.Ended{Incarnation: 9, Group: 7, Epoch: 4, Why: agent.PrepareRanOut}},
		{Ended: &agent.Ended{Incarnation: 9, Group: 7, Epoch: 6, Why: agent.PlaneFailed}},
		{Interfaces: &someInterfaces},
	}
	f := &fakeAgent{events: make(chan AgentEvent, len(sent)), err: ErrClosing}
	for _, e := range sent {
		f.events <- e
	}
	close(f.events)
	c := dialAgent(t, serve(t, Services{Agent: f}))
	var got []AgentEvent
	err := c.Watch(testContext(t), time.Minute, func(e AgentEvent) error {
		got = append(got, e)
		return nil
	})
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("ended with %v", err)
	}
	if diff := cmp.Diff(sent, got, compareAddrs); diff != "" {
		t.Error(diff)
	}
}

func TestAgentWatchEndsByTheWatcher(t *testing.T) {
	watch := func(ctx context.Context, event func(AgentEvent) error) error {
		f := &fakeAgent{events: make(chan AgentEvent, 1)}
		f.events <- AgentEvent{State: &someState}
		return dialAgent(t, serve(t, Services{Agent: f})).Watch(ctx, 0, event)
	}
	enough := errors.New("enough")
	if err := watch(testContext(t), func(AgentEvent) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("ended with %v", err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	if err := watch(ctx, func(AgentEvent) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// silentAgent begins a stream and then says nothing.
type silentAgent struct {
	pb.UnimplementedSwitchAgentServer
}

func (silentAgent) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	if err := stream.Send(agentEvent(AgentEvent{State: &someState})); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func TestSilentAgentIsNoticed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterSwitchAgentServer(s, silentAgent{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	defer func() { s.Stop(); <-served }()

	c, err := DialAgent(listener.Addr().String(), ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	events := 0
	err = c.Watch(testContext(t), minHeartbeat, func(AgentEvent) error { events++; return nil })
	if !errors.Is(err, ErrSilent) || events != 1 {
		t.Errorf("after %d events: %v", events, err)
	}
}

func TestServerSendsHeartbeats(t *testing.T) {
	client := dialAgent(t, serve(t, Services{Agent: &fakeAgent{}})).client
	stream, err := client.Watch(testContext(t), &pb.WatchRequest{Heartbeat: duration(minHeartbeat)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if m, err := stream.Recv(); err != nil || m.GetHeartbeat() == nil {
			t.Fatalf("got %v, %v", m, err)
		}
	}
}

func TestVigil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fell error
		v := vigil{patience: time.Second, silent: func(err error) { fell = err }}
		for range 5 {
			v.await()
			<-time.After(900 * time.Millisecond)
			v.pause()
			<-time.After(time.Hour) // the watcher is busy with what it heard
		}
		synctest.Wait()
		if fell != nil {
			t.Fatalf("fell while it heard: %v", fell)
		}
		v.await()
		<-time.After(1100 * time.Millisecond)
		synctest.Wait()
		if !errors.Is(fell, ErrSilent) {
			t.Errorf("after silence: %v", fell)
		}
	})
}

// weak returns a capability that has a value in every field.
func weak() topology.Capability {
	c := topology.DefaultCapability()
	c.Window, c.Speed = 64, topology.Speed{Bytes: topology.NoSpeed, Packets: 1.5e6}
	return c
}

// someReducer returns one of a pipeline that leaves something to its agent.
func someReducer() topology.Reducer {
	r := topology.Reducer{Pipeline: topology.P4}
	r.Own[reduce.Int32], r.Own[reduce.Block32] = topology.FunctionsOf(reduce.Sum, reduce.MaxLoc), topology.FunctionsOf(reduce.Sum)
	return r
}
