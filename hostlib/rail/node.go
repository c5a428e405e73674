package rail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// Node is this process among those that exchange messages.
type Node struct {
	cfg    Config
	log    *slog.Logger
	clock  runner.Clock
	host   connections
	memory regions
	detach func()

	closing sync.Once
	conns   sync.Map      // conn by its key
	epoch   atomic.Uint64 // the last of a session

	mu      sync.Mutex // never taken with a peer's lock held
	closed  bool
	spaces  sync.Map // ids of those that are open
	peers   map[string]*Peer
	past    Counters                // of peers that are forgotten
	free    []uint32                // indexes of no peer
	indexed atomic.Pointer[[]*Peer] // by index; extended, and otherwise replaced
}

// connections are what a node needs of its host: a *peer.Host, or a test's.
type connections interface {
	Name() string
	// place says where a path lies.
	place(path) place
	// call has a connection of the class be made, if there is none.
	call(peer string, class rail.Class)
	// patience is for how long a peer may be away before it is lost.
	patience() time.Duration
	// drive has the caller receive until it has happened, quit is closed, or it does not matter who
	// receives; wake ends that.
	drive(it *runner.Event, quit <-chan struct{})
	wake(it *runner.Event)
	// leave ends what is handed to the node. All that it has lent is its own again.
	leave()
}

func newNode(host connections, cfg Config, log *slog.Logger) *Node {
	return &Node{cfg: cfg.filled(), log: log, clock: runner.NewClock(), host: host, peers: map[string]*Peer{}}
}

// Name returns the node's name, which is its host's.
func (n *Node) Name() string { return n.host.Name() }

// Peer returns another host by its name, whether it can be reached or not. The errors are
// ErrArgument and ErrClosed.
func (n *Node) Peer(name string) (*Peer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.peer(name)
	if err == nil {
		p.isHeld = true // it stays, though its host is forgotten
	}
	return p, err
}

// peer returns a peer. The caller holds the lock.
func (n *Node) peer(name string) (*Peer, error) {
	if name == "" || len(name) > 255 || name == n.Name() {
		return nil, fmt.Errorf("%w: %q is no other host of %s", ErrArgument, name, n.Name())
	}
	if n.closed {
		return nil, ErrClosed
	}
	p := n.peers[name]
	if p == nil {
		var err error
		if p, err = newPeer(n, name); err != nil {
			return nil, err
		}
		n.peers[name] = p
		n.number(p)
	}
	return p, nil
}

// number gives a peer its index. The caller holds the lock.
func (n *Node) number(p *Peer) {
	var all []*Peer
	if old := n.indexed.Load(); old != nil {
		all = *old
	}
	if k := len(n.free); k > 0 {
		p.index, n.free = n.free[k-1], n.free[:k-1]
		all = slices.Clone(all)
		all[p.index] = p
	} else {
		p.index = uint32(len(all))
		all = append(all, p)
	}
	n.indexed.Store(&all)
}

// of returns the peer that a frame was sent to.
func (n *Node) of(number uint64) *Peer { return (*n.indexed.Load())[number>>32-1] }

// forget drops a peer of which the host knows nothing any more, if nobody has use for it.
func (n *Node) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[name]; p != nil {
		n.drop(p)
	}
}

// drop drops a peer that nobody has use for. The caller holds the lock.
func (n *Node) drop(p *Peer) {
	if p.isHeld || p.spaces > 0 || n.peers[p.name] != p || !p.isIdle() {
		return
	}
	n.past.add(p)
	delete(n.peers, p.name)
	all := slices.Clone(*n.indexed.Load())
	all[p.index] = nil
	n.indexed.Store(&all)
	n.free = append(n.free, p.index)
}

// all returns the peers.
func (n *Node) all() []*Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.peers))
}

// Close fails all requests that are under way with ErrClosed, and leaves. When it has
// returned, all buffers are the callers' again.
func (n *Node) Close(context.Context) error {
	n.closing.Do(func() {
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		for _, p := range n.all() {
			p.end(ErrClosed)
		}
		n.host.leave()
		for _, p := range n.all() { // nothing of what came meanwhile stays
			p.end(ErrClosed)
		}
		n.memory.close()
		if n.detach != nil {
			n.detach()
		}
	})
	return nil
}

// mapped returns the error of a request as one of this package's, which names the peer.
func (p *Peer) mapped(err error) error {
	for _, m := range [...][2]error{
		{rail.ErrTruncated, ErrTruncated}, {rail.ErrCancelled, ErrCanceled}, {rail.ErrWithdrawn, ErrWithdrawn}, {rail.ErrRegion, ErrAccess},
	} {
		if errors.Is(err, m[0]) {
			return fmt.Errorf("%w: peer %s", m[1], p.name)
		}
	}
	return err
}
