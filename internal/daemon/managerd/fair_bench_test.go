package managerd_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// yes is a switch that agrees to everything and reduces nothing.
type yes struct {
	name string
	at   netip.AddrPort
}

func (y yes) State(context.Context) (rpc.AgentState, error) {
	c := topology.DefaultCapability()
	c.Slots = 1 << 30
	return rpc.AgentState{Switch: y.name, Incarnation: 1, Capability: c}, nil
}

func (y yes) Prepare(context.Context, agent.Prepare) (netip.AddrPort, error) { return y.at, nil }
func (y yes) Commit(context.Context, agent.Commit) (topology.Reducer, error) {
	return topology.Reducer{}, nil
}
func (y yes) Remove(context.Context, agent.Remove) error                { return nil }
func (y yes) Drain(context.Context, bool) error                         { return nil }
func (y yes) SetRoutes(context.Context, portmap.Assignment) error       { return nil }
func (y yes) Counters(context.Context) (c rpc.AgentCounters, err error) { return c, nil }
func (y yes) Watch(ctx context.Context, _ time.Duration, event func(rpc.AgentEvent) error) error {
	s, _ := y.State(ctx)
	if err := event(rpc.AgentEvent{State: &s}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// caller is a host that creates groups with the next one.
type caller struct {
	name    string
	at      netip.AddrPort
	session *rpc.HostSession
	next    *caller

	mu      sync.Mutex // of Send, and what follows
	replies map[uint64]chan manager.Reply
	offers  map[uint32]chan time.Time // of rank 0
	asked   uint64
}

func (c *caller) send(in manager.Input) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Send(in)
}

func (c *caller) offered(group uint32) chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offers[group] == nil {
		c.offers[group] = make(chan time.Time, 1)
	}
	return c.offers[group]
}

// receive reads what the manager says until the session ends.
func (c *caller) receive() {
	for {
		e, err := c.session.Recv()
		if err != nil {
			return
		}
		switch {
		case e.Reply != nil:
			c.mu.Lock()
			answer := c.replies[e.Reply.Req]
			delete(c.replies, e.Reply.Req)
			c.mu.Unlock()
			answer <- *e.Reply
		case e.Offer != nil && e.Offer.Rank == 0:
			select {
			case c.offered(e.Offer.Group) <- time.Now():
			default: // of another window
			}
		}
	}
}

// create asks for a group, and returns a function that waits until it has its tree, and
// returns how long that took.
func (c *caller) create(i int) (func() (time.Duration, error), error) {
	begun, answer := time.Now(), make(chan manager.Reply, 1)
	in := manager.Create{
		Name: fmt.Sprint(c.name, "/", i), Members: []string{c.name, c.next.name}, ChunkBytes: 1432, Window: 8,
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Uint32),
	}
	c.mu.Lock()
	c.asked++
	in.Req = c.asked
	c.replies[in.Req] = answer
	c.mu.Unlock()
	if err := c.send(in); err != nil {
		return nil, err
	}
	return func() (time.Duration, error) {
		r := <-answer
		if r.Err != nil {
			return 0, r.Err
		}
		if err := c.send(manager.Watch{Group: r.Group, Rank: 0, DataAddr: c.at}); err != nil {
			return 0, err
		}
		if err := c.next.send(manager.Watch{Group: r.Group, Rank: 1, DataAddr: c.next.at}); err != nil {
			return 0, err
		}
		return (<-c.offered(r.Group)).Sub(begun), nil
	}, nil
}

func certificate(dir string, role pki.Role, name string) *pki.Source {
	i := pki.Identity{Role: role, Name: name}
	return must(pki.Load(pki.Files{
		Cert: filepath.Join(dir, pki.CertFile(i)), Key: filepath.Join(dir, pki.KeyFile(i)), CA: filepath.Join(dir, pki.AuthorityFile),
	}, nil))
}

const (
	fairHosts = 100
	fairEach  = 50 // groups of each host but one
)

