package runner

import (
	"context"
	"fmt"
	"sync"
)

// Desk hands out replies by the numbers of their requests. The zero Desk is ready.
type Desk[R any] struct {
	mu    sync.Mutex
	last  uint64
	takes map[uint64]func(R)
}

// Await returns the number of a request, with whose reply take is called, once.
func (d *Desk[R]) Await(take func(R)) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.takes == nil {
		d.takes = map[uint64]func(R){}
	}
	d.last++
	d.takes[d.last] = take
	return d.last
}

// take returns who waits for a reply, and nobody does any more.
func (d *Desk[R]) take(req uint64) func(R) {
	d.mu.Lock()
	defer d.mu.Unlock()
	take := d.takes[req]
	delete(d.takes, req)
	return take
}

// Forget drops a request.
func (d *Desk[R]) Forget(req uint64) { d.take(req) }

// Answer gives a reply to who waits for it.
func (d *Desk[R]) Answer(req uint64, r R) {
	if take := d.take(req); take != nil {
		take(r)
	}
}

// Ask has post send a request, and waits for the reply. It is ErrClosed once gone is
// closed.
func (d *Desk[R]) Ask(ctx context.Context, gone <-chan struct{}, post func(req uint64) error) (r R, err error) {
	waits := make(chan R, 1)
	req := d.Await(func(r R) { waits <- r })
	defer d.Forget(req)
	if err := post(req); err != nil {
		return r, err
	}
	select {
	case r = <-waits:
		return r, nil
	case <-ctx.Done():
		return r, fmt.Errorf("waiting for the reply: %w", ctx.Err())
	case <-gone:
		return r, ErrClosed
	}
}
