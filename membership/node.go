package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Node is this process's place in a zone.
type Node struct {
	cfg         Config
	log         *slog.Logger
	id          gossip.ID
	addr        netip.AddrPort
	incarnation uint64

	listener net.Listener
	socket   Datagrams
	loop     *nodeLoop
	step     *stepper
	buffers  buffers
	counts   counts

	ctx   context.Context // ends with the node: dials, accepts
	stop  context.CancelFunc
	tasks sync.WaitGroup // accept, receive, dials, streams

	once sync.Once
	over chan struct{} // closed when the node is to end
	why  error         // of that; nil: it was closed or has left
	gone bool          // in order: what is queued is still sent
	done chan struct{} // closed when it has ended

	mu       sync.Mutex
	ended    bool
	watchers map[*Watcher]struct{}
	below    map[*Watcher]struct{} // of base zones' notices
	readers  map[*AttributeWatcher]struct{}
	strays   map[net.Conn]struct{} // connections on their way to the loop
}

// Join starts a node. It comes back at once: others are there when notices, or
// View, report them. The caller owns the node, and must Leave or Close it.
func Join(ctx context.Context, c Config) (*Node, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	seeds, supervisors, err := c.locate(ctx)
	if err != nil {
		return nil, err
	}
	listener, socket, err := c.Network.Listen(ctx, c.Listen)
	if err != nil {
		return nil, fmt.Errorf("membership: %s: listening at %s: %w", c.Name, c.Listen, err)
	}
	// What cannot listen has not started, and leaves the file as it is.
	incarnation, again, err := nextIncarnation(c.State, time.Now())
	if err != nil {
		return nil, errors.Join(err, listener.Close(), socket.Close())
	}
	if again && c.Timing.Stealth == 0 {
		c.Timing.Stealth = 1
	}
	n := &Node{
		cfg: c, incarnation: incarnation, listener: listener, socket: socket,
		over: make(chan struct{}), done: make(chan struct{}),
		watchers: map[*Watcher]struct{}{}, below: map[*Watcher]struct{}{}, readers: map[*AttributeWatcher]struct{}{},
		strays: map[net.Conn]struct{}{},
	}
	n.ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.begin(ctx, seeds, supervisors); err != nil {
		n.stop()
		return nil, errors.Join(err, listener.Close(), socket.Close())
	}
	n.log.Info("joined", slog.Any("address", n.addr), slog.Uint64("incarnation", incarnation), slog.Int("bootstrap", len(seeds)))
	return n, nil
}

// begin gives the node its identity and its core, and starts what runs.
func (n *Node) begin(ctx context.Context, seeds, supervisors []netip.AddrPort) (err error) {
	if n.addr, err = advertised(ctx, &n.cfg, n.listener.Addr(), slices.Concat(seeds, supervisors)); err != nil {
		return err
	}
	n.log = n.cfg.Log.With(slog.String("node", n.cfg.Name), slog.Uint64("zone", uint64(n.cfg.Zone)))
	if n.id, err = gossip.MakeID(n.cfg.Name, n.addr); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	clock := runner.NewClock()
	if n.step, err = newStepper(n, clock.Now(), seeds, supervisors); err != nil {
		return err
	}
	if n.loop, err = startLoop(n, clock); err != nil {
		return err
	}
	n.tasks.Go(n.accept)
	n.tasks.Go(n.receive)
	go n.keep()
	return nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.cfg.Name }

// Addr returns the address by which others know the node.
func (n *Node) Addr() netip.AddrPort { return n.addr }

// Incarnation returns the number of this life.
func (n *Node) Incarnation() uint64 { return n.incarnation }

// Done is closed when the node has ended.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns, after Done, why the node ended by itself; nil: it was closed, or has left.
func (n *Node) Err() error {
	<-n.done
	return n.why
}

// Leave notifies the neighbours, and so all, that the node goes, with an exit code
// for them to see, and ends it. The error is that of ctx: then the node has ended
// without a word, or with one that not all neighbours have got.
func (n *Node) Leave(ctx context.Context, exit uint8) error {
	switch err := n.loop.Post(ctx, item{kind: departs, exit: exit}); {
	case errors.Is(err, runner.ErrClosed):
		<-n.done
		return n.refused()
	case err != nil:
		n.Close()
		return fmt.Errorf("membership: leaving: %w", err)
	}
	select {
	case <-n.done:
		return n.why
	case <-ctx.Done():
		n.Close()
		return fmt.Errorf("membership: leaving: %w", ctx.Err())
	}
}

// Close ends the node at once, as the end of its process would: the others have
// to find out.
func (n *Node) Close() {
	n.end(nil, false)
	<-n.done
}

// end has the node end. Gone says that it has left in order.
func (n *Node) end(why error, gone bool) {
	n.once.Do(func() {
		n.why, n.gone = why, gone
		close(n.over)
	})
}

// keep waits for the node's end, and closes what it runs on.
func (n *Node) keep() {
	select {
	case <-n.over:
	case <-n.loop.Done():
		n.end(n.loop.Err(), false)
	}
	n.stop()
	err := errors.Join(n.listener.Close(), n.socket.Close())
	n.loop.Close()
	for _, s := range n.step.all() {
		if n.gone {
			s.shut()
		} else {
			s.cut()
		}
	}
	n.tasks.Wait()
	n.closeStrays()
	n.endWatchers()
	if err != nil {
		n.log.Warn("closing the sockets", slog.Any("error", err))
	}
	n.log.Info("ended", slog.Bool("left", n.gone), slog.Any("error", n.why))
	close(n.done)
}

// endWatchers ends those who read notices.
func (n *Node) endWatchers() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	for w := range n.watchers {
		w.news.end(n.refused())
	}
	for w := range n.below {
		w.news.end(n.refused())
	}
	for w := range n.readers {
		w.news.end(n.refused())
	}
}

// refused is the error of what is asked of a node that has ended, or ends.
func (n *Node) refused() error {
	select {
	case <-n.over:
		if n.why != nil {
			return fmt.Errorf("%w: %w", ErrClosed, n.why)
		}
	default:
	}
	return ErrClosed
}

// failing logs what did not work and may work later, and waits a little.
func (n *Node) failing(what string, err error) {
	n.log.Warn("will try again", slog.String("what", what), slog.Any("error", err))
	select {
	case <-n.ctx.Done():
	case <-time.After(50 * time.Millisecond): // out of descriptors, say
	}
}

// ask runs f between two steps.
func (n *Node) ask(ctx context.Context, f func(s *stepper)) error {
	err := n.loop.Do(ctx, func() { f(n.step) })
	if errors.Is(err, runner.ErrClosed) {
		return n.refused()
	}
	return err
}
