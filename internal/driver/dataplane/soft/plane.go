package soft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("soft: invalid configuration")

// DefaultReceiveBuffer is the receive buffer asked for each tree's socket, in
// bytes, when it is opened. It is memory only while packets wait in it. Epochs
// whose windows need more enlarge it.
const DefaultReceiveBuffer = 4 << 20

// Config reports where trees are, and for whom.
type Config struct {
	Switch string // name of the switch: it distinguishes its faults from those of others
	// Data is the address of the trees' sockets, which take free ports. The
	// unspecified one takes packets at all addresses of the switch.
	Data          netip.Addr
	ReceiveBuffer int                // of each socket, in bytes; 0: DefaultReceiveBuffer
	Chunk         int                // largest payload of a packet, in bytes
	Without       transport.Features // that the sockets are to do without
	Faults        transport.Faults   // each socket has a seed of its own
	Accelerator   Accelerator        // nil: the agent reduces all by itself; the plane closes it
	Clock         runner.Clock
	Log           *slog.Logger
	Notify        func(dataplane.Event)
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case !c.Data.IsValid() || c.Data.IsMulticast():
		return fmt.Errorf("%w: data address %q is none that packets can be sent to", ErrConfig, c.Data)
	case c.ReceiveBuffer < 0 || c.Chunk < 0:
		return fmt.Errorf("%w: receive buffer of %d bytes, chunks of %d", ErrConfig, c.ReceiveBuffer, c.Chunk)
	}
	if err := (transport.Config{Without: c.Without}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := c.Faults.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// Plane is the data plane of a switch.
type Plane struct {
	cfg Config

	mu    sync.Mutex
	trees map[uint64]*tree // by socket
	past  rpc.TreeCounters // of trees that were shut
}

var _ dataplane.Plane = (*Plane)(nil)

// New returns a plane without trees. The caller owns it and must Close it.
func New(c Config) (*Plane, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.ReceiveBuffer == 0 {
		c.ReceiveBuffer = DefaultReceiveBuffer
	}
	return &Plane{cfg: c, trees: map[uint64]*tree{}}, nil
}

// Open implements dataplane.Plane.
func (p *Plane) Open(socket uint64, group uint32) {
	t, err := p.newTree(socket, group)
	if err != nil {
		p.cfg.Notify(dataplane.Opened{Socket: socket, Err: err})
		return
	}
	p.mu.Lock()
	p.trees[socket] = t
	p.mu.Unlock()
	p.cfg.Notify(dataplane.Opened{Socket: socket, Addr: t.conn.LocalAddr()})
}

// Install implements dataplane.Plane.
func (p *Plane) Install(socket uint64, c *switchreduce.Config) {
	t := p.find(socket)
	if t == nil {
		p.cfg.Notify(dataplane.Installed{Socket: socket, Epoch: c.Epoch, Err: errors.New("soft: the tree is not open")})
		return
	}
	p.mu.Lock()
	t.epochs = append(t.epochs, c.Epoch)
	p.mu.Unlock()
	t.enlarge(c)
	if err := t.protect(c); err != nil {
		p.forget(t, c.Epoch)
		p.cfg.Notify(dataplane.Installed{Socket: socket, Epoch: c.Epoch, Err: err})
		return
	}
	c, reducer := t.accelerate(c)
	// A loop takes what it gets before packets that came later. Its error is
	// that the tree has failed, which its watcher reports, too, but it may have
	// done so before the epoch was there.
	err := t.loop.Post(context.Background(), switchreduce.Input{Kind: switchreduce.Install, Config: c})
	p.cfg.Notify(dataplane.Installed{Socket: socket, Epoch: c.Epoch, Err: err, Reducer: reducer})
}

// Retire implements dataplane.Plane.
func (p *Plane) Retire(socket uint64, epoch uint32) {
	t := p.find(socket)
	if t == nil {
		return
	}
	p.forget(t, epoch) // its keys go with the step that takes this: see send
	if err := t.loop.Post(context.Background(), switchreduce.Input{Kind: switchreduce.Retire, Epoch: epoch}); err != nil {
		p.cfg.Log.Debug("retiring an epoch", slog.Any("error", err)) // the tree has failed already
	}
}

// Shut implements dataplane.Plane.
func (p *Plane) Shut(socket uint64) {
	t := p.find(socket)
	if t == nil {
		return
	}
	t.end()
	last := t.core.Counters() // nobody else touches the core any more
	counted := t.notify(&last, nil)
	if a := p.cfg.Accelerator; a != nil {
		a.Shut(t.port)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.trees, socket)
	dataplane.Add(&p.past, &counted)
}

// Close implements dataplane.Plane.
func (p *Plane) Close() {
	for _, t := range p.list() {
		t.end()
	}
	if a := p.cfg.Accelerator; a != nil {
		a.Close()
	}
}

func (p *Plane) find(socket uint64) *tree {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trees[socket]
}

func (p *Plane) forget(t *tree, epoch uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.epochs = slices.DeleteFunc(t.epochs, func(e uint32) bool { return e == epoch })
}

// list returns the open trees by group and tree.
func (p *Plane) list() []*tree {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sorted()
}

func (p *Plane) sorted() []*tree {
	var all []*tree
	for _, t := range p.trees {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *tree) int {
		return cmp.Compare(a.group, b.group)
	})
	return all
}

// Census implements dataplane.Plane.
func (p *Plane) Census(ctx context.Context) (dataplane.Census, error) {
	var c dataplane.Census
	p.mu.Lock() // a tree is open or past, never both
	trees := p.sorted()
	dataplane.Add(&c.Past, &p.past)
	p.mu.Unlock()
	for _, t := range trees {
		counted, epochs, err := t.counters(ctx)
		if err != nil {
			return dataplane.Census{}, err
		}
		c.Trees = append(c.Trees, counted)
		for _, e := range epochs {
			c.Epochs = append(c.Epochs, rpc.EpochTraffic{Group: t.group, EpochTraffic: e})
		}
	}
	return c, nil
}
