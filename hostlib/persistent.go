package hostlib

import (
	"context"
	"fmt"
	"sync"
)

// Persistent is an operation on the same buffers that is started again and again.
type Persistent struct {
	start func() *Request

	mu   sync.Mutex
	last *Request // nil: none was started
}

// Prepare returns an operation that start starts, by one of the Start functions:
//
//	step := hostlib.Prepare(func() *hostlib.Request {
//		return hostlib.StartAllreduce(comm, reduce.Sum, gradients, gradients)
//	})
//
// Members need not all use it.
func Prepare(start func() *Request) *Persistent { return &Persistent{start: start} }

// Start starts the operation once more. While it is under way, the error wraps ErrArgument: its
// buffers are not free. Where the communicator has ended, the error is why.
func (p *Persistent) Start() (*Request, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && !p.last.over.Happened() {
		if err := p.last.comm.Err(); err != nil { // by which what is under way fails
			return nil, err
		}
		return nil, fmt.Errorf("%w: the operation is under way", ErrArgument)
	}
	p.last = p.start()
	return p.last, nil
}

// Run starts the operation and waits for it. If ctx ends first its error is returned, and the
// operation goes on.
func (p *Persistent) Run(ctx context.Context) (Outcome, error) {
	r, err := p.Start()
	if err != nil {
		return Outcome{}, err
	}
	return r.Wait(ctx)
}
