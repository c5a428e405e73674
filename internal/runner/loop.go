package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// Config tells what a loop runs.
type Config[In, Out any] struct {
	Core  Core[In, Out]
	Clock Clock // that of the cores it exchanges moments with; the zero value will not do

	// Apply carries out what a step brought about, and resets it. It runs on
	// the goroutine that steps. The inputs that it returns are the first of the
	// next step, which follows at once; it must not wait for its own loop.
	Apply func(now core.Time, out *Out) []In

	Source Source[In] // where the loop waits; nil: NewTimer
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

// Loop steps one core.
type Loop[In, Out any] struct {
	cfg    Config[In, Out]
	posted chan In
	calls  chan func()
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once
	err    error // why it ended; read after done

	turns turns

	// What a step needs, of whoever has the turn.
	out                  Out
	first, arrived, more []In
	unread               bool // the last cycle has not looked at the source
	sharing              sharing
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
	if c.Source == nil {
		c.Source = NewTimer[In]()
	}
	l := &Loop[In, Out]{
		cfg:    c,
		posted: make(chan In, c.Queue),
		calls:  make(chan func(), 1),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	l.turns.init()
	go l.run()
	return l, nil
}

// Post gives the core inputs, in this order. It waits while the queue is full.
// The error is that of the context, or ErrClosed; some of the inputs may then
// have been taken.
func (l *Loop[In, Out]) Post(ctx context.Context, inputs ...In) error {
	err := l.Queue(ctx, inputs...)
	l.Nudge()
	return err
}

// Queue is Post for who calls Nudge or Help at once: until then, the inputs may
// lie where they are.
func (l *Loop[In, Out]) Queue(ctx context.Context, inputs ...In) error {
	for _, in := range inputs {
		select {
		case <-l.stop:
			return ErrClosed
		default:
		}
		select {
		case l.posted <- in:
			continue
		default:
			l.Nudge() // to make room
		}
		select {
		case l.posted <- in:
		case <-l.stop:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("runner: posting: %w", ctx.Err())
		}
	}
	return nil
}

// Nudge has the loop take what is queued.
func (l *Loop[In, Out]) Nudge() {
	l.cfg.Source.Wake()
	l.turns.resume()
}

// Do runs f on the goroutine that steps, between two steps, and returns after it:
// for reading the core's state. f must not wait for the loop.
func (l *Loop[In, Out]) Do(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	select {
	case l.calls <- func() { f(); close(ran) }:
		l.Nudge()
	case <-l.stop:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("runner: waiting for the loop: %w", ctx.Err())
	}
	select {
	case <-ran:
		return nil
	case <-l.done:
		return ErrClosed
	}
}

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
	l.Nudge()
	<-l.done
}

func (l *Loop[In, Out]) run() {
	defer close(l.done)
	for <-l.turns.turn; l.cycle(); {
		l.turns.yield(l.stop)
	}
}

// cycle waits once, unless something was posted, and steps. It reports whether
// the loop goes on. It is for whoever has the turn.
func (l *Loop[In, Out]) cycle() bool {
	if l.stopped() {
		return false
	}
	l.first = l.take(append(l.first[:0], l.more...))
	l.more = nil
	// What was posted is stepped at once, unless something is due: what the source
	// has may make that needless. Posts without end do not keep the loop from it.
	l.unread = len(l.first) > 0 && !l.unread && l.cfg.Clock.Now() < l.cfg.Core.Deadline()
	if l.unread {
		l.arrived = l.arrived[:0]
	} else if !l.receive() {
		return false
	}
	now := l.cfg.Clock.Now()
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
	l.sharing.offer(now)
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
	if l.stopped() {
		return false // the error may be that of a source which was closed together with the loop
	}
	if err != nil {
		l.err = err
		l.once.Do(func() { close(l.stop) })
		return false
	}
	// Whoever posts and then tells others must find its input stepped
	// before theirs, which may have arrived in this very Receive.
	l.first = l.take(l.first)
	return true
}

// take appends what was posted, no more than the queue's length so that a
// flood cannot starve the source, and runs what Do asked for.
func (l *Loop[In, Out]) take(batch []In) []In {
	if len(l.posted)+len(l.calls) == 0 {
		return batch // as nearly always; what comes now wakes the next Receive
	}
	for range cap(l.posted) {
		select {
		case in := <-l.posted:
			batch = append(batch, in)
			continue
		case call := <-l.calls:
			call()
			continue
		default:
		}
		break
	}
	return batch
}

func (l *Loop[In, Out]) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}
