package hostlib

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 60 * time.Second

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until asks again and again until the answer is yes.
func until(ctx context.Context, t testing.TB, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %v", what, ctx.Err())
		}
	}
}

// each runs f for 0 to n-1 at once and waits.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// fabric is a leaf-spine fabric of two leaves with two hosts each: an agent on
// every switch, and a manager.
type fabric struct {
	*testing.T
	graph   *topology.Graph
	agents  map[string]*agentd.Daemon
	cfg     managerd.Config
	front   *front // of the manager
	manager *managerd.Daemon
	client  *rpc.ManagerClient
}

// newFabric starts a fabric after adjust has changed its agents, and returns
// when the manager has met all of them.
func newFabric(t *testing.T, spines int, adjust func(*agentd.Config)) *fabric {
	t.Helper()
	g, err := topology.LeafSpine(2, 2, spines)
	if err != nil {
		t.Fatal(err)
	}
	f := &fabric{T: t, graph: g, agents: map[string]*agentd.Daemon{}, front: newFront(t)}
	f.cfg = managerd.Config{
		Topology: g, Agents: map[string]string{}, Listen: "127.0.0.1:0",
		Core:      manager.Config{ReleaseGrace: time.Millisecond, RetryMax: 100 * time.Millisecond},
		Heartbeat: patience, // agents die by their connections; what holds up the test's process kills none
	}
	for i := range g.Switches() {
		c := agentd.Config{
			Switch: g.Name(g.Switch(i)), Capability: topology.DefaultCapability(),
			Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1"),
		}
		if adjust != nil {
			adjust(&c)
		}
		d, err := agentd.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Kill)
		f.agents[c.Switch], f.cfg.Agents[c.Switch] = d, d.Addr()
	}
	f.startManager()
	return f
}

// startManager starts a manager without memory, which is reached as the one
// before was, once it has other groups.
func (f *fabric) startManager(others ...manager.Create) {
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
	for _, c := range others {
		if _, _, err := f.client.CreateGroup(within(f), c); err != nil {
			f.Fatal(err)
		}
	}
	f.front.lead(d.Addr())
	ctx := within(f)
	until(ctx, f, "the manager has met all switches", func() bool {
		fabric, err := f.client.Topology(ctx)
		if err != nil {
			f.Fatal(err)
		}
		for _, n := range fabric.Nodes {
			if n.Switch != nil && !n.Switch.Connected {
				return false
			}
		}
		return true
	})
}

// front is an address that stays where what is behind it is started again. A
// port that was let go may be taken by another process.
type front struct {
	net.Listener
	behind atomic.Pointer[string]
}

func newFront(t testing.TB) *front {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	f := &front{Listener: listener}
	go f.serve()
	return f
}

func (f *front) addr() string { return f.Addr().String() }

// lead sets what is behind the front.
func (f *front) lead(address string) { f.behind.Store(&address) }

func (f *front) serve() {
	for {
		conn, err := f.Accept()
		if err != nil {
			return
		}
		go f.forward(conn.(*net.TCPConn))
	}
}

func (f *front) forward(conn *net.TCPConn) {
	defer conn.Close()
	address := f.behind.Load()
	if address == nil {
		return
	}
	behind, err := net.Dial("tcp", *address)
	if err != nil {
		return
	}
	defer behind.Close()
	ends := []*net.TCPConn{conn, behind.(*net.TCPConn)}
	each(2, func(i int) {
		_, _ = io.Copy(ends[i], ends[1-i])
		_ = ends[i].CloseWrite()
	})
}

// join joins the fabric's hosts.
func (f *fabric) join(change ...func(*Config)) ([]*Host, []Member) {
	f.Helper()
	return f.hooked(hooks.Hooks{}, change...)
}

// hooked joins the fabric's hosts with hooks.
func (f *fabric) hooked(h hooks.Hooks, change ...func(*Config)) ([]*Host, []Member) {
	f.Helper()
	names := make([]string, f.graph.Hosts())
	for i := range names {
		names[i] = f.graph.Name(topology.NodeID(i))
	}
	managed := func(c *Config) { c.Manager = f.front.addr() }
	return joinAll(f, h, names, append([]func(*Config){managed}, change...)...)
}

