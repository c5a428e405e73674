package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core"
)

// ErrClosed is returned by what was asked of a loop that has ended.
var ErrClosed = errors.New("runner: loop closed")

// ErrConfig is wrapped by the errors of an unusable Config.
var ErrConfig = errors.New("runner: invalid configuration")

// DefaultQueue is the posted inputs that wait at most, where Config says
// nothing else.
const DefaultQueue = 256

// Core is a protocol core as package core describes it.
type Core[In, Out any] interface {
	Step(now core.Time, batch []In, out *Out)
	Deadline() core.Time
}

// Config says what a loop runs.
type Config[In, Out any] struct {
	Core  Core[In, Out]
	Clock Clock // that of the cores it exchanges moments with; the zero value will not do

	// Apply carries out what a step brought about, and resets it. It runs on
	// the goroutine that steps. The inputs that it returns are the first of the
	// next step, which follows at once; it must not wait for its own loop.
	Apply func(now core.Time, out *Out) []In

	// Ended, if not nil, is called with the error of the Source that ends the loop,
	// by the loop's own goroutine and before Done: it must not wait for the loop.
	Ended func(err error)

	Source Source[In] // where the loop waits, if inputs come from there; nil: they are only posted
	Queue  int        // posted inputs that wait at most; 0: DefaultQueue
}

// A Source is where a loop waits for its core's next deadline, and what inputs
// come from there. Receive is called by the loop alone, Wake by everybody.
type Source[In any] interface {
	// Receive appends inputs to batch. It waits until there is one, until the
	// moment until, or until Wake, which counts once, also if it came before.
	// Inputs that are there already come first. What they point to is valid
	// until the next Receive. An error ends the loop.
	Receive(clock Clock, until core.Time, batch []In) ([]In, error)

	// Wake ends a Receive.
	Wake()
}

// Closable is a Source from which at times nothing can come. While Open reports
// false the loop does not look at it: it waits for posts and deadlines only, and
// who posts may step the core (Loop.Deliver). Open is called by everybody; it
// changes only while the core is stepped, in Step or in Config.Apply.
type Closable interface{ Open() bool }

// Loop steps one core.
type Loop[In, Out any] struct {
	cfg   Config[In, Out]
	gate  Closable // of the source; nil: it is always open
	inbox inbox[In]
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	err   error // why it ended; read after done

	stepLock stepLock
	rest     rest

	// What a step needs, of whoever holds the step lock.
	out                  Out
	first, arrived, more []In
	unread               bool // the last cycle has not looked at the source
	trim                 atomic.Bool
	yielding             yielding
}

// Start starts a loop. The caller owns it and must Close it.
func Start[In, Out any](c Config[In, Out]) (*Loop[In, Out], error) {
	switch {
	case c.Core == nil || c.Apply == nil:
		return nil, fmt.Errorf("%w: no core, or no Apply", ErrConfig)
	case c.Clock == (Clock{}):
		return nil, fmt.Errorf("%w: no clock", ErrConfig)
	case c.Queue < 0:
		return nil, fmt.Errorf("%w: queue of %d inputs", ErrConfig, c.Queue)
	}
	if c.Queue == 0 {
		c.Queue = DefaultQueue
	}
	l := &Loop[In, Out]{
		cfg:   c,
		inbox: inbox[In]{limit: c.Queue},
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	l.gate, _ = c.Source.(Closable)
	l.stepLock.init()
	l.rest.init()
	go l.run()
	return l, nil
}

// Post gives the core inputs, in this order. It waits while the queue is full.
// The error is that of the context, or ErrClosed; some of the inputs may then
// have been taken.
func (l *Loop[In, Out]) Post(ctx context.Context, inputs ...In) error {
	err := l.Queue(ctx, inputs...)
	l.Wake()
	return err
}

// Add is Post without waiting, however many inputs wait: for who must not wait for the
// loop, such as what Apply calls. After Close they are dropped.
func (l *Loop[In, Out]) Add(inputs ...In) {
	l.inbox.add(inputs)
	l.Wake()
}

// Queue is Post for who calls Wake or Drive at once: until then, the inputs may
// lie where they are.
func (l *Loop[In, Out]) Queue(ctx context.Context, inputs ...In) error {
	for !l.stopped() {
		n, full := l.inbox.put(inputs)
		if inputs = inputs[n:]; full == nil {
			return nil
		}
		l.Wake() // to make room
		select {
		case <-full:
		case <-l.stop:
		case <-ctx.Done():
			return fmt.Errorf("runner: posting: %w", ctx.Err())
		}
	}
	return ErrClosed
}

// Wake has the loop take what is queued.
func (l *Loop[In, Out]) Wake() {
	if l.cfg.Source != nil {
		l.cfg.Source.Wake()
	}
	l.rest.wake()
	l.stepLock.resume()
}

// Do runs f on the goroutine that steps, between two steps, and returns after it:
// for reading the core's state. f must not wait for the loop.
func (l *Loop[In, Out]) Do(ctx context.Context, f func()) error {
	if l.stopped() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("runner: waiting for the loop: %w", err)
	}
	ran := make(chan struct{})
	l.inbox.call(func() { f(); close(ran) })
	l.Wake()
	select {
	case <-ran:
		return nil
	case <-l.done:
		return ErrClosed
	}
}

