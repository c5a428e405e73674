package hostlib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// hostCall is an operation that hosts carry out by an algorithm.
type hostCall struct {
	schedule.Call
	operation
	element uint8
	in, out [][]byte     // pieces
	after   []func()     // when it is done
	why     string       // the communicator's tree does not carry it; "": nobody has asked for that
	fixed   reduce.Fixed // by which it sums integers, and Width is theirs
}

// hostOperation carries out the schedule of one.
type hostOperation struct {
	hostCall
	request   *Request
	comm      *Communicator
	algorithm schedule.Algorithm
	tag       uint64
	schedule  schedule.Schedule
	work      schedule.Run
	temp      *[]byte
	sum       *fixedSum  // nil: it is no Reproducible one
	past      int        // rounds that are done
	isBegun   bool       // the next one is
	transfers []transfer // of that
	waits     int        // for this one of them
	isAlone   bool       // it runs on a goroutine of its own
	messages  int
	bytes     int
}

// transfer is a message under way.
type transfer struct {
	request *rail.Request
	to      *rail.Peer
	schedule.Transfer
	isRecv bool
}

// startOnHosts returns the request of a call that hosts carry out. It is to be begun, or awaited.
func (c *Communicator) startOnHosts(k *hostCall, a schedule.Algorithm, chosen choice) *Request {
	r := newRequest(c)
	r.chosen = chosen
	r.collective, r.function, r.outside = k.Collective, k.function, true
	if err := k.Validate(); err != nil {
		r.fail(fmt.Errorf("%w: %w", ErrArgument, err))
		return r
	}
	s, err := schedule.Make(&k.Call, a)
	if err != nil {
		r.fail(fmt.Errorf("%w: %w", ErrArgument, err))
		return r
	}
	var sum *fixedSum
	if k.fixed.IsSet() {
		r.coding.reproducible = true
		sum = c.newFixedSum(k)
	}
	if err := c.enter(r, func(serial uint16) uint64 { return k.Tag(serial, k.code, k.element) }); err != nil {
		r.fail(err)
		return r
	}
	r.onHosts = &hostOperation{
		hostCall: *k, request: r, comm: c, algorithm: a, tag: r.tag, schedule: s,
		work: schedule.Run{Call: k.Call, In: k.in, Out: k.out, Tag: r.tag, Reduce: k.kernel},
	}
	if sum != nil {
		sum.agree(r.onHosts)
	}
	return r
}

// temps are temporary memory of operations, by the power of two of their size.
var temps [48]sync.Pool

func sizeClass(size int) (class int) {
	for 1<<class < size {
		class++
	}
	return class
}

func tempOf(size int) *[]byte {
	if size == 0 {
		return nil
	}
	class := sizeClass(size)
	if b, ok := temps[class].Get().(*[]byte); ok {
		return b
	}
	b := alignedMemory(1 << class)
	return &b
}

// giveBack lets temporary memory be used again; nil: there is none.
func giveBack(temp *[]byte) {
	if temp != nil {
		temps[sizeClass(len(*temp))].Put(temp)
	}
}

// callAll calls those that are not nil.
func callAll(all []func()) {
	for _, f := range all {
		if f != nil {
			f()
		}
	}
}

// run carries the operation on, until it is done or ctx ends: then it reports false, and can be
// run again, on another goroutine. A schedule is iterated anew then: a coroutine (iter.Pull) could
// not change between goroutines that are locked to threads and others.
func (o *hostOperation) run(ctx context.Context) bool {
	if isOver, err := o.comm.awaitTurn(ctx, o.request); !isOver {
		return false
	} else if err != nil {
		o.done(err)
		return true
	}
	if o.temp == nil {
		if o.temp = tempOf(o.schedule.Temp); o.temp != nil {
			o.work.Temp = *o.temp
		}
	}
	skip := o.past
	for r := range o.schedule.Rounds {
		if skip > 0 {
			skip--
			continue
		}
		if !o.isBegun && !o.begin(r) {
			return true
		}
		for ; o.waits < len(o.transfers); o.waits++ {
			if isOver, err := o.await(ctx, &o.transfers[o.waits]); !isOver {
				return false
			} else if err != nil {
				o.abandon(o.transfers[o.waits:])
				o.done(err)
				return true
			}
			o.transfers[o.waits].request.Release()
		}
		for i := range r.Locals {
			if !o.compute(&r.Locals[i]) {
				return true
			}
		}
		clear(o.transfers)
		o.past, o.isBegun, o.transfers, o.waits = o.past+1, false, o.transfers[:0], 0
	}
	if o.sum != nil && o.sum.next(o) {
		return o.run(ctx)
	}
	o.done(nil)
	return true
}

