package offload_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/offload"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = time.Minute

const testService scoll.ServiceID = 5

// site is a fabric in this process, with a node of server collectives at every
// host, and a group of all of them whose root is the first.
type site struct {
	t       *testing.T
	ctx     context.Context
	fabric  *embedded.Fabric // nil: none
	hosts   []*hostlib.Host  // nil without a fabric
	nodes   []*scoll.Node
	news    []*scoll.News
	service []*offload.Service[uint64]
	groups  []*offload.Group[uint64]

	mu         sync.Mutex
	ran        map[string]int                    // by node and payload
	transports map[hostlib.Transport]int         // in which requests came to Run
	run        func(node string, n uint64) error // nil: all is well
	dead       map[string]bool
}

// build builds a site. A reply is how many nodes ran a request, and n times the
// square of their numbers from 1 on.
func build(t *testing.T, spec string, offloaded bool, change func(*offload.Config[uint64])) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	g, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, ctx: ctx, ran: map[string]int{}, transports: map[hostlib.Transport]int{}, dead: map[string]bool{}}
	if offloaded {
		if s.fabric, err = embedded.Start(ctx, embedded.Config{Topology: g, OfferWait: patience}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.fabric.Close() })
		s.hosts = s.fabric.Hosts()
	}
	addresses := map[string]string{}
	for i := range g.Hosts() {
		if !offloaded {
			host, err := hostlib.Join(ctx, hostlib.Config{
				Name:    g.Name(topology.NodeID(i)),
				Resolve: func(_ context.Context, name string) (string, error) { return addresses[name], nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = host.Close(ctx) })
			addresses[host.Name()] = host.Addr()
			s.hosts = append(s.hosts, host)
		}
		s.news = append(s.news, &scoll.News{})
		node, err := scoll.On(s.hosts[i], scoll.Config{RoundTrip: patience, Liveness: s.news[i]})
		if err != nil {
			t.Fatal(err)
		}
		s.nodes = append(s.nodes, node)
		t.Cleanup(func() { _ = node.Close(ctx) })
	}
	for i, node := range s.nodes {
		c := offload.Config[uint64]{
			ID: testService, Function: reduce.Sum, Elements: 2, RoundTrip: patience, Ahead: 8,
			Run: func(r *offload.Request, v []uint64) error { return s.serve(node.Name(), uint64(i+1), r, v) },
		}
		if change != nil {
			change(&c)
		}
		var host *hostlib.Host
		if offloaded {
			host = s.hosts[i]
		}
		service, err := offload.Register(node, host, c)
		if err != nil {
			t.Fatal(err)
		}
		s.service = append(s.service, service)
	}
	s.join("all")
	return s
}

// members are those of every group.
func (s *site) members() []hostlib.Member {
	var all []hostlib.Member
	for _, h := range s.hosts {
		all = append(all, h.Member())
	}
	return all
}

func (s *site) join(name string) {
	s.t.Helper()
	s.groups = make([]*offload.Group[uint64], len(s.nodes))
	spec := offload.Spec{Name: name, Members: s.members()}
	s.each(func(i int) (err error) {
		s.groups[i], err = s.service[i].Join(s.ctx, spec)
		return err
	})
}