// crowd starts a manager of 100 hosts that have certificates.
func crowd(b *testing.B, dir string) []*caller {
	b.Helper()
	g := must(topology.LeafSpine(10, 10, 4))
	agents := map[string]string{}
	for i := range g.Switches() {
		name := g.Name(g.Switch(i))
		listener := must(net.Listen("tcp", "127.0.0.1:0"))
		s := rpc.Serve(listener, rpc.Services{Agent: yes{name, netip.AddrPortFrom(local, uint16(10_000+i))}}, rpc.ServerConfig{TLS: certificate(dir, pki.Agent, name).Server()})
		b.Cleanup(s.Kill)
		agents[name] = listener.Addr().String()
	}
	d := must(managerd.Start(managerd.Config{
		Topology: g, Agents: agents, Listen: "127.0.0.1:0", Trust: certificate(dir, pki.Manager, "m"), Verify: -1, Heartbeat: patience, Call: patience,
		Core: manager.Config{Answer: patience, Quotas: quota.Config{Host: quota.Limits{Groups: 1 << 16, Plans: 1e6}}},
	}))
	b.Cleanup(d.Kill)
	all := make([]*caller, fairHosts)
	for i := range all {
		name := g.Name(topology.NodeID(i))
		client := must(rpc.DialManager(d.Addr(), rpc.ClientConfig{TLS: certificate(dir, pki.Host, name).Client(pki.Want{Role: pki.Manager})}))
		b.Cleanup(func() { _ = client.Close() })
		all[i] = &caller{
			name: name, at: netip.AddrPortFrom(local, uint16(20_000+i)), session: must(client.HostSession(b.Context())),
			replies: map[uint64]chan manager.Reply{}, offers: map[uint32]chan time.Time{},
		}
		go all[i].receive() // it ends with the client
	}
	for i, c := range all {
		c.next = all[(i+1)%len(all)]
	}
	return all
}

// race has 99 hosts create a group after the other, and one as many at once as it is to; it
// returns how long the groups of the 99 took.
func race(b *testing.B, dir string, greedy int) []time.Duration {
	b.Helper()
	all := crowd(b, dir)
	for _, c := range all { // agents are met, planner and connections are warm
		wait := must(c.create(-1))
		if _, err := wait(); err != nil {
			b.Fatal(err)
		}
	}
	took := make([][]time.Duration, len(all))
	var running sync.WaitGroup
	running.Go(func() {
		for i := range greedy {
			wait := must(all[0].create(i))
			if greedy > fairEach {
				running.Go(func() { must(wait()) })
			} else {
				must(wait())
			}
		}
	})
	for k, c := range all[1:] {
		running.Go(func() {
			for i := range fairEach {
				took[k] = append(took[k], must(must(c.create(i))()))
			}
		})
	}
	running.Wait()
	return slices.Concat(took...)
}

func percentile(all []time.Duration, share float64) time.Duration {
	slices.Sort(all)
	return all[int(share*float64(len(all)-1))]
}

// BenchmarkFairness: 10,000 groups of 100 hosts, of which one asks for 100 times its share,
// 5,000 groups at once; and the same where it asks for its share, in turns. The ratio is that
// of the 99th percentiles of the others' times from asking for a group to its tree.
func BenchmarkFairness(b *testing.B) {
	g := must(topology.LeafSpine(10, 10, 4))
	ids := []pki.Identity{{Role: pki.Manager, Name: "m"}}
	for n := range topology.NodeID(g.Nodes()) {
		role := pki.Host
		if g.IsSwitch(n) {
			role = pki.Agent
		}
		ids = append(ids, pki.Identity{Role: role, Name: g.Name(n)})
	}
	dir := b.TempDir()
	if _, err := pki.Init(dir, ids...); err != nil {
		b.Fatal(err)
	}
	var with, without []time.Duration
	for b.Loop() {
		without = append(without, race(b, dir, fairEach)...)
		with = append(with, race(b, dir, 100*fairEach)...)
	}
	for _, share := range []float64{0.5, 0.99} {
		x, y := percentile(with, share), percentile(without, share)
		b.ReportMetric(float64(x.Microseconds())/1e3, fmt.Sprintf("p%.0f-with-ms", 100*share))
		b.ReportMetric(float64(y.Microseconds())/1e3, fmt.Sprintf("p%.0f-without-ms", 100*share))
		b.ReportMetric(float64(x)/float64(y), fmt.Sprintf("p%.0f-ratio", 100*share))
	}
}
