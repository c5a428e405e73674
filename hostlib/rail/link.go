package rail

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/attach"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// nodes are those of hosts that are not closed.
var nodes struct {
	mu sync.Mutex
	of map[Host]*Node
}

// Host is a process's host: a *hostlib.Host.
type Host interface {
	Name() string
	Addr() string
}

// On returns the node of a host, which the first call makes. It is shared: server collectives
// (package scoll) move bulk data by it, so a Config that is not the default is for a call
// before scoll.On. The host closes the node before itself. Errors are ErrConfig, also for a
// node that has another Config; hostlib.ErrService after the node was closed, and
// hostlib.ErrClosed.
func On(host Host, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	nodes.mu.Lock()
	defer nodes.mu.Unlock()
	if n := nodes.of[host]; n != nil {
		if cfg != (Config{}) && cfg.filled() != n.cfg {
			return nil, fmt.Errorf("%w: host %s has a node with %+v", ErrConfig, n.Name(), n.cfg)
		}
		return n, nil
	}
	var n *Node
	shared, err := attach.To(host, peer.Messages, func(ctx context.Context) error {
		nodes.mu.Lock() // the node is there when that is
		n := n
		nodes.mu.Unlock()
		if n == nil {
			return nil
		}
		return n.Close(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("rail: %w", err)
	}
	l := &link{host: shared.Peers}
	n = newNode(l, cfg, shared.Log)
	l.node = n
	n.detach = func() {
		nodes.mu.Lock()
		delete(nodes.of, host)
		nodes.mu.Unlock()
		shared.Detach()
	}
	if err := shared.Peers.Register(peer.Messages, l); err != nil { // cannot be: it is the host's only node
		shared.Detach()
		return nil, fmt.Errorf("rail: on host %s: %w", n.Name(), err)
	}
	if nodes.of == nil {
		nodes.of = map[Host]*Node{}
	}
	nodes.of[host] = n
	return n, nil
}

// link is the node as its host's connections see it. It implements peer.PathHandler, peer.Placer and
// connections.
type link struct {
	host *peer.Host
	node *Node
}

// classOf returns the class of a connection, if it carries messages.
func classOf(c *peer.Conn) (rail.Class, bool) {
	return rail.Class(c.Class() - peer.Message), c.Class() == peer.Message || c.Class() == peer.Fragment
}

// Name implements connections.
func (l *link) Name() string { return l.host.Name() }

// place implements connections.
func (l *link) place(on path) place {
	p := on.(*peer.Path)
	pair := p.Rails()
	if pair == nil {
		own, theirs := p.Addresses()
		return place{rail: fmt.Sprintf("%v - %v", own, theirs)}
	}
	return place{rail: fmt.Sprintf("%s - %s", pair.Own.Name, pair.Theirs.Name), bandwidth: pair.Bandwidth}
}

// call implements connections.
func (l *link) call(name string, class rail.Class) {
	l.host.Channel(name, peer.Message+peer.Class(class)).Call()
}

// patience implements connections.
func (l *link) patience() time.Duration { return l.host.DeadAfter() }

// drive implements connections.
func (l *link) drive(it *runner.Event, quit <-chan struct{}) { l.host.Drive(it, quit) }

// wake implements connections.
func (l *link) wake(it *runner.Event) { l.host.Wake(it) }

// leave implements connections.
func (l *link) leave() { l.host.Unregister(peer.Messages) }

// Up implements peer.Handler: paths are what matters.
func (l *link) Up(*peer.Conn) {}

// Down implements peer.Handler.
func (l *link) Down(c *peer.Conn, reason error) {
	if class, ok := classOf(c); ok {
		l.node.connDown(c, c.Peer().Name, class, reason)
	}
}

// PathUp implements peer.PathHandler.
func (l *link) PathUp(p *peer.Path) {
	if class, ok := classOf(p.Conn()); ok {
		l.node.pathUp(p.Conn(), p.Conn().Peer(), p, class)
	}
}

// PathDown implements peer.PathHandler.
func (l *link) PathDown(p *peer.Path, reason error) { l.node.pathDown(p.Conn(), p, reason) }

// Received implements peer.Handler.
func (l *link) Received(c *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	if err := l.node.received(c, frames); err != nil {
		l.node.log.Warn("a connection is closed", slog.String("peer", c.Peer().Name), slog.Any("reason", err))
		c.Break(err)
	}
	b.Release()
}

// Place implements peer.Placer.
func (l *link) Place(c *peer.Conn, begin []byte, size, at int, read func(into []byte)) bool {
	return l.node.place(c, begin, size, at, read)
}

// Failed implements peer.Handler.
func (l *link) Failed(name string, class peer.Class, reason error) {
	if class == peer.Message || class == peer.Fragment {
		l.node.failed(name, rail.Class(class-peer.Message), reason)
	}
}

// Sent implements peer.Handler.
func (l *link) Sent(numbers []uint64, err error) { l.node.sent(numbers, err) }

// Restarted implements peer.Handler.
func (l *link) Restarted(name string, before, _ uint64) { l.node.over(name, before, ErrRestarted) }

// Forgotten implements peer.Forgetter.
func (l *link) Forgotten(name string) { l.node.forget(name) }

// Absent implements peer.Absentee.
func (l *link) Absent(c *peer.Conn, _ bool) {
	l.node.over(c.Peer().Name, c.Peer().Incarnation, ErrAbsent)
	if _, is := classOf(c); is { // others are those of other services
		c.Break(ErrAbsent)
	}
}
