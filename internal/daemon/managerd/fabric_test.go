package managerd_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
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

// fabric is a leaf-spine fabric with an agent on every switch, and a manager.
type fabric struct {
	*testing.T
	graph   *topology.Graph
	agents  map[string]*agentd.Daemon
	cfg     managerd.Config
	manager *managerd.Daemon
	client  *rpc.ManagerClient
	at      map[string]string // where agents are, for set
}

func agentConfig(name string) agentd.Config {
	return agentd.Config{Switch: name, Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: local}
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newFabric starts agents and a manager, after adjust has changed their
// configurations, and waits until they are connected.
func newFabric(t *testing.T, adjust func(*managerd.Config, map[string]*agentd.Config)) *fabric {
	t.Helper()
	f := startFabric(t, adjust)
	f.connected()
	return f
}

// startFabric is newFabric, without the wait.
func startFabric(t *testing.T, adjust func(*managerd.Config, map[string]*agentd.Config)) *fabric {
	t.Helper()
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	f := &fabric{T: t, graph: g, agents: map[string]*agentd.Daemon{}}
	f.cfg = managerd.Config{
		Topology: g, Agents: map[string]string{}, Listen: "127.0.0.1:0",
		Core:      manager.Config{ReleaseGrace: time.Millisecond, RetryMax: 100 * time.Millisecond},
		Heartbeat: patience, // agents die by their connections; what holds up the test's process kills none
	}
	agents := map[string]*agentd.Config{}
	for i := range g.Switches() {
		c := agentConfig(g.Name(g.Switch(i)))
		c.Listen = loopback.Address(t) // as its next life will
		agents[c.Switch] = &c
	}
	if adjust != nil {
		adjust(&f.cfg, agents)
	}
	for name, c := range agents {
		f.startAgent(name, *c)
	}
	f.startManager()
	return f
}

// connected waits until the manager has a connection to every agent: a plan made
// before may lack switches.
func (f *fabric) connected() {
	f.Helper()
	for name := range f.agents {
		f.eventually("the agent of "+name+" is connected", func(ctx context.Context) (bool, error) {
			s, err := f.switchState(ctx, name)
			return err == nil && s.Connected, err
		})
	}
}

func (f *fabric) startAgent(name string, c agentd.Config) {
	f.Helper()
	d, err := agentd.Start(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(d.Kill)
	f.agents[name], f.cfg.Agents[name] = d, d.Addr()
}

// restartAgent starts a new agent where one was killed.
func (f *fabric) restartAgent(name string) {
	f.Helper()
	c := agentConfig(name)
	c.Listen = f.cfg.Agents[name]
	f.startAgent(name, c)
}

func (f *fabric) startManager() {
	f.Helper()
	d, err := managerd.Start(f.cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(d.Kill)
	f.manager = d
	if f.client, err = rpc.DialManager(d.Addr(), rpc.ClientConfig{}); err != nil {
		f.Fatal(err)
	}
	client := f.client
	f.Cleanup(func() { _ = client.Close() })
}

// hosts returns the names of the fabric's hosts.
func (f *fabric) hosts() []string {
	names := make([]string, f.graph.Hosts())
	for i := range names {
		names[i] = f.graph.Name(topology.NodeID(i))
	}
	return names
}

func (f *fabric) spec(name string) manager.Create {
	return manager.Create{
		Name: name, Members: f.hosts(), ChunkBytes: 1432, Window: 8,
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Uint32),
	}
}

// member is a rank of a group, with its socket and its stream.
type member struct {
	*fabric
	group, rank uint32
	conn        transport.Conn
	session     *rpc.HostSession
	events      chan manager.Event
	ended       chan error
}

// group is a group whose members all watch.
type group struct {
	*fabric
	id      uint32
	members []*member
}

func (f *fabric) newGroup(c manager.Create) *group {
	f.Helper()
	id, _, err := f.client.CreateGroup(testContext(f.T), c)
	if err != nil {
		f.Fatal(err)
	}
	g := &group{fabric: f, id: id}
	for rank := range c.Members {
		conn, err := transport.ListenUDP(netip.AddrPortFrom(local, 0), transport.Config{})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = conn.Close() })
		m := &member{fabric: f, group: id, rank: uint32(rank), conn: conn}
		m.watch(0)
		g.members = append(g.members, m)
	}
	return g
}

// watch watches over the fabric's present client until the test ends.
func (m *member) watch(entered uint32) {
	m.Helper()
	events, ended := make(chan manager.Event, 100), make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	done := make(chan struct{})
	w := manager.Watch{Group: m.group, Rank: m.rank, DataAddr: m.conn.LocalAddr(), Entered: entered, Speed: speedOf(m.rank)}
	s, err := openWatch(ctx, m.client, w)
	if err != nil {
		cancel()
		m.Fatal(err)
	}
	go func() {
		defer close(done)
		err := follow(s, func(e manager.Event) { events <- e })
		cancel() // which ends the session
		close(events)
		ended <- err
	}()
	m.Cleanup(func() { cancel(); <-done })
	m.session, m.events, m.ended = s, events, ended
}

// speedOf is how fast the host of a rank is.
func speedOf(rank uint32) topology.Speed { return topology.Speed{Bytes: 5e9 + int64(rank)} }

