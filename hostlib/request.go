package hostlib

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/reduce"
)

// Transport is how an operation ran.
type Transport uint8

// The ways.
const (
	HostTree Transport = iota // over hosts
	Offload                   // in the switches
	Mixed                     // part of it in the switches, part over hosts
	Hosts                     // by an algorithm of hosts: see OnHosts
)

var transportNames = [...]string{"host-tree", "offload", "mixed", "hosts"}

// String returns "host-tree", "offload", "mixed" or "hosts".
func (w Transport) String() string {
	if int(w) < len(transportNames) {
		return transportNames[w]
	}
	return fmt.Sprintf("transport(%d)", w)
}

// Outcome reports how an operation ran.
type Outcome struct {
	Transport Transport
	Reason    string    // why this way, in words; of each change on the way, if there was one
	Epochs    []uint32  // in which the operation ran; even ones are trees of switches. Not to be changed
	Chunks    int       // packets' worth of vector
	Algorithm Algorithm // of an operation by hosts
	Messages  int       // that this member has sent to others in an operation by hosts,
	Bytes     int       // and their bytes
	Elapsed   time.Duration

	// BlockFloat reports that float32 was summed in block floating point, as the
	// communicator's option of that name allows.
	BlockFloat bool

	// Reproducible reports that floating-point numbers were summed as integers, as the
	// communicator's option of that name has it.
	Reproducible bool

	// Compressed is what packets carried in place of float32, as the communicator's option
	// of that name has it; NoType: nothing else.
	Compressed reduce.Type

	// Stripes report an operation that was cut over the stripes of Stripes how it
	// ran on each, in their order. Epochs are then those of the first stripe.
	Stripes []Outcome

	function reduce.Function // that was reduced by; NoFunction: nothing was
	element  reduce.Type
	trees    [][]manager.TreeReducer // of the trees of switches among Epochs; not to be changed
}

// Request is an operation in flight.
type Request struct {
	over      runner.Event
	operation session.Operation // on its way to the loop
	state
}

// state is what differs from one use of a Request's memory to the next.
type state struct {
	outcome Outcome
	err     error
	begun   core.Time // by the host's clock
	after   func()    // turns the result into what the caller sees
	comm    *Communicator

	collective schedule.Collective // 0: none was started
	position   uint32              // among the operations that the member has called on the communicator
	tag        uint64              // what it is, as members compare it
	onHosts    *hostOperation      // that it is done by; nil: by the communicator's loop
	turn       chan struct{}       // closed when that may begin; nil: at once
	function   reduce.Function     // of what is reduced; NoFunction: nothing is
	element    reduce.Type
	coding     coding
	marks      *[]byte    // temporary memory of a Fixed sum, until it is done
	composite  *composite // if it has pieces, or is one
	chosen     choice     // of its way
	inner      bool       // it is no caller's, and not counted
	outside    bool       // it is not the communicator's loop that ends it
	shared     *processes // that end it; nil: they do not
}

// requests are those that no caller has seen, to be used again: without a state.
var requests = sync.Pool{New: func() any { return new(Request) }}

func newRequest(c *Communicator) *Request {
	r := requests.Get().(*Request)
	r.begun, r.comm = c.host.clock.Now(), c
	return r
}

// elapsed returns the time since the operation was called.
func (r *Request) elapsed() time.Duration { return r.comm.host.clock.Now().Sub(r.begun) }

// Done returns a channel that is closed when the operation is done.
func (r *Request) Done() <-chan struct{} { return r.over.Done() }

// Wait waits for the operation. If ctx ends first its error is returned, and
// the operation goes on: its buffers must not be touched until Done.
func (r *Request) Wait(ctx context.Context) (Outcome, error) {
	r.await(ctx)
	if !r.over.Happened() {
		return Outcome{}, fmt.Errorf("hostlib: waiting for an operation: %w", ctx.Err())
	}
	return r.outcome, r.err
}

