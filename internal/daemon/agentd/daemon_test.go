package agentd_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

var local = netip.MustParseAddr("127.0.0.1")

func config() agentd.Config {
	return agentd.Config{
		Switch: "leaf-0", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: local,
	}
}

// start starts an agent and returns it with a client of it.
func start(t *testing.T, c agentd.Config) (*agentd.Daemon, *rpc.AgentClient) {
	t.Helper()
	d, err := agentd.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	client, err := rpc.DialAgent(d.Addr(), rpc.ClientConfig{Manager: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	led := errors.New("it has led")
	if err := client.Watch(testContext(t), 0, func(rpc.AgentEvent) error { return led }); !errors.Is(err, led) {
		t.Fatal(err)
	}
	return d, client
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// host is a member's socket.
type host struct {
	*testing.T
	conn transport.Conn
}

func newHost(t *testing.T) host {
	t.Helper()
	conn, err := transport.ListenUDP(netip.AddrPortFrom(local, 0), transport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return host{t, conn}
}

func (h host) send(to netip.AddrPort, head wire.Header, body []byte) {
	h.Helper()
	b := make([]byte, wire.HeaderSize)
	head.Put(b)
	if err := h.conn.WriteBatch([]transport.Message{{To: to, Head: b, Body: body}}); err != nil {
		h.Fatal(err)
	}
}

// receive returns the next packet.
func (h host) receive() (wire.Header, []byte) {
	h.Helper()
	packets := make([]transport.Packet, 1)
	if _, err := h.conn.ReadBatch(packets, time.Now().Add(patience)); err != nil {
		h.Fatal(err)
	}
	var head wire.Header
	body, fault := head.Decode(packets[0].Data)
	if fault != wire.NoFault {
		h.Fatal(fault)
	}
	return head, body
}

// nothing reports that no packet is there. It is for packets whose fate another
// packet behind them has shown.
func (h host) nothing() {
	h.Helper()
	packets := make([]transport.Packet, 1)
	if _, err := h.conn.ReadBatch(packets, time.Now()); !errors.Is(err, os.ErrDeadlineExceeded) {
		h.Errorf("got a packet, or %v", err)
	}
}

// group is a group of hosts beneath one switch, in one epoch.
type group struct {
	incarnation uint64
	config      switchreduce.Config
	parent      netip.AddrPort
	hosts       []host
}

func newGroup(t *testing.T, c *rpc.AgentClient, id uint32, members int) *group {
	t.Helper()
	state, err := c.State(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	g := &group{incarnation: state.Incarnation, config: switchreduce.Config{
		Group: id, Epoch: 2, Window: 8, ChunkBytes: 1432, Probes: 4,
	}}
	for rank := range members {
		h := newHost(t)
		g.hosts = append(g.hosts, h)
		g.config.Children = append(g.config.Children, switchreduce.Child{Addr: h.conn.LocalAddr(), Lowest: uint32(rank), Cookie: 0xfeed + wire.Cookie(rank)})
	}
	return g
}

func (g *group) prepare(ctx context.Context, c *rpc.AgentClient) (err error) {
	g.parent, err = c.Prepare(ctx, agent.Prepare{
		Incarnation: g.incarnation, Group: g.config.Group, Epoch: g.config.Epoch, Children: len(g.hosts),
		Window: g.config.Window, ChunkBytes: g.config.ChunkBytes,
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Uint32),
	})
	return err
}

func (g *group) commit(ctx context.Context, c *rpc.AgentClient) error {
	by, err := c.Commit(ctx, agent.Commit{Incarnation: g.incarnation, Config: g.config})
	if err == nil && by.Pipeline == topology.UnknownPipeline {
		err = errors.New("what reduces is not reported")
	}
	return err
}

func (g *group) install(t *testing.T, c *rpc.AgentClient) {
	t.Helper()
	ctx := testContext(t)
	if err := errors.Join(g.prepare(ctx, c), g.commit(ctx, c)); err != nil {
		t.Fatal(err)
	}
}

// head is the header of rank's contribution to a sum of one uint32.
func (g *group) head(rank int, chunk uint32) wire.Header {
	return wire.Header{
		Type: wire.Contribution, Flags: wire.Sink, Child: uint16(rank), Group: g.config.Group, Epoch: g.config.Epoch,
		Cookie: g.config.Children[rank].Cookie, Chunk: chunk, Lowest: uint32(rank),
		Signature: wire.Signature{
			Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint32, Elements: 1, ChunkElements: 1,
		},
	}
}

// allreduce sums the ranks' numbers plus one, and checks the result.
func (g *group) allreduce(t *testing.T, chunk uint32) {
	t.Helper()
	want := uint32(0)
	for rank, h := range g.hosts {
		want += uint32(rank + 1)
		h.send(g.parent, g.head(rank, chunk), binary.LittleEndian.AppendUint32(nil, uint32(rank+1)))
	}
	for rank, h := range g.hosts {
		head, body := h.receive()
		if head.Type != wire.Result || head.Chunk != chunk || binary.LittleEndian.Uint32(body) != want {
			t.Fatalf("rank %d: got %+v with %v, want the result %d", rank, head, body, want)
		}
	}
}

func TestReduction(t *testing.T) {
	_, c := start(t, config())
	g := newGroup(t, c, 7, 3)
	g.install(t, c)
	for chunk := range uint32(20) {
		g.allreduce(t, chunk)
	}

	wrong := g.head(0, 20)
	wrong.Cookie++
	g.hosts[0].send(g.parent, wrong, make([]byte, 4))
	stranger := newHost(t)
	stranger.send(g.parent, g.head(0, 20), make([]byte, 4))
	g.hosts[0].send(g.parent, g.head(0, 20), make([]byte, 2))
	g.allreduce(t, 20)
	stranger.nothing()

	counters, err := c.Counters(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if counters.SlotsUsed != 16 || counters.Slots != topology.DefaultSlots || len(counters.Trees) != 1 {
		t.Fatalf("counters %+v", counters)
	}
	n := counters.Trees[0]
	if n.Group != 7 || n.Events["results"] != 21 || n.PacketsIn != 21*3+3 || n.PacketsOut != 21*3 {
		t.Errorf("counters %+v", n)
	}
	for reason, want := range map[string]uint64{"cookie": 1, "address": 1, "fault": 1, "fault-length": 1} {
		if n.Drops[reason] != want {
			t.Errorf("%d drops by %s, want %d", n.Drops[reason], reason, want)
		}
	}
}

func TestTwoTreesAndTheirEnd(t *testing.T) {
	_, c := start(t, config())
	a, b := newGroup(t, c, 1, 2), newGroup(t, c, 2, 2)
	a.install(t, c)
	b.install(t, c)
	a.allreduce(t, 0)
	b.allreduce(t, 0)
	ctx := testContext(t)
	if err := c.Remove(ctx, agent.Remove{Incarnation: a.incarnation, Group: 1, Epoch: 2}); err != nil {
		t.Fatal(err)
	}
	b.allreduce(t, 1)
	state, err := c.State(ctx)
	if err != nil || len(state.Holds) != 1 || state.Holds[0].Group != 2 || !state.Holds[0].Committed || state.Holds[0].Addr != b.parent {
		t.Errorf("state %+v, %v", state, err)
	}
	if err := a.prepare(ctx, c); !errors.Is(err, agent.ErrStaleEpoch) {
		t.Errorf("an epoch that was removed: %v", err)
	}
}

func TestNextEpochSharesTheSocket(t *testing.T) {
	_, c := start(t, config())
	g := newGroup(t, c, 1, 2)
	g.install(t, c)
	g.allreduce(t, 0)
	first := g.parent
	g.config.Epoch, g.config.Cookie = 4, 0xbeef
	g.install(t, c)
	if g.parent != first {
		t.Errorf("epoch 4 at %v, epoch 2 was at %v", g.parent, first)
	}
	g.allreduce(t, 1)
	counters, err := c.Counters(testContext(t))
	if err != nil || counters.SlotsUsed != 16 {
		t.Errorf("%d slots used, %v", counters.SlotsUsed, err)
	}
}

func TestRefusalNamesWhoHoldsTheRest(t *testing.T) {
	cfg := config()
	cfg.Capability.Slots = 20
	_, c := start(t, cfg)
	newGroup(t, c, 1, 2).install(t, c)
	err := newGroup(t, c, 2, 2).prepare(testContext(t), c)
	var refusal *agent.Refusal
	if !errors.As(err, &refusal) || !errors.Is(err, agent.ErrResource) {
		t.Fatalf("got %v", err)
	}
	if refusal.Cause != agent.Slots || refusal.Switch != "leaf-0" || refusal.Need != 16 || refusal.Free != 4 ||
		len(refusal.Holders) != 1 || refusal.Holders[0] != (agent.Holder{Group: 1, Slots: 16}) {
		t.Errorf("got %+v", refusal)
	}
}

// watch watches an agent until the test ends; end reports how the watch did.
func watch(t *testing.T, c *rpc.AgentClient) (events <-chan rpc.AgentEvent, end <-chan error) {
	t.Helper()
	heard, ended := make(chan rpc.AgentEvent, 100), make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- c.Watch(ctx, 0, func(e rpc.AgentEvent) error { heard <- e; return nil })
		close(heard)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return heard, ended
}

func TestWatchReportsOfDrain(t *testing.T) {
	_, c := start(t, config())
	events, _ := watch(t, c)
	if e := <-events; e.State == nil || e.State.Switch != "leaf-0" || e.State.Draining {
		t.Fatalf("got %+v", e)
	}
	ctx := testContext(t)
	if err := c.Drain(ctx, true); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.State == nil || !e.State.Draining {
		t.Fatalf("got %+v", e)
	}
	if err := newGroup(t, c, 1, 2).prepare(ctx, c); !errors.Is(err, agent.ErrDraining) {
		t.Errorf("prepare: %v", err)
	}
	if err := c.Drain(ctx, false); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.State == nil || e.State.Draining {
		t.Fatalf("got %+v", e)
	}
}

func TestWatchReportsOfLeases(t *testing.T) {
	cfg := config()
	cfg.PrepareLease = 500 * time.Millisecond
	_, c := start(t, cfg)
	events, _ := watch(t, c)
	<-events

	prepared := newGroup(t, c, 1, 2)
	if err := prepared.prepare(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Ended == nil || e.Ended.Group != 1 || e.Ended.Epoch != 2 || e.Ended.Why != agent.PrepareRanOut {
		t.Fatalf("got %+v", e)
	}
	// The prepare lease must not run out before the commit is there.
	cfg.PrepareLease = time.Minute
	_, c = start(t, cfg)
	events, _ = watch(t, c)
	<-events
	committed := newGroup(t, c, 2, 2)
	committed.config.Lease = 500 * time.Millisecond
	committed.install(t, c)
	if e := <-events; e.Ended == nil || e.Ended.Group != 2 || e.Ended.Why != agent.LeaseRanOut {
		t.Fatalf("got %+v", e)
	}
	state, err := c.State(testContext(t))
	if err != nil || len(state.Holds) != 0 {
		t.Errorf("state %+v, %v", state, err)
	}
}

func TestDeathIsNoticed(t *testing.T) {
	for name, end := range map[string]func(*agentd.Daemon){"close": (*agentd.Daemon).Close, "kill": (*agentd.Daemon).Kill} {
		t.Run(name, func(t *testing.T) {
			d, c := start(t, config())
			g := newGroup(t, c, 1, 2)
			g.install(t, c)
			events, ended := watch(t, c)
			<-events
			end(d)
			end(d)
			if err := <-ended; !errors.Is(err, rpc.ErrUnavailable) {
				t.Errorf("watch: %v", err)
			}
			<-d.Done()
			if err := d.Err(); err != nil {
				t.Errorf("the server ended with %v", err)
			}
			if _, err := c.State(testContext(t)); !errors.Is(err, rpc.ErrUnavailable) {
				t.Errorf("state: %v", err)
			}
			if _, err := d.State(testContext(t)); !errors.Is(err, rpc.ErrClosing) {
				t.Errorf("the daemon's own state: %v", err)
			}
			if _, err := d.Counters(testContext(t)); !errors.Is(err, rpc.ErrClosing) {
				t.Errorf("the daemon's own counters: %v", err)
			}
		})
	}
}

func TestRestartedAgentKnowsNothing(t *testing.T) {
	cfg := config()
	cfg.Listen = loopback.Address(t)
	d, c := start(t, cfg)
	g := newGroup(t, c, 1, 2)
	g.install(t, c)
	d.Kill()
	_, c = start(t, cfg)
	ctx := testContext(t)
	state, err := c.State(ctx)
	if err != nil || len(state.Holds) != 0 || state.Incarnation == g.incarnation {
		t.Fatalf("state %+v, %v", state, err)
	}
	if err := g.commit(ctx, c); !errors.Is(err, agent.ErrIncarnation) {
		t.Errorf("commit: %v", err)
	}
}

func TestFaultsAreInjected(t *testing.T) {
	cfg := config()
	cfg.Faults = transport.Faults{Loss: 1}
	_, c := start(t, cfg)
	g := newGroup(t, c, 1, 1)
	g.install(t, c)
	g.hosts[0].send(g.parent, g.head(0, 0), make([]byte, 4))
	ctx := testContext(t)
	for taken := uint64(0); taken == 0; {
		counters, err := c.Counters(ctx)
		if err != nil {
			t.Fatal(err)
		}
		taken = counters.Trees[0].Events["results"]
	}
	g.hosts[0].nothing()
}

func TestUnusableDataAddress(t *testing.T) {
	cfg := config()
	cfg.Data = netip.MustParseAddr("192.0.2.1") // of no interface (RFC 5737)
	cfg.AllowPlaintext = true
	if d, err := agentd.Start(cfg); !errors.Is(err, syscall.EADDRNOTAVAIL) || !strings.Contains(err.Error(), "data address 192.0.2.1") {
		t.Errorf("started with %v", err)
		if err == nil {
			d.Kill()
		}
	}
	if err := cfg.Check(); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("checked with %v", err)
	}
}

func TestConfig(t *testing.T) {
	for name, spoil := range map[string]func(*agentd.Config){
		"no name":         func(c *agentd.Config) { c.Switch = "" },
		"no address":      func(c *agentd.Config) { c.Listen = "" },
		"no data address": func(c *agentd.Config) { c.Data = netip.Addr{} },
		"multicast data":  func(c *agentd.Config) { c.Data = netip.MustParseAddr("224.0.0.1") },
		"buffer":          func(c *agentd.Config) { c.ReceiveBuffer = -1 },
		"lease":           func(c *agentd.Config) { c.PrepareLease = -1 },
		"capability":      func(c *agentd.Config) { c.Capability.Slots = -1 },
		"faults":          func(c *agentd.Config) { c.Faults.Loss = 2 },
	} {
		c := config()
		spoil(&c)
		if d, err := agentd.Start(c); !errors.Is(err, agentd.ErrConfig) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				d.Kill()
			}
		}
	}
	d, _ := start(t, config())
	c := config()
	c.Listen = d.Addr()
	if _, err := agentd.Start(c); err == nil {
		t.Error("a port in use was taken")
	}
}
