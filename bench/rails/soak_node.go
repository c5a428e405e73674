package rails

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
)

// SoakNode is the configuration of a host of a soak.
type SoakNode struct {
	Host      int
	Addresses [][]string    // by host and rail
	Kinds     []string      // of the rails: one for all, or one each
	Trust     string        // directory of certificates; empty: plaintext
	Largest   int           // bytes of vectors and of bulk data
	Grace     time.Duration // of membership; 0: its default
}

// SoakReport is what a host of a soak has done so far.
type SoakReport struct {
	Host       int      `json:"host"`
	Allreduces uint64   `json:"allreduces"` // with the right result
	Broadcasts uint64   `json:"broadcasts"` // begun here, that all hosts have run
	Ran        []uint64 `json:"ran"`        // broadcasts run here, by the host that began them
	Bulk       uint64   `json:"bulk"`       // bytes of bulk data received, with the right checksum
	Changes    uint64   `json:"changes"`    // of attributes of other hosts
	Sent       uint64   `json:"sent"`       // messages to the next host
	Arrived    uint64   `json:"arrived"`    // and of the host before, in order
	Done       bool     `json:"done"`       // the last report
	Error      string   `json:"error,omitempty"`
}

// soakPort is where hosts listen, each in a namespace of its own.
const soakPort = 7310

// What a soak agrees upon.
const (
	soakService scoll.ServiceID = 18
	soakKey                     = "soak"
)

// soak is one host of a soak.
type soak struct {
	cfg   SoakNode
	host  *hostlib.Host
	node  *scoll.Node
	of    *scoll.Service
	rails *rail.Node

	stop chan struct{} // closed when no more is to be begun
	idle chan struct{} // closed when nothing is under way but allreduces

	allreduces, broadcasts, bulk, changes, sent, arrived atomic.Uint64

	mu  sync.Mutex
	ran []uint64
}

// hostConfig returns the configuration of the host.
func (c *SoakNode) hostConfig() hostlib.Config {
	at := func(host int) string { return net.JoinHostPort(c.Addresses[host][0], strconv.Itoa(soakPort)) }
	zone := &membership.Config{Timing: membership.Timing{Grace: c.Grace}}
	where := map[string]string{}
	for host := range c.Addresses {
		zone.Bootstrap = append(zone.Bootstrap, at(host))
		where[hostName(host)] = at(host)
	}
	config := hostlib.Config{
		Name: hostName(c.Host), Listen: at(c.Host), Rails: hostRails(c.Addresses[c.Host], c.Kinds, soakPort),
		Membership: zone, DeadAfter: c.Grace, TLS: hostTLS(c.Trust, c.Host), AllowPlaintext: c.Trust == "",
		Resolve: func(_ context.Context, host string) (string, error) { return where[host], nil },
	}
	if c.Trust != "" {
		zone.Keys = []membership.Key{{Number: 1, Secret: [32]byte{1}}}
	}
	return config
}

// Soak is the process of a host: allreduces, server collectives with bulk data, messages and
// changes of attributes, all at once and all checked, until in is closed. It reports to out each
// second, and fails with the first thing that is wrong.
func Soak(ctx context.Context, in io.Reader, out io.Writer, c SoakNode) (err error) {
	s := &soak{cfg: c, stop: make(chan struct{}), idle: make(chan struct{}), ran: make([]uint64, len(c.Addresses))}
	if s.host, err = hostlib.Join(ctx, c.hostConfig()); err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, s.host.Close(limited))
	}()
	if s.node, err = scoll.On(s.host, scoll.Config{}); err != nil {
		return err
	}
	if s.of, err = s.node.Register(soakService, s.callbacks()); err != nil {
		return err
	}
	if s.rails, err = rail.On(s.host, rail.Config{}); err != nil {
		return err
	}
	lines := bufio.NewReader(in)
	if _, err := out.Write(ready); err != nil {
		return err
	}
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("waiting for the other hosts: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		close(s.stop)
	}()
	return s.run(ctx, json.NewEncoder(out))
}

