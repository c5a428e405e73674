package scoll

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Node is this process's part in all collectives: services register at it, and
// it speaks with other nodes.
type Node struct {
	cfg     Config
	clock   runner.Clock
	host    *peer.Host
	bulk    Bulk
	inbox   *inbox
	workers workers
	counts  counts
	loop    *runner.Loop[broadcast.Input, output]
	pulls   pulls

	ctx     context.Context // of pulls
	stop    context.CancelFunc
	tasks   crew // pulls
	unwatch func()
	over    chan struct{} // closed when the loop has ended
	closing sync.Once

	// mu guards what follows: what services call answers at once, on their own
	// goroutines; what that brings about collects in out, and the loop does it.
	mu        sync.Mutex
	core      *broadcast.Core
	out       broadcast.Output
	closed    bool // no more services
	services  map[broadcastmsg.Service]*Service
	requests  map[uint64]*Request
	creations map[uint64]creation   // by the groups' handles
	destroys  map[uint64]chan error // by requests
	ended     chan struct{}         // closed at the next end of a request
	drained   chan struct{}         // closed when all messages are sent
	met       map[string]meeting
}

// meeting is what is known of another node.
type meeting struct {
	incarnation uint64 // the latest
	watched     bool   // the Liveness knows it
}

// mostMet are the most nodes that are remembered by their connections alone: without
// certificates everybody has as many names as he likes.
const mostMet = 16384

// Start makes a node, which others reach from now on. Errors are ErrConfig, or
// that it cannot listen.
func Start(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.filled()
	if cfg.Incarnation == 0 {
		cfg.Incarnation = uint64(time.Now().UnixNano())
	}
	cfg.Log = cfg.Log.With(slog.String("node", cfg.Node))
	inner := cfg.core()
	_, _ = rand.Read(inner.Secret[:]) // it never fails
	c, err := broadcast.New(inner)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	n := &Node{
		cfg: cfg, clock: runner.NewClock(), core: c, over: make(chan struct{}),
		services: map[broadcastmsg.Service]*Service{}, requests: map[uint64]*Request{},
		creations: map[uint64]creation{}, destroys: map[uint64]chan error{}, met: map[string]meeting{},
	}
	n.inbox = newInbox()
	n.workers.most = cfg.Workers
	n.ctx, n.stop = context.WithCancel(context.Background())
	if err := n.listen(); err != nil {
		n.stop()
		return nil, err
	}
	n.loop, err = runner.Start(runner.Config[broadcast.Input, output]{
		Core: (*stepper)(n), Clock: n.clock, Apply: n.apply, Source: n.inbox,
	})
	if err != nil {
		n.stop()
		return nil, errors.Join(err, n.host.Close(), n.bulk.Close())
	}
	if cfg.Liveness != nil {
		n.unwatch = cfg.Liveness.Watch(n.up, n.down)
	}
	return n, nil
}

// listen makes the node reachable.
func (n *Node) listen() error {
	c := peer.Config{
		Name: n.cfg.Node, Incarnation: n.cfg.Incarnation,
		Listen: n.cfg.Listen, AllowPlaintext: n.cfg.AllowPlaintext,
		Resolve:     func(_ context.Context, node string) (string, error) { return n.cfg.Resolve(node) },
		Handlers:    map[peer.Service]peer.Handler{peer.Collectives: (*link)(n)},
		GreetWithin: n.cfg.DialTimeout, DeadAfter: n.cfg.DeadAfter, Log: n.cfg.Log,
	}
	if t := n.cfg.TLS; t != nil {
		source, err := pki.Load(t.Cert, t.Key, t.CA, n.cfg.Log)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		c.TLS = source
	}
	if n.bulk = n.cfg.Bulk; n.bulk == nil {
		n.bulk = n.ownBulk(&c)
	}
	h, err := peer.Listen(n.ctx, c)
	if errors.Is(err, peer.ErrConfig) {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return fmt.Errorf("scoll: starting %s: %w", n.cfg.Node, err)
	}
	n.host = h
	return nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.cfg.Node }

// Addr returns the TCP address on which others reach it.
func (n *Node) Addr() string { return n.host.Addr() }

// Incarnation returns the number of this start of the node.
func (n *Node) Incarnation() uint64 { return n.cfg.Incarnation }

// SetRoundTrip sets R, as it was measured, for what is sent from now on.
func (n *Node) SetRoundTrip(r time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.core.SetRoundTrip(r)
}

// up takes the news that a node lives.
func (n *Node) up(node string, incarnation uint64) {
	n.host.Learn(node, incarnation)
	if before, newer := n.newer(node, incarnation, true); newer {
		n.rebooted(node, before, incarnation)
		return
	}
	n.news(broadcast.Input{Kind: broadcast.Up, Node: broadcastmsg.Node(node), Incarnation: incarnation})
}

// meet takes that there is a connection to a node, or was an attempt at one.
func (n *Node) meet(node string, incarnation uint64) {
	if before, newer := n.newer(node, incarnation, false); newer {
		n.rebooted(node, before, incarnation)
	}
}

