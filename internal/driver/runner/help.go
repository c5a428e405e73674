package runner

import (
	"context"
	"sync/atomic"
	"time"
)

// pause is how long the loop's own goroutine stands back after a helper: as
// long as helpers come sooner than that, it is never needed.
const pause = 10 * time.Millisecond

// turns decide who steps the core: the loop's own goroutine, or a helper.
type turns struct {
	turn    chan struct{} // holds one value while nobody steps
	again   chan struct{} // has room for one: the loop's goroutine is to go on
	helping atomic.Bool   // a helper has the turn, or wants it
	helps   atomic.Uint64 // turns of helpers
	others  atomic.Int32  // goroutines that wait while another one helps
}

func (t *turns) init() {
	t.turn, t.again = make(chan struct{}, 1), make(chan struct{}, 1)
	t.turn <- struct{}{}
}

// yield gives the turn to a helper that wants it, and waits until the loop's
// goroutine is needed again.
func (t *turns) yield(stop <-chan struct{}) {
	if !t.helping.Load() {
		return
	}
	t.turn <- struct{}{}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for seen := t.helps.Load(); ; {
		select {
		case <-t.again:
		case <-stop:
		case <-timer.C:
			if n := t.helps.Load(); t.helping.Load() || n != seen {
				seen = n
				timer.Reset(pause)
				continue
			}
		}
		<-t.turn
		return
	}
}

// resume makes the loop's goroutine go on, unless a helper does its work.
func (t *turns) resume() {
	if t.helping.Load() {
		return
	}
	select {
	case t.again <- struct{}{}:
	default:
	}
}

// Help has the calling goroutine do the loop's work until something has happened,
// quit is closed, or the loop ends: whoever waits for what a step brings about
// then waits where it comes from, and nobody has to wake it. If another goroutine
// helps already, it just waits. Afterwards the loop's own goroutine goes on at
// once if busy reports that it has something to do, and otherwise when helpers
// have stayed away for a while, or at the next Post.
//
// While the source is closed it steps what is queued, and then waits without
// having the turn: who brings the answer, by Deliver, steps the core.
//
// It must not be called from Apply or Do. Config.Apply may run on any helper's
// goroutine.
func (l *Loop[In, Out]) Help(it *Event, quit <-chan struct{}, busy func() bool) {
	t := &l.turns
	for !it.Happened() && !isClosed(quit) && !l.stopped() {
		if !l.listens() {
			l.drain()
			l.standBy(it, quit)
			return
		}
		if !t.helping.CompareAndSwap(false, true) {
			t.others.Add(1)
			l.cfg.Source.Wake()
			l.standBy(it, quit)
			t.others.Add(-1)
			return
		}
		if l.relieve(it, quit) {
			for !it.Happened() && !isClosed(quit) && !l.quiet() && l.cycle() {
			}
			t.turn <- struct{}{}
		}
		t.helps.Add(1)
		t.helping.Store(false)
		if !l.listens() || t.others.Load() > 0 || !l.inbox.empty() || l.stopped() || busy() {
			t.resume()
		}
	}
}

// Deliver is Post for a goroutine that may step the core: while the source is
// closed and nobody else steps, it does so at once, and nobody has to be woken
// for that. It must not be called from Apply or Do.
func (l *Loop[In, Out]) Deliver(ctx context.Context, inputs ...In) error {
	err := l.Queue(ctx, inputs...)
	if err == nil && !l.listens() {
		l.drain()
	} else {
		l.Wake()
	}
	return err
}

// drain steps what is queued while the source is closed, unless somebody else has
// the turn, who then does.
func (l *Loop[In, Out]) drain() {
	for !l.inbox.empty() {
		select {
		case <-l.turns.turn:
		default:
			l.Wake()
			return
		}
		for !l.listens() && !l.quiet() && l.cycle() {
		}
		// The loop's own goroutine rests for as long as it was to when that began.
		isNeeded := l.listens() || l.stopped() || l.rest.isLate(l.cfg.Core.Deadline())
		l.turns.turn <- struct{}{}
		if isNeeded {
			l.Wake()
			return
		}
	}
}

// relieve takes the turn, from the loop's goroutine if need be, and reports
// whether it did.
func (l *Loop[In, Out]) relieve(it *Event, quit <-chan struct{}) bool {
	select {
	case <-l.turns.turn:
		return true
	default:
		l.cfg.Source.Wake()
	}
	select {
	case <-l.turns.turn:
		return true
	case <-it.Done():
	case <-quit:
	case <-l.done:
	}
	return false
}

// standBy waits while others do the work.
func (l *Loop[In, Out]) standBy(it *Event, quit <-chan struct{}) { it.await(quit, l.done) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
