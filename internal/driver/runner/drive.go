package runner

import (
	"context"
	"sync/atomic"
	"time"
)

// pause is how long the loop's own goroutine stands back after a caller has driven it: as
// long as callers come sooner than that, it is never needed.
const pause = 10 * time.Millisecond

// stepLock decides who steps the core: the loop's own goroutine, or a caller of Drive.
type stepLock struct {
	token  chan struct{} // holds one value while nobody steps
	again  chan struct{} // has room for one: the loop's goroutine is to go on
	driven atomic.Bool   // a caller has the lock, or wants it
	drives atomic.Uint64 // how often callers had it
	others atomic.Int32  // goroutines that wait while another one drives
}

func (t *stepLock) init() {
	t.token, t.again = make(chan struct{}, 1), make(chan struct{}, 1)
	t.token <- struct{}{}
}

// yield gives the lock to a caller that wants it, and waits until the loop's
// goroutine is needed again.
func (t *stepLock) yield(stop <-chan struct{}) {
	if !t.driven.Load() {
		return
	}
	t.token <- struct{}{}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for seen := t.drives.Load(); ; {
		select {
		case <-t.again:
		case <-stop:
		case <-timer.C:
			if n := t.drives.Load(); t.driven.Load() || n != seen {
				seen = n
				timer.Reset(pause)
				continue
			}
		}
		<-t.token
		return
	}
}

// resume makes the loop's goroutine go on, unless a caller does its work.
func (t *stepLock) resume() {
	if t.driven.Load() {
		return
	}
	select {
	case t.again <- struct{}{}:
	default:
	}
}

// Drive has the calling goroutine do the loop's work until something has happened,
// quit is closed, or the loop ends: whoever waits for what a step brings about
// then waits where it comes from, and nobody has to wake it. If another goroutine
// drives already, it just waits. Afterwards the loop's own goroutine goes on at
// once if busy reports that it has something to do, and otherwise when callers
// have stayed away for a while, or at the next Post.
//
// While the source is closed it steps what is queued, and then waits without
// holding the lock: who brings the answer, by Deliver, steps the core.
//
// It must not be called from Apply or Do. Config.Apply may run on any caller's
// goroutine.
func (l *Loop[In, Out]) Drive(it *Event, quit <-chan struct{}, busy func() bool) {
	t := &l.stepLock
	for !it.Happened() && !IsClosed(quit) && !l.stopped() {
		if !l.listens() {
			l.drain()
			l.standBy(it, quit)
			return
		}
		if !t.driven.CompareAndSwap(false, true) {
			t.others.Add(1)
			l.cfg.Source.Wake()
			l.standBy(it, quit)
			t.others.Add(-1)
			return
		}
		if l.relieve(it, quit) {
			for !it.Happened() && !IsClosed(quit) && !l.quiet() && l.cycle() {
			}
			t.token <- struct{}{}
		}
		t.drives.Add(1)
		t.driven.Store(false)
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

// drain steps what is queued while the source is closed, unless somebody else holds
// the lock, who then does.
func (l *Loop[In, Out]) drain() {
	for !l.inbox.empty() {
		select {
		case <-l.stepLock.token:
		default:
			l.Wake()
			return
		}
		for !l.listens() && !l.quiet() && l.cycle() {
		}
		// The loop's own goroutine rests for as long as it was to when that began.
		isNeeded := l.listens() || l.stopped() || l.rest.isLate(l.cfg.Core.Deadline())
		l.stepLock.token <- struct{}{}
		if isNeeded {
			l.Wake()
			return
		}
	}
}

// relieve takes the step lock, from the loop's goroutine if need be, and reports
// whether it did.
func (l *Loop[In, Out]) relieve(it *Event, quit <-chan struct{}) bool {
	select {
	case <-l.stepLock.token:
		return true
	default:
		l.cfg.Source.Wake()
	}
	select {
	case <-l.stepLock.token:
		return true
	case <-it.Done():
	case <-quit:
	case <-l.done:
	}
	return false
}

// standBy waits while others do the work.
func (l *Loop[In, Out]) standBy(it *Event, quit <-chan struct{}) { it.Await(quit, l.done) }

// IsClosed reports whether a channel that nothing is sent on is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
