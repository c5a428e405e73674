package scoll

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/driver/attach"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Node is this process's part in all collectives: services register at it, and
// it speaks with other nodes, which are the nodes of other hosts.
type Node struct {
	cfg     Config
	log     *slog.Logger
	clock   runner.Clock
	shared  *attach.Host
	host    *peer.Host
	bulk    Bulk
	workers workers
	counts  counts
	denials denials
	loop    *runner.Loop[broadcast.Input, output]
	pulls   pulls

	ctx     context.Context // of pulls
	stop    context.CancelFunc
	tasks   runner.Tasks // pulls
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
	met       map[string]meeting    // as many as the Liveness knows and the host remembers
}

// meeting is what is known of another node.
type meeting struct {
	incarnation uint64 // the latest
	watched     bool   // the Liveness knows it
}

// On makes the node of a host, which others reach from now on. A host has one in its
// life: after Close there is no other, because others know the requests of one incarnation
// by their numbers. The host closes the node before itself. Errors are ErrConfig,
// hostlib.ErrService where the host has, or had, a node, and hostlib.ErrClosed.
func On(host *hostlib.Host, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg.filled(), clock: runner.NewClock(), over: make(chan struct{}),
		services: map[broadcastmsg.Service]*Service{}, requests: map[uint64]*Request{},
		creations: map[uint64]creation{}, destroys: map[uint64]chan error{}, met: map[string]meeting{},
	}
	ready := make(chan struct{})
	defer close(ready)
	shared, err := attach.To(host, peer.Collectives, func(ctx context.Context) error {
		<-ready
		return n.Close(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("scoll: %w", err)
	}
	n.shared, n.host, n.log = shared, shared.Peers, shared.Log
	if err := n.open(host); err != nil {
		n.closing.Do(func() {}) // nothing is open
		shared.Detach()
		return nil, fmt.Errorf("scoll: on host %s: %w", n.Name(), err)
	}
	return n, nil
}

// open starts the node's loop, and registers the node at its host.
func (n *Node) open(host *hostlib.Host) error {
	inner := n.cfg.core(n.host.Name(), n.host.Incarnation())
	_, _ = rand.Read(inner.Secret[:]) // it never fails
	var err error
	if n.host.IsCertified() {
		if _, inner.Key, err = ed25519.GenerateKey(nil); err != nil {
			return err
		}
	}
	if n.core, err = broadcast.New(inner); err != nil {
		return err
	}
	n.workers.most = n.cfg.Workers
	n.ctx, n.stop = context.WithCancel(context.Background())
	if n.bulk = n.cfg.Bulk; n.bulk == nil {
		messages, err := rail.On(host, rail.Config{})
		if err != nil {
			n.stop()
			return err
		}
		n.bulk = newRailBulk(messages)
	}
	n.loop, err = runner.Start(runner.Config[broadcast.Input, output]{
		Core: (*stepper)(n), Clock: n.clock, Apply: n.apply, Queue: mostWaiting,
	})
	if err != nil {
		n.stop()
		return errors.Join(err, n.bulk.Close())
	}
	if err := n.host.Register(peer.Collectives, (*link)(n)); err != nil { // cannot be: it is the host's only node
		err = errors.Join(err, n.leave())
		n.loop.Close()
		return err
	}
	liveness := n.cfg.Liveness
	if liveness == nil {
		liveness = n.shared.Liveness
	}
	if liveness != nil {
		n.unwatch = liveness.Watch(n.up, n.down)
	}
	return nil
}

// leave ends what others send to the node. What was lent comes back.
func (n *Node) leave() error {
	n.stop()
	err := n.bulk.Close()
	n.host.Unregister(peer.Collectives)
	return err
}

// Name returns the node's name, which is its host's.
func (n *Node) Name() string { return n.host.Name() }

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
	n.loop.Wake()
}

// newer notes an incarnation, and reports whether an earlier one was known, and
// which.
func (n *Node) newer(node string, incarnation uint64, watched bool) (before uint64, newer bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m, known := n.met[node]
	before = m.incarnation
	n.met[node] = meeting{max(before, incarnation), m.watched || watched}
	return before, known && incarnation > before
}

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
	services := slices.Collect(maps.Values(n.services))
	n.mu.Unlock()
	for _, s := range services {
		s.stop() // all at once, before any is waited for
	}
	var failed []error
	for _, s := range services {
		failed = append(failed, s.Close(ctx))
	}
	failed = append(failed, n.drain(ctx))
	failed = append(failed, n.leave())
	n.tasks.Close()
	_ = n.loop.Do(context.Background(), func() {}) // what has come is stepped, and its memory given back
	failed = append(failed, n.drain(ctx))          // of what that has sent, by failing
	n.loop.Close()
	close(n.over)
	n.cutOff()
	failed = append(failed, n.workers.wait(ctx))
	n.shared.Detach()
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