func joinAs(t testing.TB, names []string, change ...func(*Config)) ([]*Host, []Member) {
	t.Helper()
	return joinAll(t, hooks.Hooks{}, names, change...)
}

func joinAll(t testing.TB, h hooks.Hooks, names []string, change ...func(*Config)) ([]*Host, []Member) {
	t.Helper()
	hosts, members := make([]*Host, len(names)), make([]Member, len(names))
	for i, name := range names {
		hosts[i] = joinHooked(t, h, name, change...)
		members[i] = hosts[i].Member()
	}
	return hosts, members
}

// fewer returns all cases, or with -short, under the race detector in CI, the last.
func fewer[T any](cases ...T) []T {
	if testing.Short() {
		return cases[len(cases)-1:]
	}
	return cases
}

// joinOne joins a host, which is closed when the test ends.
func joinOne(t testing.TB, name string, change ...func(*Config)) *Host {
	t.Helper()
	return joinHooked(t, hooks.Hooks{}, name, change...)
}

func joinHooked(t testing.TB, with hooks.Hooks, name string, change ...func(*Config)) *Host {
	t.Helper()
	c := Config{Name: name}
	for _, f := range change {
		f(&c)
	}
	h, err := Join(hooks.With(t.Context(), with), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Errorf("closing %s: %v", name, err)
		}
	})
	return h
}

// form forms one communicator of all hosts.
func form(t testing.TB, name string, hosts []*Host, members []Member, options ...GroupOption) []*Communicator {
	t.Helper()
	ctx := within(t)
	comms := make([]*Communicator, len(hosts))
	each(len(hosts), func(i int) {
		c, err := hosts[i].Communicator(ctx, name, members, options...)
		if err != nil {
			t.Error(err)
		}
		comms[i] = c
	})
	if t.Failed() {
		t.FailNow()
	}
	return comms
}

func leave(t testing.TB, comms []*Communicator) {
	t.Helper()
	ctx := within(t)
	each(len(comms), func(i int) {
		if err := comms[i].Leave(ctx); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	})
}

// vectors are what the members of a group give to a sum.
func vectors(members, length int) [][]int64 {
	all := make([][]int64, members)
	for i := range all {
		all[i] = make([]int64, length)
		for j := range all[i] {
			all[i][j] = int64(i+1) * int64(j-7)
		}
	}
	return all
}

// checkSum checks what became of one of vectors.
func checkSum(t testing.TB, members, rank int, v []int64) {
	t.Helper()
	for j, x := range v {
		if want := int64(members*(members+1)/2) * int64(j-7); x != want {
			t.Errorf("rank %d: element %d is %d, want %d", rank, j, x, want)
			return
		}
	}
}

// sum runs and checks an allreduce of all members.
func sum(t testing.TB, comms []*Communicator, length int) []Outcome {
	t.Helper()
	ctx := within(t)
	n, all, outcomes := len(comms), vectors(len(comms), length), make([]Outcome, len(comms))
	each(n, func(i int) {
		var err error
		if outcomes[i], err = Allreduce(ctx, comms[i], reduce.Sum, all[i], all[i]); err != nil {
			t.Errorf("rank %d: %v", i, err)
			return
		}
		checkSum(t, n, i, all[i])
	})
	return outcomes
}

// wantTransport checks the way of every member, and that the reason says so much.
func wantTransport(t testing.TB, outcomes []Outcome, want Transport, says ...string) {
	t.Helper()
	for rank, o := range outcomes {
		if o.Transport != want || o.Reason == "" || len(o.Epochs) == 0 {
			t.Errorf("rank %d ran by %v in epochs %v because %q, want %v", rank, o.Transport, o.Epochs, o.Reason, want)
		}
		for _, part := range says {
			if !strings.Contains(o.Reason, part) {
				t.Errorf("rank %d ran by %v because %q, which does not say %q", rank, o.Transport, o.Reason, part)
			}
		}
	}
}

