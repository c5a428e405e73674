package scoll

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/rail"
)

// ErrBulk is wrapped by the errors of the node's own Bulk: memory that is empty, or exposed
// under this key already; less room than is to be pulled.
var ErrBulk = errors.New("scoll: invalid bulk memory")

// railBulk is the node's own Bulk: other nodes read what it exposes over all rails.
type railBulk struct {
	node  *rail.Node
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	pulls sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	exposed map[uint64]*rail.Memory
}

func newRailBulk(node *rail.Node) *railBulk {
	b := &railBulk{node: node, exposed: map[uint64]*rail.Memory{}}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// keyOf returns a key as package rail has it. Those of memory that others register have
// random bytes in place of these.
func keyOf(key uint64) (k rail.Key) {
	binary.BigEndian.PutUint64(k[:], key)
	copy(k[8:], "scoll:io")
	return k
}

// Expose implements Bulk.
func (b *railBulk) Expose(key uint64, to []string, memory [][]byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	m, err := b.node.RegisterFor(to, keyOf(key), rail.Read, memory...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBulk, err)
	}
	b.exposed[key] = m
	return nil
}

// Revoke implements Bulk.
func (b *railBulk) Revoke(key uint64) {
	b.mu.Lock()
	m := b.exposed[key]
	delete(b.exposed, key)
	b.mu.Unlock()
	if m != nil {
		m.Revoke()
	}
}

// Pull implements Bulk.
func (b *railBulk) Pull(ctx context.Context, node string, key, length uint64, into [][]byte) error {
	if size(into) < length {
		return fmt.Errorf("%w: room for %d bytes of %d", ErrBulk, size(into), length)
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.pulls.Add(1)
	b.mu.Unlock()
	defer b.pulls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.ctx, func() { cancel(ErrClosed) })()
	if err := b.pull(ctx, node, key, cut(into, length)); err != nil {
		return fmt.Errorf("scoll: pulling %d bytes from %s: %w", length, node, err)
	}
	return nil
}

// pull reads all of the vectors at once.
func (b *railBulk) pull(ctx context.Context, node string, key uint64, into [][]byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	peer, err := b.node.Peer(node)
	if err != nil {
		return err
	}
	var requests []*rail.Request
	offset := uint64(0)
	for _, v := range into {
		if len(v) > 0 {
			requests = append(requests, peer.StartGet(keyOf(key), offset, v))
			offset += uint64(len(v))
		}
	}
	for _, r := range requests {
		if _, failed := r.Wait(ctx); failed != nil && err == nil {
			err = failed
			for _, other := range requests {
				other.Cancel() // at once: what comes for it is dropped
			}
		}
	}
	for _, r := range requests {
		_, _ = r.Wait(context.Background())
	}
	return err
}

// Close implements Bulk.
func (b *railBulk) Close() error {
	b.mu.Lock()
	exposed := b.exposed
	b.closed, b.exposed = true, nil
	b.mu.Unlock()
	for _, m := range exposed {
		m.Revoke()
	}
	b.stop()
	b.pulls.Wait()
	return nil
}
