package hostlib

import (
	"context"
	"sync"
)

// watch wakes the loop when a caller's context ends. To have that known of a
// context costs as much as sending a packet, and callers pass the same one again
// and again: so it stays known until another one comes.
type watch struct {
	wake func()

	mu    sync.Mutex
	done  <-chan struct{} // of the context that is known; nil: none
	stop  func() bool
	users int // calls that rely on it
}

// over has wake called at the end of ctx, until the caller calls stop, or, where
// that is nil, leave.
func (w *watch) over(ctx context.Context) (stop func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done != ctx.Done() {
		if w.users > 0 { // calls with several contexts at once
			return context.AfterFunc(ctx, w.wake)
		}
		w.forget()
		w.done, w.stop = ctx.Done(), context.AfterFunc(ctx, w.wake)
	}
	w.users++
	return nil
}

func (w *watch) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users--
}

// end forgets the context: no call comes any more that would rely on it.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
}

func (w *watch) forget() {
	if w.stop != nil {
		w.stop()
	}
	w.done, w.stop = nil, nil
}