// rebooted takes the news that a node lives in a later incarnation than before,
// of which the core may not have heard: only from another incarnation than it
// knows does it conclude that what it waits for does not come.
func (n *Node) rebooted(node string, before, incarnation uint64) {
	up := broadcast.Input{Kind: broadcast.Up, Node: broadcastmsg.Node(node), Incarnation: incarnation}
	earlier := up
	earlier.Incarnation = before
	n.news(earlier, up)
}

// down takes the news that a node's life has ended; of one that is known in a
// later life that is nothing new. Connections to it are left alone: if it lives
// after all, what it has sent is not lost.
func (n *Node) down(node string, incarnation uint64) {
	if incarnation != 0 {
		if before, _ := n.newer(node, incarnation, true); incarnation < before {
			return
		}
	}
	n.pulls.cancelFrom(node)
	n.news(broadcast.Input{Kind: broadcast.Down, Node: broadcastmsg.Node(node), Incarnation: incarnation})
}

// news steps the core with news of who lives at once: what is called from now on
// knows of it.
func (n *Node) news(in ...broadcast.Input) {
	n.mu.Lock()
	n.core.Step(n.clock.Now(), in, &n.out)
	n.mu.Unlock()
	n.stir()
}

// newer notes an incarnation, and reports whether an earlier one was known, and
// which.
func (n *Node) newer(node string, incarnation uint64, watched bool) (before uint64, newer bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m, known := n.met[node]
	before = m.incarnation
	if !known && len(n.met) >= mostMet {
		n.forget()
	}
	n.met[node] = meeting{max(before, incarnation), m.watched || watched}
	return before, known && incarnation > before
}

// forget forgets a node that is known by its connections alone. The caller holds the
// lock.
func (n *Node) forget() {
	for node, m := range n.met {
		if !m.watched {
			delete(n.met, node)
			return
		}
	}
}

// crew is goroutines that somebody waits for, who wants no new ones then.
type crew struct {
	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

// spawn runs f on a goroutine that Close waits for; not after it has begun to.
func (n *Node) spawn(f func()) bool {
	n.tasks.mu.Lock()
	defer n.tasks.mu.Unlock()
	if !n.tasks.closed {
		n.tasks.all.Go(f)
	}
	return !n.tasks.closed
}

// dismiss lets no goroutine begin any more, and waits for those that run.
func (c *crew) dismiss() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.all.Wait()
}

// stir has the loop do what a call has brought about.
func (n *Node) stir() { n.inbox.stir() }

// awaitEnd waits until a request ends, if one has not ended yet.
func (n *Node) awaitEnd(ctx context.Context) error {
	n.mu.Lock()
	if n.core.Counters().Requests == 0 {
		n.mu.Unlock()
		return nil
	}
	if n.ended == nil {
		n.ended = make(chan struct{})
	}
	ended := n.ended
	n.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-n.over:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for requests to end: %w", ctx.Err())
	}
}

// Close stops all services as their Close does, waits until everything that is
// to be said is sent, and leaves. When ctx ends first, what is left is cut off,
// and the error says how much that was; callbacks that run still do so. It must
// not be called from a callback.
func (n *Node) Close(ctx context.Context) (err error) {
	n.closing.Do(func() { err = n.close(ctx) })
	return err
}

func (n *Node) close(ctx context.Context) error {
	if n.unwatch != nil {
		n.unwatch()
	}
	n.mu.Lock()
	n.closed = true
	services := make([]*Service, 0, len(n.services))
	for _, s := range n.services {
		services = append(services, s)
	}
	n.mu.Unlock()
	for _, s := range services {
		s.stop() // all at once, before any is waited for
	}
	var failed []error
	for _, s := range services {
		failed = append(failed, s.Close(ctx))
	}
	failed = append(failed, n.drain(ctx))
	n.stop()
	n.inbox.close()
	failed = append(failed, n.host.Close(), n.bulk.Close())
	n.tasks.dismiss()
	failed = append(failed, n.drain(ctx)) // of what has come meanwhile, by failing
	n.loop.Close()
	n.inbox.release()
	close(n.over)
	n.cutOff()
	failed = append(failed, n.workers.wait(ctx))
	return errors.Join(failed...)
}

// drain waits until all messages are sent.
func (n *Node) drain(ctx context.Context) error {
	n.mu.Lock()
	if n.core.Counters().LentBuffers == 0 {
		n.mu.Unlock()
		return nil
	}
	n.drained = make(chan struct{})
	drained := n.drained
	n.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for messages to be sent: %w", ctx.Err())
	}
}

// cutOff ends what is left after the loop.
func (n *Node) cutOff() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.requests {
		r.finish(ErrClosed, r.outcome)
	}
	creations := n.creations
	n.creations = map[uint64]creation{}
	for _, c := range creations {
		t := task{call: broadcast.Call{Kind: broadcast.Created, Err: ErrClosed}, creation: c, node: n}
		n.workers.do(t.queue(), &t)
	}
}
