package rail

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// Tag distinguishes a peer's messages.
type Tag uint64

// AnyTag is a receive's for a message of whatever tag. No message has it.
const AnyTag = ^Tag(0)

// Status is what came of a request.
type Status struct {
	Tag  Tag // of the message
	Size int // bytes that were received or sent; by Probe: of the whole message
}

// Request is a message, or an access to memory, that is under way. Its buffer must not be
// touched until it is done.
type Request struct {
	over   runner.Event
	peer   *Peer
	status Status
	err    error
	whole  uint64              // bytes of the message that a receive has taken
	isRecv bool                // recv is used, not send
	then   func(Status, error) // of RecvThen; nil: a caller has the request
	send   rail.SendRequest
	recv   rail.RecvRequest
}

// requests are those that no caller has any more, to be used again.
var requests = sync.Pool{New: func() any { return new(Request) }}

// Done returns a channel that is closed when the request is done.
func (r *Request) Done() <-chan struct{} { return r.over.Done() }

// Test reports whether the request is done, and what came of it.
func (r *Request) Test() (s Status, isDone bool, err error) {
	if !r.over.Happened() {
		return Status{}, false, nil
	}
	return r.status, true, r.err
}

// MessageSize returns the bytes of the message that a receive has taken, also of what had no room
// in its buffer, once the receive is done.
func (r *Request) MessageSize() uint64 { return r.whole }

// Wait waits until the request is done. If ctx ends first its error is returned, and the
// request goes on.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	r.await(ctx.Done())
	if !r.over.Happened() {
		return Status{}, fmt.Errorf("rail: waiting for a request: %w", context.Cause(ctx))
	}
	return r.status, r.err
}

// await waits until the request is done, or quit is closed, and receives meanwhile.
func (r *Request) await(quit <-chan struct{}) {
	if !r.over.Happened() {
		r.peer.node.host.drive(&r.over, quit)
		r.over.Await(quit, nil)
	}
}

// Cancel has the request end early, with ErrCanceled, if it can: a receive that has no
// message yet, and a message of which the peer has nothing yet, or nothing but the
// announcement. It does not wait; the request is done as others are.
func (r *Request) Cancel() {
	if !r.over.Happened() {
		r.peer.cancel(r)
	}
}

// finish waits for a request that no caller has seen, and cancels it when ctx ends.
func (r *Request) finish(ctx context.Context) (Status, error) {
	r.await(ctx.Done())
	if !r.over.Happened() {
		r.Cancel()
		r.over.Await(nil, nil)
		if errors.Is(r.err, ErrCanceled) {
			r.err = fmt.Errorf("%w: %w", r.err, context.Cause(ctx))
		}
	}
	status, err := r.status, r.err
	r.Release()
	return status, err
}

// Release gives a request that is done back, for others to come: it must not be used any more.
func (r *Request) Release() {
	if r.over.Renew() {
		r.peer, r.status, r.whole, r.err, r.isRecv, r.then = nil, Status{}, 0, nil, false, nil
		r.send, r.recv = rail.SendRequest{}, rail.RecvRequest{}
		requests.Put(r)
	}
}

// complete ends a request that was not begun.
func (r *Request) complete(s Status, err error) {
	r.status, r.err = s, err
	r.peer.happen(r)
}