// openWatch watches in a session of its own, which ends with ctx.
func openWatch(ctx context.Context, c *rpc.ManagerClient, w manager.Watch) (*rpc.HostSession, error) {
	s, err := c.HostSession(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Send(w); err != nil && !errors.Is(err, io.EOF) { // then Recv knows why
		return nil, err
	}
	return s, nil
}

// follow hands on events until the watch or the session ends.
func follow(s *rpc.HostSession, event func(manager.Event)) error {
	for {
		e, err := s.Recv()
		if err != nil {
			return err
		}
		event(e)
		if e.Notice != nil && e.Notice.End {
			return nil
		}
	}
}

// reports sends the manager a report of the member's.
func (m *member) reports(r manager.Report) {
	m.Helper()
	r.Group, r.Rank = m.group, m.rank
	if err := m.session.Send(r); err != nil {
		m.Fatal(err)
	}
}

// offer waits for an offer of a later epoch than after. Withdrawals and
// notices on the way are passed over.
func (m *member) offer(after uint32) *manager.Offer {
	m.Helper()
	for e := range m.events {
		if e.Offer != nil && e.Offer.Epoch > after {
			return e.Offer
		}
	}
	m.Fatalf("rank %d: the stream ended without an offer after epoch %d: %v", m.rank, after, <-m.ended)
	return nil
}

// withdrawal waits for the withdrawal of an epoch.
func (m *member) withdrawal(epoch uint32) *manager.Withdrawal {
	m.Helper()
	for e := range m.events {
		if e.Withdrawal != nil && e.Withdrawal.Epoch == epoch {
			return e.Withdrawal
		}
	}
	m.Fatalf("rank %d: the stream ended without a withdrawal of epoch %d: %v", m.rank, epoch, <-m.ended)
	return nil
}

// notice waits for a notice.
func (m *member) notice() *manager.Notice {
	m.Helper()
	for e := range m.events {
		if e.Notice != nil {
			return e.Notice
		}
	}
	m.Fatalf("rank %d: the stream ended without a notice: %v", m.rank, <-m.ended)
	return nil
}

// offers waits until all members have the same offer of a later epoch.
func (g *group) offers(after uint32) []*manager.Offer {
	g.Helper()
	var all []*manager.Offer
	for _, m := range g.members {
		o := m.offer(after)
		for len(all) > 0 && o.Epoch < all[0].Epoch {
			o = m.offer(o.Epoch)
		}
		if len(all) > 0 && (o.Epoch != all[0].Epoch || o.Cookie == all[0].Cookie) {
			g.Fatalf("rank %d has %+v, rank 0 has %+v", m.rank, o, all[0])
		}
		all = append(all, o)
	}
	return all
}

// allreduce sums the ranks' numbers plus one over an offered tree.
func (g *group) allreduce(offers []*manager.Offer, chunk uint32) {
	g.Helper()
	want := uint32(0)
	for i, m := range g.members {
		want += uint32(i + 1)
		head := wire.Header{
			Type: wire.Contribution, Flags: wire.Sink, Child: offers[i].Index, Group: g.id, Epoch: offers[i].Epoch,
			Cookie: offers[i].Cookie, Chunk: chunk, Lowest: m.rank,
			Signature: wire.Signature{
				Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint32, Elements: 1, ChunkElements: 1,
			},
		}
		packet := make([]byte, wire.HeaderSize)
		head.Put(packet)
		message := transport.Message{To: offers[i].Parent, Head: packet, Body: binary.LittleEndian.AppendUint32(nil, uint32(i+1))}
		if err := m.conn.WriteBatch([]transport.Message{message}); err != nil {
			g.Fatal(err)
		}
	}
	for _, m := range g.members {
		packets := make([]transport.Packet, 1)
		if _, err := m.conn.ReadBatch(packets, time.Now().Add(patience)); err != nil {
			g.Fatal(err)
		}
		var head wire.Header
		body, fault := head.Decode(packets[0].Data)
		if fault != wire.NoFault || head.Type != wire.Result || head.Chunk != chunk || binary.LittleEndian.Uint32(body) != want {
			g.Fatalf("rank %d: got %+v with %v (%v), want the result %d", m.rank, head, body, fault, want)
		}
	}
}

// explain explains the group.
func (g *group) explain() rpc.Explanation {
	g.Helper()
	e, err := g.client.Explain(testContext(g.T), rpc.GroupRef{Group: g.id})
	if err != nil {
		g.Fatal(err)
	}
	return e
}

// root returns the name of the root switch of an epoch's tree.
func (g *group) root(epoch uint32) string {
	g.Helper()
	for _, t := range g.explain().Trees {
		if t.Epoch == epoch {
			return t.Switches[0].Switch
		}
	}
	g.Fatalf("no tree of epoch %d", epoch)
	return ""
}

// eventually asks again and again until the answer is yes.
func (f *fabric) eventually(what string, ask func(context.Context) (bool, error)) {
	f.Helper()
	ctx := testContext(f.T)
	for {
		ok, err := ask(ctx)
		if err != nil {
			f.Fatal(fmt.Errorf("waiting until %s: %w", what, err))
		}
		if ok {
			return
		}
	}
}

// switchState returns how the manager sees a switch.
func (f *fabric) switchState(ctx context.Context, name string) (*rpc.SwitchState, error) {
	fabric, err := f.client.Topology(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range fabric.Nodes {
		if n.Name == name {
			return n.Switch, nil
		}
	}
	return nil, fmt.Errorf("no switch %s", name)
}