// begin starts the transfers of a round. It reports false where the operation has failed.
func (o *hostOperation) begin(r *schedule.Round) bool {
	o.isBegun = true
	for i, of := range [...][]schedule.Transfer{r.Recvs, r.Sends} {
		for _, t := range of {
			p, err := o.comm.peer(t.Peer)
			if err != nil {
				o.abandon(o.transfers)
				o.done(fmt.Errorf("hostlib: messages between members: %w", err))
				return false
			}
			x := transfer{to: p, Transfer: t, isRecv: i == 0}
			o.start(&x)
			o.transfers = append(o.transfers, x)
		}
	}
	return true
}

func (o *hostOperation) start(t *transfer) {
	if space := o.comm.messaging.calls; t.isRecv {
		t.request = space.StartRecv(t.to, rail.Tag(o.tag&schedule.TagSerial), rail.Tag(^uint64(schedule.TagSerial)), o.work.At(t.Part))
	} else {
		t.request = space.StartBuffered(t.to, rail.Tag(o.tag), o.work.At(t.Part))
		o.messages++
		o.bytes += t.Size
	}
}

// await waits for a transfer, and reports false where ctx has ended first.
func (o *hostOperation) await(ctx context.Context, t *transfer) (isOver bool, err error) {
	c := o.comm
	for {
		s, isDone, err := doneBefore(ctx, t.request)
		if !isDone {
			return false, nil
		}
		switch {
		case err == nil && !t.isRecv:
			return true, nil
		case err == nil && o.work.Awaits(&t.Transfer, uint64(s.Tag), s.Size):
			if !c.isStray(t.Peer, t.to) {
				return true, nil
			}
		case err == nil || errors.Is(err, rail.ErrTruncated):
			c.disagree([2]wire.Called{
				{Rank: uint32(c.rank), Tag: o.tag, Bytes: uint64(t.Size)}, {Rank: uint32(t.Peer), Tag: uint64(s.Tag), Bytes: t.request.MessageSize()},
			})
		case c.isOfEarlierLife(err):
			t.request.Release()
			o.start(t) // nothing of it has gone to the host as it is now
			continue
		case errors.Is(err, rail.ErrCanceled), errors.Is(err, rail.ErrWithdrawn), errors.Is(err, rail.ErrClosed): // an end of the communicator, here or there
		default:
			c.lostPeer(t.Peer, err)
		}
		select {
		case <-c.over:
		case <-c.loop.Done():
		}
		return true, cmp.Or(c.Err(), err)
	}
}

// doneBefore waits until a request is done or ctx ends, and reports whether it is done, and what
// came of it. A request can be done while Wait returns that ctx has ended, so Wait's results are not
// used.
func doneBefore(ctx context.Context, r *rail.Request) (rail.Status, bool, error) {
	_, _ = r.Wait(ctx)
	return r.Test()
}

// abandon ends transfers: their memory is the caller's again.
func (o *hostOperation) abandon(all []transfer) {
	for i := range all {
		all[i].request.Cancel()
	}
	for i := range all {
		_, _ = all[i].request.Wait(context.Background()) // what came of them does not matter any more
		all[i].request.Release()
	}
}

// compute does what is local. It reports false where the operation has failed: the caller's operator
// has panicked. The caller of a blocking operation sees that.
func (o *hostOperation) compute(l *schedule.Local) (isDone bool) {
	defer func() {
		if isDone {
			return
		}
		p := recover() // nil: the goroutine ends, by runtime.Goexit
		o.comm.abort(fmt.Sprintf("its operator panicked: %v", p))
		o.done(&PanicError{p, debug.Stack()})
		if p != nil && !o.isAlone {
			panic(p)
		}
	}()
	o.work.Compute(l)
	return true
}

// done ends the operation.
func (o *hostOperation) done(err error) {
	r, c := o.request, o.comm
	if err == nil {
		o.work.FinishAlone()
		if o.sum != nil {
			o.sum.finish(o)
		}
		callAll(o.after)
		reason := reasons[r.chosen][o.algorithm]
		if o.why != "" {
			reason += "; not over the tree: " + o.why
		}
		if c.apart != "" {
			reason += "; " + c.apart
		}
		r.outcome = Outcome{
			Transport: Hosts, Algorithm: Algorithm(o.algorithm), Reason: reason,
			Messages: o.messages, Bytes: o.bytes, Elapsed: r.elapsed(), function: o.function,
		}
		r.coding.report(&r.outcome)
	}
	giveBack(o.temp)
	o.in, o.out, o.temp, o.after, o.work = nil, nil, nil, nil, schedule.Run{}
	c.messaging.ended(r)
	if err != nil {
		r.fail(err)
	} else {
		r.succeed()
	}
}
