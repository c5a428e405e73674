package runner

import (
	"sync"
	"sync/atomic"
)

// Event is something that happens once. Its zero value has not happened. It has
// a channel only if somebody asks for it: who drives until it happens need not.
type Event struct {
	state atomic.Uint32

	mu    sync.Mutex
	done  chan struct{} // closed when it has happened; nil: nobody has asked
	woken chan struct{} // for one that awaits it: kept for the next; has room for one
	waits bool          // somebody does
}

// The bits of an Event's state. One that nobody has asked for needs no lock.
const (
	hasHappened = 1 << iota
	isAskedFor  // its channel, or by who awaits it: from then on mu is held to change it
)

// Happen makes it happen. It must be called once.
func (e *Event) Happen() {
	if e.state.CompareAndSwap(0, hasHappened) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.Store(hasHappened | isAskedFor)
	if e.waits {
		e.woken <- struct{}{}
		e.waits = false
	}
	if e.done != nil {
		close(e.done)
	}
}

// Happened reports whether it has.
func (e *Event) Happened() bool { return e.state.Load()&hasHappened != 0 }

// askFor notes that somebody asks, and reports whether it has happened. The caller holds mu.
func (e *Event) askFor() (happened bool) { return e.state.Or(isAskedFor)&hasHappened != 0 }

// Done returns a channel that is closed when it has happened.
func (e *Event) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == nil {
		e.done = make(chan struct{})
		if e.askFor() {
			close(e.done)
		}
	}
	return e.done
}

// Await waits until it has happened, or until quit or ended is closed. It
// allocates only for the first of an Event's lives, and for several at once.
func (e *Event) Await(quit, ended <-chan struct{}) {
	e.mu.Lock()
	if e.askFor() {
		e.mu.Unlock()
		return
	}
	if e.waits {
		e.mu.Unlock()
		select {
		case <-e.Done():
		case <-quit:
		case <-ended:
		}
		return
	}
	if e.woken == nil {
		e.woken = make(chan struct{}, 1)
	}
	e.waits = true
	e.mu.Unlock()
	select {
	case <-e.woken:
		return
	case <-quit:
	case <-ended:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.waits {
		<-e.woken // it has happened meanwhile
	}
	e.waits = false
}

// Renew makes an event that has happened one that has not, and reports whether it
// did: it does not where somebody has the channel.
func (e *Event) Renew() bool {
	if e.state.CompareAndSwap(hasHappened, 0) {
		return true
	}
	e.mu.Lock() // Happen may not have returned yet
	defer e.mu.Unlock()
	if e.done != nil {
		return false
	}
	e.state.Store(0)
	return true
}
