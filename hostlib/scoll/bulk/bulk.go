package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Errors that are wrapped by those of Expose and Pull.
var (
	ErrKey     = errors.New("bulk: memory is exposed under this key already, or it is empty")
	ErrRefused = errors.New("bulk: no such memory is exposed there")
	ErrRoom    = errors.New("bulk: less room than is to be pulled")
	ErrClosed  = errors.New("bulk: closed")
)

// Dial connects to a node for pulls; the connection is the caller's.
type Dial func(ctx context.Context, node string) (net.Conn, error)

// Config is how a Bulk is made. Dial has to be set.
type Config struct {
	Dial    Dial
	Stall   time.Duration // a pull on which nothing moves for so long has failed; 5 s if 0
	Readers int           // pulls that are served at once; 16 if 0
	Pulls   int           // pulls of this node's own at once; 16 if 0
	Idle    int           // connections to a node that are kept for the next pull; 2 if 0
	IdleAll int           // the same to all nodes together, of which the one that is idle longest goes first; 64 if 0
}

func (c Config) filled() Config {
	c.Stall = cmp.Or(max(c.Stall, 0), 5*time.Second)
	c.Readers, c.Pulls = cmp.Or(max(c.Readers, 0), 16), cmp.Or(max(c.Pulls, 0), 16)
	c.Idle, c.IdleAll = cmp.Or(max(c.Idle, 0), 2), cmp.Or(max(c.IdleAll, 0), 64)
	return c
}

// Bulk is one node's exposed memory, and its pulls. Its methods may be called
// from any goroutine.
type Bulk struct {
	cfg    Config
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	tasks  sync.WaitGroup
	serves chan struct{} // holds an element for each pull that is served
	pulls  chan struct{} // and for each of this node's own

	mu      sync.Mutex
	counts  Counters
	closed  bool
	exposed map[uint64]*exposure
	idle    []idle // the longest so first
}

// Counters count pulls.
type Counters struct {
	Served  uint64 // to their end
	Refused uint64 // whose key or length was not that of exposed memory
	Cut     uint64 // begun, and not ended: memory was revoked, or the reader stalled or went
	Pulled  uint64 // by this node, to their end
	Failed  uint64 // by this node
	Bytes   uint64 // that were sent in answer to pulls
}

// New returns a Bulk without memory.
func New(c Config) *Bulk {
	c = c.filled()
	b := &Bulk{
		cfg: c, serves: make(chan struct{}, c.Readers), pulls: make(chan struct{}, c.Pulls),
		exposed: map[uint64]*exposure{},
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// Counters returns what was counted.
func (b *Bulk) Counters() Counters {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

// count adds to a counter.
func (b *Bulk) count(counter *uint64, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*counter += uint64(n)
}

// Expose lets other nodes read memory, the vectors one behind the other, under
// a key until it is revoked. It fails with ErrKey or ErrClosed.
func (b *Bulk) Expose(key uint64, memory [][]byte) error {
	e := &exposure{memory: memory, size: size(memory), conns: map[net.Conn]struct{}{}}
	e.left = sync.NewCond(&e.mu)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.exposed[key] != nil || e.size == 0:
		return fmt.Errorf("%w: %d bytes", ErrKey, e.size)
	}
	b.exposed[key] = e
	return nil
}

// Revoke ends that. When it has returned nobody reads the memory any more; it
// does not wait for the network. Keys that are not exposed are ignored.
func (b *Bulk) Revoke(key uint64) {
	b.mu.Lock()
	e := b.exposed[key]
	delete(b.exposed, key)
	b.mu.Unlock()
	if e != nil {
		e.revoke()
	}
}

// Close revokes all memory, ends all pulls, and waits for them.
func (b *Bulk) Close() error {
	b.mu.Lock()
	b.closed = true
	exposed, unused := b.exposed, b.idle
	b.exposed, b.idle = nil, nil
	b.mu.Unlock()
	b.stop()
	for _, e := range exposed {
		e.revoke()
	}
	for _, i := range unused {
		i.conn.Close()
	}
	b.tasks.Wait()
	return nil
}

// begin notes a task that Close waits for, and returns a context that ends with
// it; it reports false after Close.
func (b *Bulk) begin(ctx context.Context) (_ context.Context, end func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, false
	}
	b.tasks.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	undo := context.AfterFunc(b.ctx, cancel)
	return ctx, func() { undo(); cancel(); b.tasks.Done() }, true
}

// size returns the bytes of vectors.
func size(vectors [][]byte) uint64 {
	n := uint64(0)
	for _, v := range vectors {
		n += uint64(len(v))
	}
	return n
}