// begin has the loop's own goroutine do the operation.
func (r *Request) begin() *Request {
	if r.composite != nil && r.composite.whole == r {
		for _, p := range r.composite.pieces {
			p.begin()
		}
		return r
	}
	if r.onHosts != nil {
		o := r.onHosts
		r.onHosts, o.isAlone = nil, true
		go o.run(context.Background())
		return r
	}
	if r.shared != nil {
		r.shared.hurry()
		return r
	}
	if r.collective != 0 && r.comm.loop != nil && !r.outside {
		r.comm.loop.Wake()
	}
	return r
}

// await waits for the operation or for the end of ctx, and does the loop's work
// meanwhile.
func (r *Request) await(ctx context.Context) {
	if r.over.Happened() {
		return
	}
	if r.composite != nil && r.composite.whole == r {
		r.composite.await(ctx)
		return
	}
	if o := r.onHosts; o != nil { // on this goroutine
		if o.run(ctx) {
			r.onHosts = nil
		}
		return
	}
	if r.shared != nil {
		r.shared.drive(ctx, r)
	}
	if r.outside {
		r.over.Await(ctx.Done(), nil)
		return
	}
	loop := r.comm.loop
	if ctx.Done() != nil {
		if stop := r.comm.watch.over(ctx); stop != nil {
			defer stop()
		} else {
			defer r.comm.watch.leave()
		}
	}
	loop.Drive(&r.over, ctx.Done(), r.comm.isBusy)
	if !r.over.Happened() {
		select { // a loop that has ended fails what is left
		case <-r.Done():
		case <-ctx.Done():
		}
	}
}

// finish waits for the operation. If ctx ends first, it goes on without its caller. Nobody else
// knows r.
func (r *Request) finish(ctx context.Context) (Outcome, error) {
	r.await(ctx)
	if !r.over.Happened() {
		return Outcome{}, &UnfinishedError{Request: r.begin(), Err: context.Cause(ctx)}
	}
	return r.result()
}

// finishOrEnd waits for the operation, and ends the communicator if ctx ends first.
func (r *Request) finishOrEnd(ctx context.Context) (Outcome, error) {
	r.await(ctx)
	if !r.over.Happened() { // whether ctx has ended or not
		r.comm.abort(fmt.Sprintf("it gave up: %v", context.Cause(ctx)))
		<-r.Done()
		if r.err != nil {
			return r.outcome, fmt.Errorf("%w (%w)", r.err, ctx.Err())
		}
	}
	return r.result()
}

// result returns the result of an operation that is done, whose request nobody else knows.
func (r *Request) result() (Outcome, error) {
	outcome, err := r.outcome, r.err
	if r.composite == nil && err == nil && r.over.Renew() {
		r.state = state{}
		requests.Put(r)
	}
	return outcome, err
}

// complete ends the request well.
func (r *Request) complete(now core.Time, done *session.Completion, epochs []uint32, reason string, trees [][]manager.TreeReducer) {
	o := &r.outcome // which is empty
	o.Transport, o.Reason, o.Epochs, o.Chunks, o.Elapsed = Mixed, reason, epochs, int(done.Chunks), now.Sub(r.begun)
	o.function, o.element, o.trees = r.function, r.element, trees
	r.coding.report(o)
	switch done.OffloadDone {
	case 0:
		o.Transport = HostTree
	case done.Chunks:
		o.Transport = Offload
	}
	r.succeed()
}

// succeed ends the request with its outcome.
func (r *Request) succeed() {
	if r.isPiece() {
		r.composite.finished(r)
		return
	}
	if !r.inner {
		r.comm.host.counts.completed(r.collective, &r.outcome)
	}
	if r.after != nil {
		r.after()
	}
	giveBack(r.marks)
	r.over.Happen()
}

// fail ends the request with an error.
func (r *Request) fail(err error) {
	r.err = err
	if r.isPiece() {
		r.composite.finished(r)
		return
	}
	if !r.inner {
		r.comm.host.counts.failed.Add(1)
	}
	r.over.Happen()
}

func (r *Request) isPiece() bool { return r.composite != nil && r.composite.whole != r }