// offloaded waits until all members are in a tree of switches, in an epoch
// after the given one.
func offloaded(t testing.TB, comms []*Communicator, after uint32) {
	t.Helper()
	ctx := within(t)
	for i, c := range comms {
		until(ctx, t, fmt.Sprintf("rank %d is on a tree of switches", i), func() bool {
			via, _ := c.Transport()
			return via == Offload && c.Stats().Epoch > after
		})
	}
}

// held returns the slots that groups hold on all switches.
func (f *fabric) held() (slots int) {
	f.Helper()
	for name, a := range f.agents {
		s, err := a.Counters(within(f))
		if err != nil {
			f.Fatal(name, err)
		}
		slots += s.SlotsUsed
	}
	return slots
}

// root returns the name of the root switch of a group's present tree.
func (f *fabric) root(c *Communicator) string {
	f.Helper()
	ctx := within(f)
	groups, err := f.client.Groups(ctx)
	if err != nil {
		f.Fatal(err)
	}
	for _, g := range groups {
		if !strings.HasPrefix(g.Name, c.Name()+"/") {
			continue
		}
		e, err := f.client.Explain(ctx, rpc.GroupRef{Group: g.Group})
		if err != nil {
			f.Fatal(err)
		}
		for _, tree := range e.Trees {
			if tree.Epoch == c.Stats().Epoch {
				return tree.Switches[0].Switch
			}
		}
	}
	f.Fatalf("no tree of %q in epoch %d", c.Name(), c.Stats().Epoch)
	return ""
}

// gate is a Conn that, once it has sent so many datagrams, drops all others
// until it is opened.
type gate struct {
	transport.Conn
	left   int
	isOpen atomic.Bool
}

func (g *gate) WriteBatch(messages []transport.Message) error {
	if !g.isOpen.Load() {
		messages = g.pass(messages)
	}
	return g.Conn.WriteBatch(messages)
}

// pass returns those of messages that may pass, and the part of a run.
func (g *gate) pass(messages []transport.Message) []transport.Message {
	for i := range messages {
		m, count := &messages[i], 1
		if m.Size != 0 {
			count = (len(m.Body) + m.Size - 1) / m.Size
		}
		if count <= g.left {
			g.left -= count
			continue
		}
		if g.left == 0 {
			return messages[:i]
		}
		m.Head, m.Body = m.Head[:len(m.Head)/count*g.left], m.Body[:g.left*m.Size]
		g.left = 0
		return messages[:i+1]
	}
	return messages
}

// rootDies has the agent at the root of a group's tree die in the middle of what
// start starts, which then takes more than one epoch, and returns what came of it
// and the name of the root. Rank 3 cannot finish before.
func rootDies(t *testing.T, spines int, start func([]*Communicator) []*Request, options ...GroupOption) (*fabric, []*Communicator, []Outcome, string) {
	t.Helper()
	f := newFabric(t, spines, nil)
	hosts, members := f.join()
	var g *gate
	hosts[3].hooks.Data = func(c transport.Conn) transport.Conn {
		g = &gate{Conn: c, left: 300}
		return g
	}
	comms := form(t, "job", hosts, members, options...)
	offloaded(t, comms, 0)
	root := f.root(comms[0])
	requests := start(comms)
	ctx := within(t)
	for _, c := range comms {
		until(ctx, t, "results have come", func() bool { return c.Stats().Session.Results > 200 })
	}
	f.agents[root].Kill()
	g.isOpen.Store(true)
	outcomes := make([]Outcome, len(comms))
	for i, r := range requests {
		var err error
		if outcomes[i], err = r.Wait(ctx); err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
		if len(outcomes[i].Epochs) < 2 {
			t.Errorf("rank %d ran in epochs %v", i, outcomes[i].Epochs)
		}
	}
	return f, comms, outcomes, root
}

// wantMember checks that err names a member as the reason of the end.
func wantMember(t testing.TB, err error, rank int, says string) {
	t.Helper()
	var m *MemberError
	if !errors.As(err, &m) || !errors.Is(err, ErrEnded) || m.Rank != rank || !strings.Contains(m.Reason, says) {
		t.Errorf("got %v, want an error that names rank %d and says %q", err, rank, says)
	}
}