// run runs everything at once.
func (s *soak) run(ctx context.Context, out *json.Encoder) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all, services sync.WaitGroup
	fail := func(what string, f func(context.Context) error) {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("%s: %w", what, err))
		}
	}
	watched, unwatch := context.WithCancel(ctx)
	defer unwatch()
	all.Go(func() { fail("membership", func(context.Context) error { return s.watch(watched) }) })
	services.Go(func() { fail("server collectives", s.broadcast) })
	services.Go(func() { fail("attributes", s.write) })
	services.Go(func() { fail("messages", s.messages) })
	all.Go(func() {
		services.Wait()
		close(s.idle)
	})
	reduced := make(chan struct{})
	all.Go(func() {
		defer close(reduced)
		fail("allreduce", func(ctx context.Context) error { return s.reduce(ctx, unwatch) })
	})
	second := time.NewTicker(time.Second)
	defer second.Stop()
	var err error
	for isDone := false; !isDone && err == nil; {
		select {
		case <-second.C:
		case <-reduced:
			isDone = ctx.Err() == nil
		case <-ctx.Done():
		}
		r := s.report(isDone)
		if err = context.Cause(ctx); err != nil {
			r.Error = err.Error()
		}
		err = errors.Join(err, out.Encode(r))
	}
	cancel(err)
	all.Wait()
	return err
}

func (s *soak) report(isDone bool) SoakReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SoakReport{
		Host: s.cfg.Host, Allreduces: s.allreduces.Load(), Broadcasts: s.broadcasts.Load(), Bulk: s.bulk.Load(),
		Changes: s.changes.Load(), Sent: s.sent.Load(), Arrived: s.arrived.Load(), Ran: append([]uint64(nil), s.ran...), Done: isDone,
	}
}

// members returns the hosts as a communicator's.
func (s *soak) members() (all []hostlib.Member) {
	for host, at := range s.cfg.Addresses {
		all = append(all, hostlib.Member{Host: hostName(host), Addr: net.JoinHostPort(at[0], strconv.Itoa(soakPort))})
	}
	return all
}

// reduce sums vectors over all hosts until each of them has nothing else under way. The
// first element counts those. Then it leaves, before which it calls done: until all hosts
// have called it none of them goes.
func (s *soak) reduce(ctx context.Context, done func()) error {
	comm, err := s.host.Communicator(ctx, "soak", s.members())
	if err != nil {
		return err
	}
	n := int64(len(s.cfg.Addresses))
	sizes := []int{1, 100, 10_000, 1 << 30}
	for round := int64(0); ; round++ {
		v := make([]int64, 1+min(sizes[round%int64(len(sizes))], s.cfg.Largest/8))
		for i := range v {
			v[i] = round*31 + int64(i)*7 + int64(s.cfg.Host)
		}
		v[0] = 0
		select {
		case <-s.idle:
			v[0] = 1
		default:
		}
		if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); err != nil {
			return err
		}
		for i := 1; i < len(v); i++ {
			if want := n*(round*31+int64(i)*7) + n*(n-1)/2; v[i] != want {
				return fmt.Errorf("%w: round %d: element %d of %d is %d, want %d", ErrWrong, round, i, len(v), v[i], want)
			}
		}
		s.allreduces.Add(1)
		if v[0] == n {
			done()
			return comm.Leave(ctx)
		}
	}
}

// callbacks are those of the service: each host checks what it is sent, and that it is the
// next from that host.
func (s *soak) callbacks() scoll.Callbacks {
	c := scoll.Statuses(0, func(r *scoll.Request) (uint32, string) {
		if err := s.take(r); err != nil {
			return 1, err.Error()
		}
		return 0, ""
	}, func(r *scoll.Request, all *aggregate.Statuses) {
		if n := uint64(len(s.cfg.Addresses)); uint64(all.Succeeded()) != n {
			r.SetPrivate(fmt.Errorf("%w: %d of %d hosts have run it: %v", ErrWrong, all.Succeeded(), n, all.Failures()))
		}
	})
	pre := c.PreRequest
	c.PreRequest = func(r *scoll.Request) error {
		if n := r.BulkLen(); n > 0 && !r.IsRoot() {
			r.SetBulk([][]byte{make([]byte, n)})
		}
		return pre(r)
	}
	return c
}

