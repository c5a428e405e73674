package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Node is this process's place in a zone.
type Node struct {
	cfg         *Config // behind a pointer, for it has keys: see wire.Secret
	log         *slog.Logger
	id          gossip.ID
	addr        netip.AddrPort
	incarnation uint64

	host   *peer.Host // of the process
	isOwn  bool       // it was made for this node alone
	source *pki.Source
	shared bool // source is of the keys

	identity *identity // nil: there are no certificates, and nothing is proven
	socket   Datagrams
	loop     *nodeLoop
	step     *stepper
	buffers  buffers
	counts   counts

	ctx   context.Context // ends with the node: receive, calls
	stop  context.CancelFunc
	tasks sync.WaitGroup // receive, calls
	ready chan struct{}  // closed when the loop runs

	once    sync.Once
	over    chan struct{}   // closed when the node is to end
	why     error           // of that; nil: it was closed or has left
	gone    bool            // in order: what is queued is still sent
	drained chan struct{}   // closed when the others have got it
	lingers context.Context // while that is waited for
	hurry   func()          // ends it
	silent  chan struct{}   // closed when no notice comes any more
	done    chan struct{}   // closed when it has ended

	mu       sync.Mutex
	watchers map[*Watcher]struct{}
	readers  map[*AttributeWatcher]struct{}
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

// Leave announces to the neighbours, and so to all, that the node leaves, with an exit
// code, and ends it. The error is that of ctx: then the node has ended, and some or all
// neighbours have no announcement.
func (n *Node) Leave(ctx context.Context, exit uint8) error {
	switch err := n.loop.Post(ctx, item{kind: departs, exit: exit}); {
	case errors.Is(err, runner.ErrClosed):
		<-n.done
		return n.refused()
	case err != nil:
		n.end(nil, false)
		<-n.done
		return fmt.Errorf("membership: leaving: %w", err)
	}
	select {
	case <-n.done:
		return n.why
	case <-ctx.Done():
		n.end(nil, false)
		n.hurry()
		<-n.done
		return fmt.Errorf("membership: leaving: %w", ctx.Err())
	}
}

// Close ends the node at once, like the end of its process: the others must detect it.
// The error is that of ctx; the node then ends in the background.
func (n *Node) Close(ctx context.Context) error {
	n.end(nil, false)
	select {
	case <-n.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("membership: closing: %w", ctx.Err())
	}
}

// end has the node end. Gone says that it has left in order.
func (n *Node) end(why error, gone bool) {
	n.once.Do(func() {
		n.why, n.gone = why, gone
		close(n.over)
	})
}

// leaveWithin bounds how long a node that has left waits for others to know it.
const leaveWithin = time.Second

// keep waits for the node's end, and closes what it runs on.
func (n *Node) keep() {
	select {
	case <-n.over:
	case <-n.loop.Done():
		n.end(n.loop.Err(), false)
	}
	if n.gone {
		lingers, cancel := context.WithTimeout(n.lingers, leaveWithin)
		select {
		case <-n.drained:
		case <-lingers.Done():
		}
		cancel()
	}
	n.stop()
	n.hurry()
	err := n.socket.Close()
	n.loop.Close()
	n.host.Unregister(peer.Membership)
	n.step.links.release()
	if n.isOwn {
		err = errors.Join(err, n.host.Close())
	}
	n.tasks.Wait()
	close(n.silent)
	if err != nil {
		n.log.Warn("closing the sockets", slog.Any("error", err))
	}
	n.log.Info("ended", slog.Bool("left", n.gone), slog.Any("error", n.why))
	close(n.done)
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