// Trim has the next step give back the memory of queues, which grows with what was
// queued at a time.
func (l *Loop[In, Out]) Trim() { l.trim.Store(true) }

// Done is closed when the loop has ended, by Close or by its Source.
func (l *Loop[In, Out]) Done() <-chan struct{} { return l.done }

// Err returns, once Done is closed, the error of the Source that ended the
// loop; nil if Close did.
func (l *Loop[In, Out]) Err() error {
	<-l.done
	return l.err
}

// Close ends the loop and waits for it. What was posted and not stepped yet is
// thrown away. It must not be called from Apply or Do.
func (l *Loop[In, Out]) Close() {
	l.once.Do(func() { close(l.stop) })
	l.Wake()
	<-l.done
}

func (l *Loop[In, Out]) run() {
	defer close(l.done)
	for <-l.stepLock.token; l.pause() && l.cycle(); {
		l.stepLock.yield(l.stop)
	}
	if l.err != nil && l.cfg.Ended != nil {
		l.cfg.Ended(l.err)
	}
}

// listens reports whether inputs may come from the source.
func (l *Loop[In, Out]) listens() bool {
	return l.cfg.Source != nil && (l.gate == nil || l.gate.Open())
}

// quiet reports whether there is nothing to step before somebody posts or the
// core's deadline has come. It is for whoever holds the step lock.
func (l *Loop[In, Out]) quiet() bool {
	return !l.listens() && l.inbox.empty() && len(l.more) == 0
}

// pause lets others have the step lock while all is quiet, and waits for the end of
// that. It reports whether the loop goes on.
func (l *Loop[In, Out]) pause() bool {
	for l.quiet() && !l.stopped() {
		until := l.cfg.Core.Deadline()
		wait := until.Sub(l.cfg.Clock.Now())
		if until != core.Never && wait <= 0 {
			break
		}
		l.rest.begin(until)
		l.stepLock.token <- struct{}{}
		l.rest.wait(wait, until != core.Never, l.stop)
		<-l.stepLock.token
		l.rest.end()
	}
	return !l.stopped()
}

// cycle steps once. Before that it waits at the source, if that is open and
// nothing was posted. It reports whether the loop goes on. It is for whoever has
// the step lock.
func (l *Loop[In, Out]) cycle() bool {
	if l.stopped() {
		return false
	}
	if l.trim.Load() && l.trim.Swap(false) {
		l.first, l.arrived = nil, nil
		l.inbox.trim()
	}
	l.first = l.inbox.take(append(l.first[:0], l.more...))
	l.more = nil
	// What was posted is stepped at once, unless something is due: what the source
	// has may make that needless. Posts without end do not keep the loop from it.
	var now core.Time
	if l.unread = len(l.first) > 0 && !l.unread; l.unread {
		now = l.cfg.Clock.Now()
		l.unread = now < l.cfg.Core.Deadline()
	}
	if !l.unread {
		if l.arrived = l.arrived[:0]; l.listens() && !l.receive() {
			return false
		}
		now = l.cfg.Clock.Now()
	}
	if len(l.first)+len(l.arrived) == 0 && now < l.cfg.Core.Deadline() {
		return true
	}
	batch := l.arrived
	if len(l.first) > 0 {
		l.first = append(l.first, l.arrived...)
		batch = l.first
	}
	l.cfg.Core.Step(now, batch, &l.out)
	l.more = l.cfg.Apply(now, &l.out)
	l.yielding.offer(now)
	return true
}

// receive takes what is at the source and, unless there is something to step
// already, waits for it. It reports whether the loop goes on.
func (l *Loop[In, Out]) receive() bool {
	until := l.cfg.Core.Deadline()
	if len(l.first) > 0 {
		until = 0 // nothing to wait for
	}
	var err error
	l.arrived, err = l.cfg.Source.Receive(l.cfg.Clock, until, l.arrived[:0])
	if err != nil {
		if !l.stopped() { // it may be that of a source which was closed together with the loop
			l.err = err
			l.once.Do(func() { close(l.stop) })
		}
		return false
	}
	// Whoever posts and then notifies others must find its input stepped
	// before theirs, which may have arrived in this very Receive.
	l.first = l.inbox.take(l.first)
	return true
}

func (l *Loop[In, Out]) stopped() bool { return IsClosed(l.stop) }