func (s *soak) take(r *scoll.Request) error {
	if err := r.BulkErr(); err != nil {
		return err
	}
	var from int
	if _, err := fmt.Sscanf(r.Root(), "h%d", &from); err != nil || from >= len(s.ran) || len(r.Payload()) != 8 {
		return fmt.Errorf("%w: a request of %q with %d bytes", ErrWrong, r.Root(), len(r.Payload()))
	}
	number := binary.LittleEndian.Uint64(r.Payload())
	s.mu.Lock()
	defer s.mu.Unlock()
	if number != s.ran[from] {
		return fmt.Errorf("%w: request %d of %s, want %d", ErrWrong, number, r.Root(), s.ran[from])
	}
	s.ran[from]++
	if r.IsRoot() {
		return nil
	}
	if len(r.Bulk()) != 1 {
		return fmt.Errorf("%w: request %d of %s has no bulk data", ErrWrong, number, r.Root())
	}
	b := r.Bulk()[0]
	if n, _, right := parse(b); !right || n != number {
		return fmt.Errorf("%w: bulk data of request %d of %s: %d bytes are those of %d", ErrWrong, number, r.Root(), len(b), n)
	}
	s.bulk.Add(uint64(len(b)))
	return nil
}

// broadcast has all hosts run requests, one after the other, with bulk data of some size.
func (s *soak) broadcast(ctx context.Context) error {
	var targets []scoll.Target
	for host := range s.cfg.Addresses {
		targets = append(targets, scoll.Target{Node: hostName(host), Tags: []scoll.Tag{{}}})
	}
	type made struct {
		group *scoll.Group
		err   error
	}
	created := make(chan made, 1)
	err := s.of.CreateGroup(scoll.GroupSpec{Name: "of " + s.host.Name(), Targets: targets}, func(g *scoll.Group, err error) { created <- made{g, err} })
	if err != nil {
		return err
	}
	m := <-created
	if m.err != nil {
		return m.err
	}
	for number := uint64(0); ; number++ {
		size := headBytes + int(number*7919*4096%uint64(max(1, s.cfg.Largest)))
		data := make([]byte, size)
		fill(data, number, false)
		if err := s.request(m.group, number, data); err != nil {
			return fmt.Errorf("request %d: %w", number, err)
		}
		s.broadcasts.Add(1)
		select {
		case <-s.stop:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
	}
}

func (s *soak) request(g *scoll.Group, number uint64, data []byte) error {
	r, err := g.NewRequest(scoll.Broadcast{Payload: binary.LittleEndian.AppendUint64(nil, number), Bulk: [][]byte{data}})
	if err != nil {
		return err
	}
	if err := r.Send(); err != nil {
		return err
	}
	<-r.Done()
	if wrong, ok := r.Private().(error); ok {
		return wrong
	}
	return r.Err()
}

// write changes an attribute of this host.
func (s *soak) write(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		if err := s.host.Members().Set(ctx, soakKey, binary.LittleEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-s.stop:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// watch fails when a host is said to be gone, or an attribute goes back.
func (s *soak) watch(ctx context.Context) error {
	zone := s.host.Members()
	gone := make(chan string, 1)
	defer zone.Watch(func(string, uint64) {}, func(node string, _ uint64) {
		select {
		case gone <- node:
		default:
		}
	})()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case node := <-gone:
			cancel(fmt.Errorf("%w: membership says that %s is gone", ErrWrong, node))
		case <-ctx.Done():
		}
	}()
	w := zone.AttributeWatcher()
	defer w.Close()
	last := map[string]uint64{}
	for {
		changes, err := w.Next(ctx)
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, ErrWrong) {
				return cause
			}
			return nil
		}
		for _, c := range changes {
			if c.Key != soakKey || c.Node == s.host.Name() || len(c.Value) != 8 {
				continue
			}
			n := binary.LittleEndian.Uint64(c.Value)
			if n < last[c.Node] {
				return fmt.Errorf("%w: the attribute of %s goes from %d back to %d", ErrWrong, c.Node, last[c.Node], n)
			}
			last[c.Node] = n
			s.changes.Add(1)
		}
	}
}