// each calls f for all that live, at once.
func (s *site) each(f func(i int) error) {
	s.t.Helper()
	errs := make([]error, len(s.nodes))
	var all sync.WaitGroup
	for i, n := range s.nodes {
		if !s.dead[n.Name()] {
			all.Go(func() { errs[i] = f(i) })
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) close() {
	s.t.Helper()
	s.each(func(i int) error { return s.groups[i].Close(s.ctx) })
}

// serve is Run.
func (s *site) serve(node string, k uint64, r *offload.Request, v []uint64) error {
	n := binary.BigEndian.Uint64(r.Payload)
	s.mu.Lock()
	s.ran[fmt.Sprintf("%s %d", node, n)]++
	s.transports[r.Transport]++
	run := s.run
	s.mu.Unlock()
	if run != nil {
		if err := run(node, n); err != nil {
			return err
		}
	}
	v[0], v[1] = 1, n*k*k
	return nil
}

func (s *site) onRun(f func(node string, n uint64) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = f
}

// want is the reply of all nodes but some.
func (s *site) want(n uint64, but ...int) [2]uint64 {
	var v [2]uint64
	for i := range s.nodes {
		v[0]++
		v[1] += n * uint64((i+1)*(i+1))
	}
	for _, i := range but {
		v[0]--
		v[1] -= n * uint64((i+1)*(i+1))
	}
	return v
}

// call broadcasts number n.
func (s *site) call(n uint64) (offload.Result[uint64], error) {
	return s.groups[0].Broadcast(s.ctx, binary.BigEndian.AppendUint64(nil, n))
}

// must broadcasts number n, to be run by all.
func (s *site) must(n uint64) offload.Result[uint64] {
	s.t.Helper()
	r, err := s.call(n)
	if err != nil {
		s.t.Fatalf("request %d: %v", n, err)
	}
	if r.Outcome.Ran != len(s.nodes) || [2]uint64(r.Vector) != s.want(n) || r.Why == "" {
		s.t.Fatalf("request %d: %+v, want %v", n, r, s.want(n))
	}
	return r
}

// many broadcasts so many numbers from several goroutines, and counts the ways.
func (s *site) many(from, count uint64) map[hostlib.Transport]int {
	transports := map[hostlib.Transport]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for k := range uint64(4) {
		all.Go(func() {
			for n := from + k; n < from+count; n += 4 {
				r, err := s.call(n)
				if err != nil || r.Outcome.Ran != len(s.nodes) || [2]uint64(r.Vector) != s.want(n) {
					s.t.Errorf("request %d: %+v, %v, want %v", n, r, err, s.want(n))
				}
				mu.Lock()
				transports[r.Transport]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return transports
}

// once checks that all nodes have run the requests, each once.
func (s *site) once(from, count uint64) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := from; n < from+count; n++ {
		for _, node := range s.nodes {
			if times := s.ran[fmt.Sprintf("%s %d", node.Name(), n)]; times != 1 {
				s.t.Errorf("%s has run request %d %d times", node.Name(), n, times)
			}
		}
	}
}

func (s *site) await(what string, ok func() bool) {
	s.t.Helper()
	for !ok() {
		if s.ctx.Err() != nil {
			s.t.Fatalf("gave up waiting for %s", what)
		}
		runtime.Gosched()
	}
}

func (s *site) offloaded() bool {
	transport, _ := s.groups[0].Transport()
	return transport == hostlib.Offload
}

func TestThroughTheSwitches(t *testing.T) {
	s := build(t, "leaf-spine:4,2,2", true, nil)
	s.await("a tree", s.offloaded)
	if transports := s.many(1, 200); transports[hostlib.Offload] != 200 {
		t.Errorf("the ways are %v, want all through the switches", transports)
	}
	s.once(1, 200)
	if s.transports[hostlib.Offload] != 200*len(s.nodes) {
		t.Errorf("members saw the ways %v", s.transports)
	}
	s.close()
	s.join("again")
	s.must(201)
	s.close()
}

// TestASwitchDies: in the middle, at the root of the tree that requests come
// down, then at that of the replies, and at a leaf for whose hosts there is no
// other. All requests are run once by all, and the switches are used again where
// they can be.
func TestASwitchDies(t *testing.T) {
	s := build(t, "leaf-spine:2,2,3", true, nil)
	s.await("a tree", s.offloaded)
	next := uint64(1)
	for _, tree := range []string{"all/down", "all/up", ""} {
		victim := "leaf-1"
		if tree != "" {
			active, err := s.fabric.AwaitTree(s.ctx, tree, 0)
			if err != nil {
				t.Fatal(err)
			}
			victim = s.fabric.Topology().Name(active.Tree.Root())
		}
		at := next + 60
		s.onRun(func(node string, n uint64) error {
			if n == at && node == s.nodes[1].Name() {
				return s.fabric.KillSwitch(victim)
			}
			return nil
		})
		s.many(next, 200)
		s.once(next, 200)
		s.onRun(nil)
		next += 200
		if tree == "" {
			break
		}
		s.await("a tree without "+victim, s.offloaded)
		if transports := s.many(next, 20); transports[hostlib.Offload] != 20 {
			t.Errorf("with another tree the ways are %v", transports)
		}
		next += 20
		if err := s.fabric.RestartSwitch(s.ctx, victim); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.must(next); r.Transport != hostlib.HostTree || !strings.Contains(r.Why, "leaf-1") {
		t.Errorf("without a leaf a request goes by %v because %q", r.Transport, r.Why)
	}
	s.close()
}

// TestAMemberFails: the root learns over hosts who that is and has the replies
// of all others, who do not run the request again; the next one goes through the
// switches.
func TestAMemberFails(t *testing.T) {
	s := build(t, "leaf-spine:4,2,1", true, nil)
	s.await("a tree", s.offloaded)
	s.onRun(func(node string, n uint64) error {
		if node == s.nodes[3].Name() && n == 2 {
			return errors.New("no space left")
		}
		if node == s.nodes[5].Name() && n == 3 {
			panic("a bug")
		}
		return nil
	})
	s.must(1)
	for n, who := range map[uint64]int{2: 3, 3: 5} {
		r, err := s.call(n)
		var incomplete *scoll.IncompleteError
		if !errors.As(err, &incomplete) || len(incomplete.Missing) != 1 || incomplete.Missing[0].Node != s.nodes[who].Name() || incomplete.Missing[0].Status != scoll.StatusFailed {
			t.Errorf("request %d: %v, want that %s failed", n, err, s.nodes[who].Name())
		}
		if who == 3 && r.Transport != hostlib.HostTree || !strings.Contains(r.Why, "failed") {
			t.Errorf("request %d went by %v because %q", n, r.Transport, r.Why)
		}
	}
	s.once(1, 3)
	if r := s.must(4); r.Transport != hostlib.Offload {
		t.Errorf("the next request went by %v because %q", r.Transport, r.Why)
	}
	s.close()
}

// TestAMemberIsLate: a request that does not come back goes over hosts, where it
// waits for the member, who runs it once; so do all after it.
func TestAMemberIsLate(t *testing.T) {
	s := build(t, "leaf-spine:4,2,1", true, func(c *offload.Config[uint64]) { c.RoundTrip = 50 * time.Millisecond })
	s.await("a tree", s.offloaded)
	asleep := make(chan struct{})
	s.onRun(func(node string, n uint64) error {
		if node == s.nodes[6].Name() && n == 1 {
			<-asleep
		}
		return nil
	})
	var r offload.Result[uint64]
	var waiting sync.WaitGroup
	waiting.Go(func() { r = s.must(1) })
	s.await("the switches to be given up", func() bool {
		transport, why := s.groups[0].Transport()
		return transport == hostlib.HostTree && strings.Contains(why, "in time")
	})
	close(asleep)
	waiting.Wait()
	if r.Transport != hostlib.HostTree || !strings.Contains(r.Why, "in time") {
		t.Errorf("it went by %v because %q", r.Transport, r.Why)
	}
	if transports := s.many(2, 40); transports[hostlib.HostTree] != 40 {
		t.Errorf("afterwards the ways are %v", transports)
	}
	s.once(1, 41)
	s.close()
}

// TestAMemberDies: in the middle of many requests. All come to an end, those
// that succeed with all replies, the others with the name of the dead.
func TestAMemberDies(t *testing.T) {
	s := build(t, "leaf-spine:3,2,1", true, nil)
	s.await("a tree", s.offloaded)
	const dead = 4
	name := s.nodes[dead].Name()
	kill := sync.OnceFunc(func() {
		s.dead[name] = true
		s.hosts[dead].Close(s.ctx)
		gone, cancel := context.WithCancel(s.ctx)
		cancel()
		_ = s.nodes[dead].Close(gone) // at once: it is dead
		for i, news := range s.news {
			if i != dead {
				news.Down(name)
			}
		}
	})
	var all sync.WaitGroup
	for k := range uint64(4) {
		all.Go(func() {
			for n := 1 + k; n < 120; n += 4 {
				if n == 61 {
					kill()
				}
				r, err := s.call(n)
				switch {
				case err == nil && [2]uint64(r.Vector) == s.want(n) && r.Outcome.Ran == len(s.nodes):
				case err != nil && (errors.Is(err, scoll.ErrDead) || strings.Contains(err.Error(), name)):
				default:
					t.Errorf("request %d: %+v, %v", n, r, err)
				}
			}
		})
	}
	all.Wait()
	if _, err := s.call(200); !errors.Is(err, scoll.ErrDead) || !strings.Contains(err.Error(), name) {
		t.Errorf("afterwards: %v, want that %s is dead", err, name)
	}
	s.mu.Lock()
	for what, times := range s.ran {
		if times != 1 {
			t.Errorf("%s was run %d times", what, times)
		}
	}
	s.mu.Unlock()
	for i, g := range s.groups {
		if i != dead {
			_ = g.Close(s.ctx) // the group cannot be freed at the dead
		}
	}
}

// TestOverHosts: without a place in a fabric.
func TestOverHosts(t *testing.T) {
	s := build(t, "leaf-spine:3,2,1", false, nil)
	if transports := s.many(1, 100); transports[hostlib.HostTree] != 100 {
		t.Errorf("the ways are %v", transports)
	}
	s.once(1, 100)
	s.close()
}

// TestJoinGivenUp: a group that is made after its root has given up waiting for
// it does not stay at anybody.
func TestJoinGivenUp(t *testing.T) {
	s := build(t, "leaf-spine:3,1,1", false, nil)
	before := s.nodes[2].Counters().Groups
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if g, err := s.service[0].Join(ctx, offload.Spec{Name: "given up", Members: s.members()}); err == nil {
		_ = g.Close(s.ctx) // it was made at once
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.await("the group to be freed", func() bool {
		for _, n := range s.nodes {
			if k := n.Counters(); k.Groups != before || k.Requests != 0 {
				return false
			}
		}
		return true
	})
	s.close()
}

func TestWhatIsRefused(t *testing.T) {
	s := build(t, "leaf-spine:3,1,1", false, nil)
	run := func(*offload.Request, []uint64) error { return nil }
	for name, c := range map[string]struct {
		c    offload.Config[uint64]
		want error
	}{
		"no Run":            {offload.Config[uint64]{ID: 9, Function: reduce.Sum, Elements: 1}, offload.ErrConfig},
		"no elements":       {offload.Config[uint64]{ID: 9, Function: reduce.Sum, Run: run}, offload.ErrConfig},
		"too large":         {offload.Config[uint64]{ID: 9, Function: reduce.Sum, Elements: 1, RequestBytes: 4096, Run: run}, offload.ErrConfig},
		"exclusive or":      {offload.Config[uint64]{ID: 9, Function: reduce.BXor, Elements: 1, Run: run}, offload.ErrFunction},
		"a service's twice": {offload.Config[uint64]{ID: testService, Function: reduce.Sum, Elements: 1, Run: run}, scoll.ErrService},
	} {
		if _, err := offload.Register(s.nodes[0], nil, c.c); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := s.groups[1].Broadcast(s.ctx, nil); !errors.Is(err, offload.ErrRoot) {
		t.Errorf("another than the root: %v", err)
	}
	if _, err := s.groups[0].Broadcast(s.ctx, make([]byte, 1025)); !errors.Is(err, offload.ErrPayload) {
		t.Errorf("1025 bytes: %v", err)
	}
	if _, err := s.service[0].Join(s.ctx, offload.Spec{Name: "all", Members: s.members()}); !errors.Is(err, offload.ErrConfig) {
		t.Errorf("joining twice: %v", err)
	}
	if _, err := s.service[0].Join(s.ctx, offload.Spec{Name: "others", Members: s.members()[1:]}); !errors.Is(err, offload.ErrConfig) {
		t.Errorf("joining others' group: %v", err)
	}
	s.close()
	if err := s.groups[0].Close(s.ctx); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := s.groups[0].Broadcast(s.ctx, nil); !errors.Is(err, offload.ErrClosed) {
		t.Errorf("of a closed group: %v", err)
	}
}
